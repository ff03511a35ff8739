import { z } from "zod";
import { unitNanoUsd } from "#money";
import type { Batch } from "#payments";
import { fields, inputFields, orNull, tag, unixSeconds, usd, usdInput } from "../../http/fields.ts";
import { flag } from "../../http/input.ts";
import { listOf, pageQuery, readPage, wholeList } from "../../http/page.ts";
import { entry, shownMovement } from "./entry.ts";
import { idOf, route } from "./route.ts";

const owed = fields({
  id: z.string(),
  object: tag("owed"),
  account: z.string(),
  payer: z.string().nullable(),
  transaction: z.string().nullable(),
  paid_usd: usd,
  owed_usd: usd,
  paid_at: unixSeconds,
  good_until: unixSeconds,
}).meta({ id: "Owed" });

const owedTotal = fields({ object: tag("owed_total"), owed_usd: usd, payments: z.int() }).meta({ id: "OwedTotal" });

const newRefund = inputFields({
  amount_usd: usdInput,
  transaction: z.string().max(100),
  reason: z.string().min(1).max(1000).optional(),
});

const over = flag.optional().describe("Only amounts that their payer can no longer use");

const accrual = fields({ object: tag("accrual"), token: z.string(), amount_usd: usd, entries: z.int() }).meta({
  id: "Accrual",
});

const batch = fields({
  id: z.string(),
  object: tag("batch"),
  token: z.string(),
  state: z.string(),
  amount_usd: usd,
  entries: z.int(),
  created_at: unixSeconds,
  executor: orNull(z.string()),
  transaction: orNull(z.string()),
  spent_usd: orNull(usd),
  received: orNull(z.string()).describe("In the token's smallest unit"),
  done_at: orNull(unixSeconds),
}).meta({ id: "BuybackBatch" });

const shown = (each: Batch) => ({
  ...each,
  amountNanoUsd: each.nanoUsd,
  transaction: each.signature,
  spentNanoUsd: each.spent === undefined ? null : each.spent * unitNanoUsd,
  // The amount is in the token's smallest unit, because only the mint knows its decimals.
  received: each.received === undefined ? null : String(each.received),
});

/** Unused remainders of payments on chain and their refunds, and buybacks. */
export const paymentRoutes = [
  route({
    method: "get",
    path: "/owed",
    operationId: "listOwed",
    summary: "Unused amounts of x402 payments, in the order of their ids",
    query: { ...pageQuery, over },
    answers: { 200: "A page" },
    answer: listOf(owed).meta({ id: "OwedList" }),
    handle: ({ payments: { unused } }, { query: { over: expiredOnly = false, ...query } }) =>
      readPage(query, async (page) =>
        (await unused.list({ ...page, expiredOnly })).map((payment) => ({
          ...payment,
          id: payment.memo,
          payer: payment.payer || null,
          transaction: payment.transaction || null,
          owedNanoUsd: payment.unusedNanoUsd,
          goodUntil: payment.usableUntil,
        })),
      ),
  }),
  route({
    method: "get",
    path: "/owed/total",
    operationId: "getOwedTotal",
    summary: "Sum of the unused amounts of x402 payments",
    query: { over },
    answers: { 200: "The sum" },
    answer: owedTotal,
    async handle({ payments: { unused } }, { query: { over: expiredOnly = false } }) {
      const { nanoUsd, payments } = await unused.total({ expiredOnly });
      return { owedNanoUsd: nanoUsd, payments };
    },
  }),
  route({
    method: "post",
    path: "/owed/{id}/refunds",
    operationId: "recordRefund",
    summary: "Record a refund that was paid on chain, once per transaction",
    params: idOf("The payment's id"),
    body: newRefund,
    answers: { 200: "The entry that was already recorded for the transaction", 201: "The new entry" },
    answer: entry,
    errors: [409],
    async handle({ payments: { unused } }, { params: { id }, body: { amountNanoUsd: nanoUsd, ...refund }, res }) {
      return shownMovement(res, await unused.refund(id, { ...refund, nanoUsd }));
    },
  }),
  route({
    method: "get",
    path: "/buyback/accruals",
    operationId: "listAccruals",
    summary: "Accrued amounts that are in no batch yet, by token",
    query: {},
    answers: { 200: "The amounts of all tokens" },
    answer: listOf(accrual).meta({ id: "AccrualList" }),
    async handle({ payments: { buyback } }) {
      const accrued = await buyback.accrued();
      return wholeList(accrued.map((each) => ({ ...each, amountNanoUsd: each.nanoUsd })));
    },
  }),
  route({
    method: "get",
    path: "/buyback/batches",
    operationId: "listBatches",
    summary: "Batches of buybacks, newest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(batch).meta({ id: "BuybackBatchList" }),
    handle: ({ payments: { buyback } }, { query }) =>
      readPage(query, async (page) => (await buyback.list(page)).map(shown)),
  }),
];
