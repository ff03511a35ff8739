import { pipeline } from "node:stream/promises";
import { type Request, type Response, Router } from "express";
import { z } from "zod";
import { isEnded, LineRefused, parseLine, renderMessageBatch, type StoredBatch } from "#batches";
import { conflict, invalidValue, tooManyInline } from "#errors";
import type { Caller, Keys } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import type { Uses } from "#platform/uses";
import { authenticate, requireScope } from "../admission/authenticate.ts";
import { databaseUnavailable, methodNotAllowed } from "../http/errors.ts";
import { inputFields } from "../http/fields.ts";
import { localsOf } from "../http/headers.ts";
import { wholeNumber } from "../http/input.ts";
import { groupOf } from "../http/openapi/describe.ts";
import { createdOnceHeaders, messagesRequestId, requestId } from "../http/openapi/headers.ts";
import { binary, json, operation } from "../http/openapi/operation.ts";
import { found, text } from "../http/page.ts";
import { beginReading, sendStored } from "../http/read-stored.ts";
import { type Route, routeOf, routerOf } from "../http/route.ts";
import { messageBatchObject } from "./batch-object.ts";
import { type BatchDeps, batchHeaders, createBatch } from "./create-batch.ts";
import { native } from "./messages.ts";
import { messageBatchCallbacks } from "./webhook-events.ts";

/** Message Batches in Anthropic's shape (docs/api/batches.md). A key sees all batches of its account. */

interface MessageBatchDeps extends BatchDeps, Uses<"clock"> {
  readonly keys: Keys;
  readonly bodyBudget: ByteBudget;
  /** Throws 503 after the drain. Otherwise the drain waits until the returned function is called. */
  readonly arrive: () => () => void;
}

const maxRequests = 10_000;
const endpoint = "/v1/messages";

const newMessageBatch = inputFields({
  requests: z
    .array(
      inputFields({
        custom_id: z.string().regex(/^[\w-]{1,64}$/, "must be 1 to 64 letters, digits, '_' or '-'"),
        params: z.record(z.string(), z.unknown()).describe("The body of a message, without `stream`"),
      }),
    )
    .min(1)
    .describe(`At most ${maxRequests}, with different \`custom_id\`; the whole body is at most 25 MB`),
}).meta({ id: "NewMessageBatch" });

const examples = {
  messages: {
    summary: "One message",
    value: {
      requests: [
        {
          custom_id: "first",
          params: { model: "local/chat", max_tokens: 64, messages: [{ role: "user", content: "Hello." }] },
        },
      ],
    },
  },
};

const params = { id: z.string().meta({ example: "msgbatch_2kT9vQ4mXw7pLr3sZb8n" }) };
const resultsPath = "/v1/messages/batches/{id}/results";
const route = routeOf<MessageBatchDeps, Caller>();

async function findBatch({ batches }: MessageBatchDeps, { account }: Caller, id: string): Promise<StoredBatch> {
  const batch = await batches.find(account, id);
  return found(batch?.kind === "anthropic" ? batch : undefined, "message batch");
}

/** The parts of the results, in the order in which they were recorded. */
const resultsOf = ({ outputs, failures }: StoredBatch) => [...outputs, ...failures];

function refuseRepeated(requests: readonly { readonly customId: string }[]): void {
  const seen = new Set<string>();
  for (const [at, { customId }] of requests.entries()) {
    const param = `requests[${at}].custom_id`;
    if (seen.has(customId)) throw invalidValue(param, `${param}: an earlier request has the id '${customId}'.`);
    seen.add(customId);
  }
}

/** Refuses a request that is no message, as a line of a file would be. */
function checkMessage(line: Buffer, at: number): void {
  try {
    parseLine({ kind: "anthropic", endpoint }, line);
  } catch (error) {
    if (!(error instanceof LineRefused)) throw error;
    const { message, param } = error.problem;
    const field = `requests[${at}]${param === null ? "" : `.${param.replace(/^body/, "params")}`}`;
    throw invalidValue(field, `${field}: ${message}`);
  }
}

