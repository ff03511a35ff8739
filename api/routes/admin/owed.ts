import { z } from "zod";
import { formatUsd } from "#money";
import type { Payments, UnusedPayment } from "#payments";
import { pageQuery, parse, usd } from "../../http/input.ts";
import { type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";
import { renderMovement } from "./render.ts";

/** `true`: only payments that the payer can no longer use. */
const over = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");
const listQuery = pageQuery.extend({ over });
const totalQuery = z.strictObject({ over });

export const newRefund = z.strictObject({
  amount_usd: usd,
  transaction: z.string().max(100),
  reason: z.string().min(1).max(1000).optional(),
});

const render = (payment: UnusedPayment) => ({
  id: payment.memo,
  object: "owed",
  account: payment.account,
  payer: payment.payer || null,
  transaction: payment.transaction || null,
  paid_usd: formatUsd(payment.paidNanoUsd),
  owed_usd: formatUsd(payment.unusedNanoUsd),
  paid_at: unixSeconds(payment.paidAt),
  good_until: unixSeconds(payment.usableUntil),
});

/** Unused remainders of payments on chain, and their refunds. */
export function owedHandlers({ payments: { unused } }: { payments: Pick<Payments, "unused"> }) {
  return {
    /** Ordered by id, unlike other lists, which are newest first. */
    list: (req) => {
      const { over: expiredOnly, ...page } = parse(listQuery, req.query);
      const read = async (more: typeof page) =>
        (await unused.list({ ...more, expiredOnly })).map((each) => ({ ...each, id: each.memo }));
      return renderPage(page, read, render);
    },
    total: async (req) => {
      const { nanoUsd, payments } = await unused.total({ expiredOnly: parse(totalQuery, req.query).over });
      return { object: "owed_total", owed_usd: formatUsd(nanoUsd), payments };
    },
    refund: async (req, res) => {
      const { amount_usd: nanoUsd, transaction, reason } = parse(newRefund, req.body);
      return renderMovement(res, await unused.refund(req.params.id, { nanoUsd, transaction, reason }));
    },
  } satisfies Record<string, Handler>;
}
