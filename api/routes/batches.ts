import { z } from "zod";
import { batchEndpoints, renderBatch, type StoredBatch } from "#batches";
import { invalidValue } from "#errors";
import { metadataShape } from "../async-call.ts";
import { inputFields } from "../http/fields.ts";
import { wholeNumber } from "../http/input.ts";
import { createdOnceHeaders } from "../http/openapi/headers.ts";
import { json } from "../http/openapi/operation.ts";
import { found, idListOf, idPage, text } from "../http/page.ts";
import { type AccountDeps, route } from "./account/route.ts";
import { batchObject } from "./batch-object.ts";
import { batchHeaders, createBatch } from "./create-batch.ts";
import { batchCallbacks } from "./webhook-events.ts";

/** Batches in the shape of OpenAI's interface (docs/api/batches.md). A key sees all batches of its account. */

const endpoints = batchEndpoints.filter((path) => path !== "/v1/messages") as [string, ...string[]];
const lifeSeconds = z.int().min(3_600).max(2_592_000);

const newBatch = inputFields({
  input_file_id: text.optional().describe("A file of purpose `batch`"),
  requests: z
    .array(inputFields({ custom_id: z.string(), body: z.record(z.string(), z.unknown()) }))
    .min(1)
    .optional()
    .describe("The calls themselves, instead of a file: the whole body is at most 25 MB"),
  endpoint: z.enum(endpoints),
  completion_window: z.literal("24h"),
  metadata: metadataShape.nullish().describe("At most 16 pairs, names of 64 and values of 512 characters"),
  output_expires_after: inputFields({ anchor: z.literal("created_at"), seconds: lifeSeconds })
    .optional()
    .describe("The life of the output and error files. Default: 30 days"),
}).meta({ id: "NewBatch" });

const examples = {
  inline: {
    summary: "Two calls, without a file",
    value: {
      endpoint: "/v1/embeddings",
      completion_window: "24h",
      requests: [
        { custom_id: "1", body: { model: "local/embeddings", input: "A lighthouse" } },
        { custom_id: "2", body: { model: "local/embeddings", input: "A harbor" } },
      ],
    },
  },
};

const params = { id: z.string().meta({ example: "batch_2kT9vQ4mXw7pLr3sZb8n" }) };

async function findBatch({ batches }: AccountDeps, account: string, id: string): Promise<StoredBatch> {
  const batch = await batches.find(account, id);
  return found(batch?.kind === "openai" ? batch : undefined, "batch");
}

type NewBatch = z.output<typeof newBatch>;

/** The id of the input file, or its requests. Throws 400, 404, 410. */
async function inputOf({ files }: AccountDeps, account: string, { inputFileId, requests }: NewBatch) {
  if (requests && inputFileId === undefined) return requests;
  if (requests) throw invalidValue("requests", "requests: omit either this field or input_file_id.");
  if (inputFileId === undefined) throw invalidValue("input_file_id", "input_file_id: is missing.");
  const { id, purpose } = await files.batchFiles.find(account, inputFileId, "input_file_id");
  if (purpose === "batch") return id;
  throw invalidValue("input_file_id", `input_file_id: the file has the purpose '${purpose}'; it must be 'batch'.`);
}

export const batchRoutes = [
  route({
    method: "post",
    path: "/v1/batches",
    operationId: "createBatch",
    summary: "Create a batch: calls that run when workers are idle, within 24 hours",
    scope: "inference",
    headers: batchHeaders,
    callbacks: batchCallbacks,
    requestBody: { required: true, content: json(newBatch, { examples }) },
    answers: { 200: "The batch" },
    answer: batchObject,
    answerHeaders: createdOnceHeaders,
    errors: [402, 404, 409, 410],
    handle: async (deps, call) =>
      renderBatch(
        await createBatch(deps, call, newBatch, async (body) => {
          const { endpoint, metadata, outputExpiresAfter } = body;
          const input = await inputOf(deps, call.who.account, body);
          const outputLifeSeconds = outputExpiresAfter?.seconds;
          return { kind: "openai", endpoint, input, metadata: metadata ?? {}, outputLifeSeconds };
        }),
      ),
  }),
  route({
    method: "get",
    path: "/v1/batches",
    operationId: "listBatches",
    summary: "The account's batches, newest first",
    query: {
      limit: wholeNumber(z.int().min(1).max(100).default(20)),
      after: text.optional().describe("`last_id` of the previous page"),
    },
    answers: { 200: "The batches" },
    answer: idListOf(batchObject).meta({ id: "BatchList" }),
    handle: ({ batches }, { who: { account }, query }) =>
      idPage(query, async (page) => (await batches.list(account, "openai", page)).map(renderBatch)),
  }),
  route({
    method: "get",
    path: "/v1/batches/{id}",
    operationId: "getBatch",
    summary: "One batch",
    params,
    answers: { 200: "The batch" },
    answer: batchObject,
    handle: async (deps, { who: { account }, params: { id } }) => renderBatch(await findBatch(deps, account, id)),
  }),
  route({
    method: "post",
    path: "/v1/batches/{id}/cancel",
    operationId: "cancelBatch",
    summary: "Cancel a batch",
    description:
      "Lines that run are finished and charged; the others are not run. The files have what finished. A batch that has ended otherwise is a 409.",
    params,
    answers: { 200: "The batch" },
    answer: batchObject,
    errors: [409],
    async handle(deps, { who: { account }, params: { id } }) {
      await findBatch(deps, account, id);
      return renderBatch(found((await deps.batches.cancel(account, id)) ?? undefined, "batch"));
    },
  }),
];
