import { z } from "zod";
import { formatUsd, unitNanoUsd } from "#money";
import type { Batch, Payments } from "#payments";
import { pageQuery, parse } from "../../http/input.ts";
import { type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";

const noQuery = z.strictObject({});

const render = (batch: Batch) => ({
  id: batch.id,
  object: "batch",
  token: batch.token,
  state: batch.state,
  amount_usd: formatUsd(batch.nanoUsd),
  entries: batch.entries,
  created_at: unixSeconds(batch.createdAt),
  executor: batch.executor ?? null,
  transaction: batch.signature ?? null,
  spent_usd: batch.spent === undefined ? null : formatUsd(batch.spent * unitNanoUsd),
  // In the token's smallest unit, because only the mint knows its decimals.
  received: batch.received === undefined ? null : String(batch.received),
  done_at: batch.doneAt ? unixSeconds(batch.doneAt) : null,
});

export function buybackHandlers({ payments: { buyback } }: { payments: Pick<Payments, "buyback"> }) {
  return {
    /** One per token, so there are no pages. */
    accruals: async (req) => {
      parse(noQuery, req.query);
      const data = (await buyback.accrued()).map(({ token, nanoUsd, entries }) => ({
        object: "accrual",
        token,
        amount_usd: formatUsd(nanoUsd),
        entries,
      }));
      return { object: "list", data, has_more: false, next: null };
    },
    batches: (req) => renderPage(parse(pageQuery, req.query), (page) => buyback.list(page), render),
  } satisfies Record<string, Handler>;
}
