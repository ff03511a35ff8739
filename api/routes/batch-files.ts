import { pipeline } from "node:stream/promises";
import { type Request, type Response, Router } from "express";
import { z } from "zod";
import type { Batches } from "#batches";
import { conflict } from "#errors";
import { type BatchFile, batchFilePurposes, type Files } from "#files";
import { ofForm } from "#formats";
import type { Caller } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import { authenticate } from "../admission/authenticate.ts";
import { arriveAndAuthenticate, type UploadSlotDeps, withUploadSlot } from "../admission/upload-slot.ts";
import { sendContinue } from "../http/body.ts";
import { databaseUnavailable, methodNotAllowed } from "../http/errors.ts";
import { fields, tag, unixSecondsOfMs } from "../http/fields.ts";
import { withFileForm } from "../http/file-form.ts";
import { parse, wholeNumber } from "../http/input.ts";
import { groupOf } from "../http/openapi/describe.ts";
import { requestId } from "../http/openapi/headers.ts";
import { binary, operation } from "../http/openapi/operation.ts";
import { idListOf, idPage, text } from "../http/page.ts";
import { beginReading, sendStored } from "../http/read-stored.ts";
import { routeOf, routerOf } from "../http/route.ts";

/** Files for batches, in the shape of OpenAI's interface for files (docs/api/batch-files.md). */

interface BatchFileDeps extends UploadSlotDeps {
  readonly files: Pick<Files, "batchFiles">;
  readonly batches: Pick<Batches, "readerOf">;
  readonly spoolBudget: ByteBudget;
  readonly bodyBudget: ByteBudget;
}

const limitBytes = 200 * 1024 * 1024;
const formRules = { fileBytes: limitBytes, formBytes: limitBytes, files: { file: 1 } };
const receiveTimeoutMs = 20 * 60_000;
/** OpenAI's limit. A page may have fewer files even if more follow. */
const maxLimit = 10_000;
const maxListed = 1_000;

const fileObject = fields({
  id: z.string().describe("file-..."),
  object: tag("file"),
  bytes: z.int(),
  created_at: unixSecondsOfMs,
  expires_at: unixSecondsOfMs,
  filename: z.string(),
  purpose: z.enum(batchFilePurposes),
  status: tag("processed"),
}).meta({ id: "BatchFile" });

const anchor = "expires_after[anchor]";
const seconds = "expires_after[seconds]";

/** The other fields of the form. */
const newFile = z
  .strictObject({
    purpose: z.literal("batch", {
      error: "only 'batch' is supported; files as input of models are sent to /v1/uploads",
    }),
    [anchor]: z.literal("created_at").optional(),
    [seconds]: wholeNumber(z.int().min(3_600).max(2_592_000)).optional().describe("Default: 30 days"),
  })
  .refine((form) => form[seconds] === undefined || form[anchor] !== undefined, { path: [anchor], error: "is missing" })
  .refine((form) => form[anchor] === undefined || form[seconds] !== undefined, {
    path: [seconds],
    error: "is missing",
  });

const fileName = z.object({
  file: z
    .string()
    .max(255, "the name of the file has more than 255 characters")
    .refine((name) => name.isWellFormed() && !/\p{Cc}/u.test(name), "the name of the file has control characters"),
});

const route = routeOf<BatchFileDeps, Caller>();
const params = { id: z.string().meta({ example: "file-..." }) };
const contentPath = "/v1/files/{id}/content";

