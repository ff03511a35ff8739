import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import { z } from "zod";
import type { Batches, IdempotentRequest, NewBatch, StoredBatch } from "#batches";
import { accountFrozen, checkIdempotencyKey, insufficientBalance, ServiceError } from "#errors";
import type { Files } from "#files";
import { type JsonLimits, jsonLimits, validate } from "#formats";
import type { JsonObject } from "#json";
import type { Caller } from "#keys";
import type { Money } from "#money";
import type { Uses } from "#platform/uses";
import { type CallbackDeps, callbackOf, webhookHeader } from "../async-call.ts";
import type { BodyReader } from "../http/body.ts";
import { localsOf } from "../http/headers.ts";
import { tagsField, tagsOf } from "../http/tags.ts";
import { markReplayed } from "../idempotency.ts";
import { paidRouteAt } from "./paid.ts";

/** Creates batches, and writes the input file of those whose requests are in the body. */

export interface BatchDeps extends Uses<"log">, CallbackDeps {
  readonly batches: Pick<Batches, "create" | "findCreated" | "find" | "list" | "cancel" | "delete">;
  readonly files: Pick<Files, "batchFiles">;
  readonly money: Money;
  /** Reads bodies up to the limit of calls. */
  readonly readBody: BodyReader;
  readonly publicUrl: () => string;
}

/** The headers of a request that creates a batch, for the document. */
export const batchHeaders = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("For 24 hours, a request with the same key and body gets the batch that the first one created"),
  ...tagsField,
  [webhookHeader]: z
    .string()
    .optional()
    .describe("A URL, or the id of a webhook endpoint, that receives the events of the batch's pauses and end"),
});

/** One request of a body. */
export interface InlineRequest {
  readonly customId: string;
  readonly body: JsonObject;
}

interface CreateCall {
  readonly who: Caller;
  readonly req: Request;
  readonly res: Response;
}

/** A body has the requests of many calls. Parsing it takes less than 100 ms. */
const inlineLimits: JsonLimits = { ...jsonLimits, values: 200_000 };

interface Wanted extends Pick<NewBatch, "kind" | "endpoint" | "metadata" | "outputLifeSeconds"> {
  /** The id of a file, or what is written as one. */
  readonly input: string | readonly InlineRequest[];
  /** Throws for a request that is refused. */
  readonly check?: (line: Buffer, at: number) => void;
}

/** Results of providers are completed with what their lines asked for, at the latest so long after the batch's expiry. */
const readAfterMs = 3_600_000;

/**
 * Creates the batch that the body describes, or finds the one that was created with the same `Idempotency-Key`. Throws 400,
 * 402, 403, 409, 429 and 503; then no file of requests stays.
 */
export async function createBatch<Schema extends z.ZodType>(
  deps: BatchDeps,
  call: CreateCall,
  schema: Schema,
  wantedOf: (body: z.output<Schema>) => Wanted | Promise<Wanted>,
): Promise<StoredBatch> {
  const { who, req, res } = call;
  if (who.frozen) throw accountFrozen();
  const json = await deps.readBody(req, res, who, inlineLimits);
  try {
    const body = validate(schema, json.value);
    const idempotency = idempotencyOf(call, json.text);
    // Its memory is that of the lines, which are as large.
    json.dropText();
    const earlier = idempotency && (await deps.batches.findCreated(who.account, idempotency));
    const batch = earlier ?? (await createOnce(deps, call, await wantedOf(body), idempotency));
    const { requestId = "" } = batch.idempotency ?? {};
    if (idempotency && idempotency.requestId !== requestId) markReplayed(res, requestId);
    return batch;
  } finally {
    json.release();
  }
}

function idempotencyOf({ req, res }: CreateCall, text: string): IdempotentRequest | undefined {
  const key = req.get("idempotency-key");
  if (key === undefined) return undefined;
  checkIdempotencyKey(key);
  const hash = createHash("sha256").update(text).digest("base64url");
  return { key, hash, requestId: localsOf(res).requestId };
}

/** Even the calls of free models need a balance, as large bodies do. What the lines need is known after the validation. */
async function assertPayable({ money }: BatchDeps, account: string, endpoint: string): Promise<void> {
  if (paidRouteAt(endpoint)?.isFree) return;
  const balances = await money.balances([account]);
  if ((balances.get(account) ?? 0n) <= 0n) throw insufficientBalance("The account has no balance.");
}

async function createOnce(
  deps: BatchDeps,
  { who: { account, keyId }, req, res }: CreateCall,
  { input, check, ...wanted }: Wanted,
  idempotency: IdempotentRequest | undefined,
): Promise<StoredBatch> {
  const { batches, files, publicUrl, log } = deps;
  const webhook = req.get(webhookHeader);
  const callback = webhook === undefined ? undefined : await callbackOf(deps, account, webhook);
  const tags = tagsOf(req);
  await assertPayable(deps, account, wanted.endpoint);
  const owner = { account, key: keyId, publicUrl: publicUrl(), callback, tags, idempotency };
  if (typeof input === "string") {
    const batch = await batches.create({ ...wanted, ...owner, inputFile: input });
    await files.batchFiles.keepUntil(account, batch.inputFile, new Date(batch.expiresAt.getTime() + readAfterMs));
    return batch;
  }

  const lines = () => linesOf(wanted.endpoint, input);
  let [bytes, at] = [0, 0];
  for await (const line of lines()) {
    check?.(line, at++);
    bytes += line.length;
  }
  const { requestId } = localsOf(res);
  const file = { account, requestId, filename: "requests.jsonl", bytes, body: joined(lines()) };
  const { id } = await files.batchFiles.store(file);
  const removeInput = () =>
    files.batchFiles.delete(account, id).catch((failure: unknown) => {
      log.warn({ err: failure, file: id }, "the input of a batch that was not created stays until it expires");
    });
  try {
    const batch = await batches.create({ ...wanted, ...owner, inputFile: id, lines: input.length });
    if (batch.inputFile !== id) await removeInput();
    return batch;
  } catch (error) {
    // After any other error the batch may exist.
    if (error instanceof ServiceError) await removeInput();
    throw error;
  }
}

const turnBytes = 64 * 1024;

/** Writes one request after the other, and lets other calls have their turns. */
async function* linesOf(url: string, requests: readonly InlineRequest[]): AsyncGenerator<Buffer> {
  let bytes = 0;
  for (const { customId, body } of requests) {
    const line = Buffer.from(`${JSON.stringify({ custom_id: customId, method: "POST", url, body })}\n`);
    yield line;
    bytes += line.length;
    if (bytes < turnBytes) continue;
    bytes = 0;
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

/** One long line is not copied. */
const joinedOf = (chunks: readonly Buffer[]) => (chunks.length === 1 && chunks[0]) || Buffer.concat(chunks);

/** Joins short lines, because each chunk is a write to a socket. */
async function* joined(lines: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = [];
  let bytes = 0;
  for await (const line of lines) {
    chunks.push(line);
    bytes += line.length;
    if (bytes < turnBytes) continue;
    const whole = joinedOf(chunks);
    [chunks, bytes] = [[], 0];
    yield whole;
  }
  if (bytes > 0) yield joinedOf(chunks);
}
