import { z } from "zod";
import { batchKinds, batchStatuses, type ListedBatch, openStatuses } from "#batches";
import type { Clock } from "#platform/clock";
import { fields, orNull, tag, unixSeconds, usd } from "../../http/fields.ts";
import { found, listOf, pageQuery, readPage, text } from "../../http/page.ts";
import { accountIdOf } from "./accounts.ts";
import { idOf, route } from "./route.ts";

const batch = fields({
  id: z.string().meta({ example: "batch_2kT9vQ4mXw7pLr3sZb8n" }),
  object: tag("account_batch"),
  account: z.string(),
  key: z.string().describe("The key that created it"),
  kind: z.enum(batchKinds).describe("The interface in which it was created"),
  endpoint: z.string(),
  model: orNull(z.string()).describe("If all lines name the same model"),
  status: z.enum(batchStatuses),
  paused: orNull(z.string()).describe("Why no line begins, such as `insufficient_balance`"),
  paused_at: orNull(unixSeconds),
  lines: z.int().describe("0 until the file is validated, unless it was written by the service"),
  counts: fields({ succeeded: z.int(), failed: z.int(), expired: z.int(), cancelled: z.int() }),
  cost_usd: usd,
  estimated_max_cost_usd: usd.describe("Known once the file is validated"),
  created_at: unixSeconds,
  expires_at: unixSeconds,
  progress_at: orNull(unixSeconds).describe("When lines were recorded last, or when its turn came"),
  claimed_by: orNull(z.string()).describe("The process that works at it at the moment"),
}).meta({ id: "AccountBatch" });

/** A claim that was not renewed is that of a dead process. */
const shown = ({ claimedBy, dueAt, paused, pausedAt, ...stored }: ListedBatch, clock: Clock) => ({
  ...stored,
  id: stored._id,
  paused,
  pausedAt: paused === undefined ? undefined : pausedAt,
  claimedBy: dueAt && dueAt.getTime() > clock.now() ? claimedBy : undefined,
  estimatedMaxCostNanoUsd: stored.estimateNanoUsd,
});

/** Batches of `/v1/batches` and `/v1/messages/batches`, of all accounts. */
export const batchRoutes = [
  route({
    method: "get",
    path: "/batches",
    operationId: "listOpenBatches",
    summary: "Batches of all accounts that have not ended, oldest first",
    query: {
      ...pageQuery,
      account: text.optional().describe("The account's id, or its whole name in any case"),
      status: z.enum(openStatuses).optional(),
    },
    answers: { 200: "A page" },
    answer: listOf(batch).meta({ id: "AccountBatchList" }),
    async handle({ money, batches, clock }, { query: { account: wanted, status, ...page } }) {
      const account = wanted === undefined ? undefined : await accountIdOf(money, wanted);
      return readPage(page, async (asked) =>
        (await batches.listOpen({ ...asked, account, status })).map((each) => shown(each, clock)),
      );
    },
  }),
  route({
    method: "post",
    path: "/batches/{id}/cancel",
    operationId: "cancelAccountBatch",
    summary: "Cancel a batch of an account",
    description: "Lines that run are finished and charged; the others are not run.",
    params: idOf("The batch's id"),
    answers: { 200: "The batch" },
    answer: batch,
    errors: [409],
    async handle({ batches, clock }, { params: { id } }) {
      const { account } = found((await batches.findOfAny(id)) ?? undefined, "batch");
      return shown(found((await batches.cancel(account, id)) ?? undefined, "batch"), clock);
    },
  }),
];