const batchFiles = {
  name: "Files for batches",
  description: "The input and the output of batches; stored for 30 days or until `expires_after`",
  routes: [
    route({
      method: "post",
      path: "/v1/files",
      operationId: "createBatchFile",
      summary: "Upload the input of a batch: JSON lines, up to 200 MB",
      requestBody: {
        required: true,
        content: {
          "multipart/form-data": {
            schema: z.object({ file: binary, ...newFile.shape }),
            example: { file: "requests.jsonl", purpose: "batch" },
          },
        },
      },
      answers: { 200: "The file" },
      answer: fileObject,
      errors: [403, 429],
      handle: (deps, { who, req, res }) =>
        withUploadSlot(deps, { who, req, res }, ({ caller, requestId: id }) =>
          receive(deps, { req, res, account: caller.account, requestId: id }),
        ),
    }),
    route({
      method: "get",
      path: "/v1/files",
      operationId: "listBatchFiles",
      summary: "The account's files for batches that have not expired",
      query: {
        purpose: z.enum(batchFilePurposes).optional(),
        limit: wholeNumber(z.int().min(1).max(maxLimit).default(maxLimit)).describe(
          `A page has at most ${maxListed} files`,
        ),
        order: z.enum(["asc", "desc"]).default("desc").describe("By creation; `desc` is newest first"),
        after: text.optional().describe("`last_id` of the previous page"),
      },
      answers: { 200: "The files" },
      answer: idListOf(fileObject).meta({ id: "BatchFileList" }),
      handle: ({ files }, { who: { account }, query: { purpose, limit, order, after } }) =>
        idPage({ limit: Math.min(limit, maxListed), after }, (page) =>
          files.batchFiles.list(account, { ...page, order }, purpose),
        ),
    }),
    route({
      method: "get",
      path: "/v1/files/{id}",
      operationId: "getBatchFile",
      summary: "One file for batches",
      params,
      answers: { 200: "The file" },
      answer: fileObject,
      errors: [410],
      handle: ({ files }, { who: { account }, params: { id } }) => files.batchFiles.find(account, id),
    }),
    route({
      method: "delete",
      path: "/v1/files/{id}",
      operationId: "deleteBatchFile",
      summary: "Delete a file for batches immediately",
      params,
      answers: { 200: "The file was deleted" },
      answer: fields({ id: z.string(), object: tag("file"), deleted: z.literal(true) }).meta({
        id: "DeletedBatchFile",
      }),
      errors: [409, 410],
      async handle({ files, batches }, { who: { account }, params: { id } }) {
        const batch = await batches.readerOf(account, id);
        if (batch !== undefined) throw conflict(`The file is the input of ${batch}, which has not ended.`);
        await files.batchFiles.delete(account, id);
        return { id, deleted: true as const };
      },
    }),
  ],
  operations: {
    [`GET ${contentPath}`]: operation("getBatchFileContent", "The content of a file for batches", {
      params: { path: z.object(params) },
      errors: [401, 404, 410, 500, 503],
      responses: {
        "200": {
          description: "The bytes of the file",
          headers: z.object({ ...requestId, "Content-Disposition": z.string().describe("Contains the file name") }),
          content: { "application/octet-stream": { schema: binary } },
        },
      },
    }),
  },
};

export const batchFileGroup = groupOf(batchFiles, { errors: [401, 500, 503], isRecorded: true });

/** One `POST /v1/files`. The file is on disk until the whole form has arrived, so a refused one is never stored. */
function receive(
  { files, spoolBudget, clock }: BatchFileDeps,
  { req, res, account, requestId: id }: { req: Request; res: Response; account: string; requestId: string },
) {
  sendContinue(req, res);
  const form = { rules: formRules, share: spoolBudget.share(account), clock, timeoutMs: receiveTimeoutMs };
  return withFileForm(req, form, async ({ fields: sent, files: [file] }) => {
    const { [seconds]: lifetimeSeconds } = parse(newFile, ofForm(sent));
    if (!file) throw new Error("a form without a file");
    const { file: filename } = parse(fileName, { file: file.name || "file" });
    const lifetimeMs = lifetimeSeconds === undefined ? undefined : lifetimeSeconds * 1_000;
    const { bytes, body } = file;
    return files.batchFiles.store({ account, requestId: id, filename, lifetimeMs, bytes, body });
  });
}

export function batchFileRoutes(deps: BatchFileDeps): Router {
  const router = Router();
  const authorize = arriveAndAuthenticate(deps);
  router.use(routerOf(batchFiles.routes, deps, { ...deps, payerOf: (caller) => caller, authorize }));
  const at = router.route(contentPath.replace("{id}", ":id"));
  at.get((req: Request<{ id: string }>, res) => {
    const { id } = req.params;
    return sendStored({ ...deps, res, file: id }, async (signal) => {
      const { account } = await authenticate(deps.keys, req as Request);
      await sendContent(deps, await deps.files.batchFiles.find(account, id), { req, res, signal });
    });
  });
  at.all(methodNotAllowed("GET", "HEAD"));
  router.use(databaseUnavailable);
  return router;
}

/** Streams the content of a file, over its parts. */
async function sendContent(
  { files }: BatchFileDeps,
  file: BatchFile,
  { req, res, signal }: { req: Request<{ id: string }>; res: Response; signal: AbortSignal },
): Promise<void> {
  const open = async (range?: { start: number }) => files.batchFiles.open(file, range?.start, signal);
  const chunks = req.method === "HEAD" ? undefined : await beginReading(open, undefined, 0, file.bytes - 1);
  res.attachment(file.filename);
  res.status(200).set({ "content-type": "application/octet-stream", "content-length": String(file.bytes) });
  if (!chunks) return void res.end();
  await pipeline(chunks, res);
}