interface PageQuery {
  readonly limit: number;
  readonly afterId?: string | undefined;
  readonly beforeId?: string | undefined;
}

/** A page after, or directly before, the batch that the query names. */
async function readPage({ batches }: MessageBatchDeps, { account }: Caller, { limit, afterId, beforeId }: PageQuery) {
  if (afterId !== undefined && beforeId !== undefined)
    throw invalidValue("before_id", "before_id: omit either this parameter or after_id.");
  const id = beforeId ?? afterId;
  const param = beforeId === undefined ? "after_id" : "before_id";
  if (id !== undefined && (await batches.find(account, id))?.kind !== "anthropic")
    throw invalidValue(param, `${param}: this account has no message batch '${id}'.`);
  const order = beforeId === undefined ? "desc" : "asc";
  const read = await batches.list(account, "anthropic", { limit: limit + 1, after: id, order });
  const page = read.slice(0, limit).map(renderMessageBatch);
  const data = order === "asc" ? page.toReversed() : page;
  return {
    data,
    has_more: read.length > limit,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

/** Deletes the requests and the results. What cannot be deleted now expires. */
async function deleteFiles({ files: { batchFiles }, log }: MessageBatchDeps, batch: StoredBatch): Promise<void> {
  const { account, inputFile, outputFile } = batch;
  await batchFiles.removeParts(resultsOf(batch));
  for (const file of [inputFile, outputFile])
    if (file !== undefined)
      await batchFiles.delete(account, file).catch((error: unknown) => {
        log.warn({ err: error, file }, "a file of a deleted batch stays until it expires");
      });
}

const batches = {
  name: "Message Batches",
  description: "Messages that run when workers are idle, within 24 hours, in Anthropic's interface",
  routes: [
    route({
      method: "post",
      path: "/v1/messages/batches",
      operationId: "createMessageBatch",
      summary: "Create a batch of messages",
      scope: "inference",
      headers: batchHeaders,
      callbacks: messageBatchCallbacks,
      requestBody: { required: true, content: json(newMessageBatch, { examples }) },
      answers: { 200: "The batch" },
      answer: messageBatchObject,
      answerHeaders: createdOnceHeaders.extend(messagesRequestId),
      errors: [402, 409],
      handle: async (deps, call) =>
        renderMessageBatch(
          await createBatch(deps, call, newMessageBatch, ({ requests }) => {
            if (requests.length > maxRequests) throw tooManyInline("requests", maxRequests);
            refuseRepeated(requests);
            const input = requests.map(({ customId, params: body }) => ({ customId, body }));
            return { kind: "anthropic", endpoint, input, metadata: {}, check: checkMessage };
          }),
        ),
    }),
    route({
      method: "get",
      path: "/v1/messages/batches",
      operationId: "listMessageBatches",
      summary: "The account's batches of messages, newest first",
      query: {
        limit: wholeNumber(z.int().min(1).max(1_000).default(20)),
        after_id: text.optional().describe("`last_id` of a page: the batches after it"),
        before_id: text.optional().describe("`first_id` of a page: the batches directly before it"),
      },
      answers: { 200: "The batches" },
      answer: z
        .object({
          data: z.array(messageBatchObject),
          has_more: z.boolean(),
          first_id: z.string().nullable(),
          last_id: z.string().nullable(),
        })
        .meta({ id: "MessageBatchList" }),
      handle: (deps, { who, query }) => readPage(deps, who, query),
    }),
    route({
      method: "get",
      path: "/v1/messages/batches/{id}",
      operationId: "getMessageBatch",
      summary: "One batch of messages",
      params,
      answers: { 200: "The batch" },
      answer: messageBatchObject,
      handle: async (deps, { who, params: { id } }) => renderMessageBatch(await findBatch(deps, who, id)),
    }),
    route({
      method: "post",
      path: "/v1/messages/batches/{id}/cancel",
      operationId: "cancelMessageBatch",
      summary: "Cancel a batch of messages",
      description:
        "Requests that run are finished and charged; the others are not run. A batch that has ended otherwise is a 409.",
      params,
      answers: { 200: "The batch" },
      answer: messageBatchObject,
      errors: [409],
      async handle(deps, { who, params: { id } }) {
        await findBatch(deps, who, id);
        return renderMessageBatch(found((await deps.batches.cancel(who.account, id)) ?? undefined, "message batch"));
      },
    }),
    route({
      method: "delete",
      path: "/v1/messages/batches/{id}",
      operationId: "deleteMessageBatch",
      summary: "Delete a batch of messages that has ended, with its results",
      params,
      answers: { 200: "The batch was deleted" },
      answer: z
        .object({ id: z.string(), type: z.literal("message_batch_deleted") })
        .meta({ id: "DeletedMessageBatch" }),
      errors: [409],
      async handle(deps, { who, params: { id } }) {
        const batch = await findBatch(deps, who, id);
        if (!(await deps.batches.delete(who.account, id))) throw conflict("The batch has not ended; cancel it first.");
        await deleteFiles(deps, batch);
        return { id, type: "message_batch_deleted" as const };
      },
    }),
  ],
  operations: {
    [`GET ${resultsPath}`]: operation("getMessageBatchResults", "The results of a batch of messages, in any order", {
      ...native,
      params: { ...native.params, path: z.object(params) },
      errors: [401, 404, 409, 410, 429, 500, 503],
      responses: {
        "200": {
          description: "A JSON line for each request, with its `custom_id` and its `result`",
          headers: z.object({ ...requestId, ...messagesRequestId }),
          content: { "application/x-jsonl": { schema: binary } },
        },
      },
    }),
  },
};

export const messageBatchGroup = groupOf(batches, { errors: [401, 429, 500, 503], ...native });

async function authorize(
  { keys }: MessageBatchDeps,
  req: Request,
  res: Response,
  { scope }: Pick<Route<MessageBatchDeps, Caller>, "scope"> = {},
): Promise<Caller> {
  const caller = await authenticate(keys, req, "messages");
  await keys.countJobRequest(caller, localsOf(res).requestId);
  res.set("cache-control", "no-store");
  requireScope(caller, scope);
  return caller;
}

/** Streams the parts of the results, one after the other. */
async function sendResults(deps: MessageBatchDeps, req: Request<{ id: string }>, res: Response): Promise<void> {
  const { id } = req.params;
  await sendStored({ ...deps, res, file: id }, async (signal) => {
    const batch = await findBatch(deps, await authorize(deps, req as Request, res), id);
    if (!isEnded(batch)) throw conflict("The batch has not ended; its results are not available yet.");
    const parts = resultsOf(batch);
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    const open = async (range?: { start: number }) => deps.files.batchFiles.open({ id, parts }, range?.start, signal);
    const chunks = req.method === "HEAD" ? undefined : await beginReading(open, undefined, 0, bytes - 1);
    res.status(200).set({ "content-type": "application/x-jsonl", "content-length": String(bytes) });
    if (!chunks) return void res.end();
    await pipeline(chunks, res);
  });
}

/** Has to be mounted after the routes of messages, which set `request-id`. */
export function messageBatchRoutes(deps: MessageBatchDeps): Router {
  const router = Router();
  const access = { ...deps, payerOf: (caller: Caller) => caller };
  router.use(
    routerOf(batches.routes, deps, { ...access, authorize: (req, res, wanted) => authorize(deps, req, res, wanted) }),
  );
  const at = router.route(resultsPath.replace("{id}", ":id"));
  at.get((req: Request<{ id: string }>, res) => sendResults(deps, req, res));
  at.all(methodNotAllowed("GET", "HEAD"));
  router.use(databaseUnavailable);
  return router;
}
