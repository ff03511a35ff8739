import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import { conflict, noCapacity } from "#errors";
import type { Files, Upload } from "#files";
import type { Caller } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import { sleep } from "#platform/clock";
import type { JsonBody } from "../http/body.ts";
import { proceed } from "../http/continue.ts";
import { localsOf } from "../http/headers.ts";
import { parse } from "../http/input.ts";
import { hashed, type UploadBody, uploadBody } from "../http/upload-body.ts";
import { type Claimed, claimKey, type IdempotencyDeps, markReplayed, releaseKey } from "../idempotency.ts";
import { newUpload } from "./upload-object.ts";

export interface CreateDeps extends IdempotencyDeps {
  readonly files: Pick<Files, "uploads">;
  readonly instance: string;
  readonly syncTimeoutMs: number;
  readonly spoolBudget: ByteBudget;
}

/** One `POST /v1/uploads`. */
export interface Asking {
  readonly req: Request<{ id: string }>;
  readonly res: Response;
  readonly caller: Caller;
}

interface Made {
  readonly upload: Upload;
  /** Of the JSON text, or of the file's bytes: raw or in a form, the same file is the same request. */
  readonly hash?: string | undefined;
}

/** The file's hash and length, which only its reading tells. */
type Read = () => Promise<{ readonly bytes: number; readonly hash: string }>;

/** Starts an upload in parts. */
export function startUpload(deps: CreateDeps, asking: Asking, json: JsonBody): Promise<Upload> {
  const { requestId } = localsOf(asking.res);
  const { account, keyId, buybackToken } = asking.caller;
  const hash = createHash("sha256").update("/v1/uploads\n").update(json.text).digest("base64url");
  return once(deps, asking, hash, undefined, async () => {
    const upload = await deps.files.uploads.start({
      account,
      keyId,
      buybackToken,
      requestId,
      ...parse(newUpload, json.value),
    });
    return { upload, hash };
  });
}

/** Takes a file, as it is or in a form. */
export function receiveUpload(deps: CreateDeps, asking: Asking): Promise<Upload> {
  const { req, res } = asking;
  const body = uploadBody(req, deps.clock, deps.spoolBudget.share(asking.caller.account));
  const read: Read = () => {
    proceed(req, res);
    return body.digest();
  };
  return once(deps, asking, undefined, read, (needsHash) => receive(deps, asking, body, needsHash));
}

async function receive(
  { files }: CreateDeps,
  { req, res, caller }: Asking,
  body: UploadBody,
  needsHash: boolean,
): Promise<Made> {
  const { requestId } = localsOf(res);
  const { account, keyId, buybackToken } = caller;
  const receiving = await files.uploads.begin({ account, keyId, buybackToken, requestId, maxBytes: body.maxBytes });
  try {
    proceed(req, res);
    const hash = needsHash ? createHash("sha256") : undefined;
    const upload = await body.read((source) => receiving.store(hash ? hashed(source, hash) : source));
    return { upload, hash: hash?.digest("base64url") };
  } catch (error) {
    await receiving.cancel();
    throw error;
  }
}

/** Once for an `Idempotency-Key`; as often as it is asked for without one. */
async function once(
  deps: CreateDeps,
  asking: Asking,
  hash: string | undefined,
  read: Read | undefined,
  make: (needsHash: boolean) => Promise<Made>,
): Promise<Upload> {
  const { req, res, caller } = asking;
  const key = req.get("idempotency-key");
  if (key === undefined) return (await make(false)).upload;

  const { requestId, arrivedAt } = localsOf(res);
  const ask = { account: caller.account, key, hash, requestId, instance: deps.instance };
  const claimed = await claimKey(deps, ask, { answerBy: arrivedAt + deps.syncTimeoutMs, res });
  if (claimed.kind === "answered") return again(deps, asking, claimed, read);
  let made: Made;
  try {
    const { before } = claimed;
    const adopted = before === undefined ? undefined : await adopt(deps, asking, before, read);
    made = adopted ?? (await make(true));
  } catch (error) {
    await releaseKey(deps, claimed.id, requestId);
    throw error;
  }
  await keep(deps, claimed.id, requestId, made);
  return made.upload;
}

const otherFile = () => conflict("This Idempotency-Key was used with another request.");

/** The upload as it is now, for a request that brings the same file. */
async function again(
  { files }: CreateDeps,
  { res, caller }: Asking,
  { requestId, hash, answer }: Extract<Claimed, { kind: "answered" }>,
  read: Read | undefined,
): Promise<Upload> {
  if (!("upload" in answer)) throw otherFile();
  if (read && (await read()).hash !== hash) throw otherFile();
  const { account } = caller;
  const upload =
    (await files.uploads.findByRequest(account, requestId)) ?? (await files.uploads.find(account, answer.upload));
  markReplayed(res, upload.requestId);
  return upload;
}

/** An instance that died may have made the upload and not said so. Its hash is lost: the length has to do. */
async function adopt(
  { files }: CreateDeps,
  { res, caller }: Asking,
  before: string,
  read: Read | undefined,
): Promise<Made | undefined> {
  const upload = await files.uploads.findByRequest(caller.account, before);
  if (!upload || (upload.status !== "active" && !upload.multipart)) return undefined;
  const file = await read?.();
  if (file && file.bytes !== upload.bytes) throw otherFile();
  markReplayed(res, upload.requestId);
  return { upload, hash: file?.hash };
}

const keepAgainMs = 1_000;

/** Tries until it is done: the upload is made and paid. If the process stops before, the next request finds it. */
async function keep(
  { idempotency, clock, draining, log }: CreateDeps,
  id: string,
  requestId: string,
  { upload, hash }: Made,
) {
  for (;;) {
    try {
      return await idempotency.store(id, requestId, { upload: upload.id }, hash);
    } catch (error) {
      log.warn({ err: (error as Error).message, requestId }, "an upload's idempotency key is not kept yet");
      if (draining()) throw noCapacity("The Idempotency-Key cannot be kept right now; repeat the request.", 1, error);
      await sleep(clock, keepAgainMs);
    }
  }
}
