import type { RequestHandler } from "express";
import { z } from "zod";
import { formatUsd } from "#money";
import type { Payments, UnusedPayment } from "#payments";
import { pageQuery, parse, usd } from "../../http/input.ts";
import { renderEntry, renderPage, unixSeconds } from "./render.ts";

/** `true`: only payments that the payer can no longer use. */
const over = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");
const listQuery = pageQuery.extend({ over });
const totalQuery = z.strictObject({ over });

const newRefund = z.strictObject({
  amount_usd: usd,
  transaction: z.string().max(100),
  reason: z.string().min(1).max(1000).optional(),
});

const render = (owed: UnusedPayment) => ({
  id: owed.memo,
  object: "owed",
  account: owed.account,
  payer: owed.payer || null,
  transaction: owed.transaction || null,
  paid_usd: formatUsd(owed.paidNanoUsd),
  owed_usd: formatUsd(owed.owedNanoUsd),
  paid_at: unixSeconds(owed.paidAt),
  good_until: unixSeconds(owed.goodUntil),
});

/** Unused remainders of payments on chain, and their refunds. */
export function owedHandlers({ payments: { owed } }: { payments: Pick<Payments, "owed"> }) {
  return {
    /** Ordered by id, unlike other lists, which are newest first. */
    list: async (req, res) => {
      const { over, ...page } = parse(listQuery, req.query);
      const read = async (more: typeof page) =>
        (await owed.list({ ...more, over })).map((each) => ({ ...each, id: each.memo }));
      res.json(await renderPage(page, read, render));
    },

    total: async (req, res) => {
      const { nanoUsd, payments } = await owed.total(parse(totalQuery, req.query));
      res.json({ object: "owed_total", owed_usd: formatUsd(nanoUsd), payments });
    },

    refund: async (req, res) => {
      const { amount_usd: nanoUsd, transaction, reason } = parse(newRefund, req.body);
      const { entry, created } = await owed.refund(req.params.id, { nanoUsd, transaction, reason });
      res.status(created ? 201 : 200).json(renderEntry(entry));
    },
  } satisfies Record<string, RequestHandler<{ id: string }>>;
}
