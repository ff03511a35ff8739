import { z } from "zod";
import { type Batches, batchKinds, renderBatch, type StoredBatch } from "#batches";
import type { Files } from "#files";
import type { Caller } from "#keys";
import type { Money } from "#money";
import { fields, orNull, tag, unixSecondsOfMs } from "../../http/fields.ts";
import { found, listOf, pageQuery, readPage, wholeList } from "../../http/page.ts";
import { routeOf } from "../../http/route.ts";
import { batchObject } from "../batch-object.ts";
import { fileFields, shownFile } from "../file-object.ts";
import { type createModelPerformance, modelPerformance } from "./model-performance.ts";

export interface OwnDeps {
  readonly modelPerformance: ReturnType<typeof createModelPerformance>;
  readonly files: Pick<Files, "generated">;
  readonly money: Money;
  readonly batches: Pick<Batches, "list" | "find">;
  readonly publicUrl: () => string;
}

const file = fields({
  ...fileFields,
  object: tag("file"),
  request: z.string(),
  model: orNull(z.string()),
  created_at: unixSecondsOfMs,
});

/** Batches of both interfaces in one shape. Unlike its own interface, this shows the counts of a message batch that runs. */
const batch = batchObject.extend({ kind: z.enum(batchKinds) });
const shownBatch = (stored: StoredBatch) => ({ ...renderBatch(stored), kind: stored.kind });

const route = routeOf<OwnDeps, Caller>();

/** Routes that only the page uses: files that calls generated, batches of both interfaces, and how models perform. */
export const ownRoutes = [
  route({
    method: "get",
    path: "/files",
    operationId: "listFiles",
    summary: "Generated files that have not expired, newest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(file),
    handle: ({ files, money, publicUrl }, { who: { account }, query }) =>
      readPage(query, async (page) => {
        const made = await files.generated.list(account, page);
        const requests = [...new Set(made.map(({ requestId }) => requestId))];
        const models = await money.modelsOf(account, requests);
        return made.map((each) => ({
          ...shownFile(each, publicUrl()),
          request: each.requestId,
          model: models.get(each.requestId),
        }));
      }),
  }),
  route({
    method: "get",
    path: "/batches",
    operationId: "listOwnBatches",
    summary: "Batches of both interfaces, newest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(batch),
    handle: ({ batches }, { who: { account }, query }) =>
      readPage(query, async (page) => (await batches.list(account, undefined, page)).map(shownBatch)),
  }),
  route({
    method: "get",
    path: "/batches/{id}",
    operationId: "getOwnBatch",
    summary: "One batch of either interface",
    params: { id: z.string() },
    answers: { 200: "The batch" },
    answer: batch,
    handle: async ({ batches }, { who: { account }, params: { id } }) =>
      shownBatch(found((await batches.find(account, id)) ?? undefined, "batch")),
  }),
  route({
    method: "get",
    path: "/model-performance",
    operationId: "listModelPerformance",
    summary: "How the listed models performed in the last 24 hours, over all accounts",
    query: {},
    answers: { 200: "The complete list" },
    answer: listOf(modelPerformance),
    handle: async ({ modelPerformance: read }) => wholeList(await read()),
  }),
];
