import { z } from "zod";
import { unitNanoUsd } from "#money";
import type { Batch } from "#payments";
import { fields, orNull, tag, unixSeconds, usd } from "../../http/fields.ts";
import { listOf, pageQuery, readPage, wholeList } from "../../http/page.ts";
import { route } from "./route.ts";

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
  // In the token's smallest unit, because only the mint knows its decimals.
  received: each.received === undefined ? null : String(each.received),
});

export const buybackRoutes = [
  route({
    method: "get",
    path: "/buyback/accruals",
    operationId: "listAccruals",
    summary: "By token, what is in no batch yet",
    query: {},
    answers: { 200: "All of them" },
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
    summary: "Purchases, newest first",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(batch).meta({ id: "BuybackBatchList" }),
    handle: ({ payments: { buyback } }, { query }) =>
      readPage(query, async (page) => (await buyback.list(page)).map(shown)),
  }),
];
