import type { RequestHandler } from "express";
import { z } from "zod";
import { notFound } from "#errors";
import { entryKinds, formatUsd, type Money } from "#money";
import { pageQuery, parse, usd } from "../../http/input.ts";
import { renderEntry, renderPage } from "./render.ts";

const newCredit = z.strictObject({
  amount_usd: usd,
  idempotency_key: z.string().min(1).max(255),
  reason: z.string().min(1).max(1000).optional(),
});
const ledgerQuery = pageQuery.extend({ kind: z.enum(entryKinds).optional() });
const checkQuery = z.strictObject({ full: z.enum(["true", "false"]).optional() });

export function ledgerHandlers({ money }: { money: Money }) {
  return {
    credit: async (req, res) => {
      const { amount_usd: amountNanoUsd, idempotency_key: idempotencyKey, reason } = parse(newCredit, req.body);
      const { entry, created } = await money.credit(req.params.id, {
        amountNanoUsd,
        idempotencyKey,
        ...(reason !== undefined && { reason }),
      });
      res.status(created ? 201 : 200).json(renderEntry(entry));
    },

    list: async (req, res) => {
      const { kind, ...page } = parse(ledgerQuery, req.query);
      const { id } = req.params;
      if (!(await money.account(id))) throw notFound("account");
      res.json(await renderPage(page, (more) => money.ledger(id, { ...more, ...(kind && { kind }) }), renderEntry));
    },

    request: async (req, res) => {
      const entry = await money.entry(req.params.id);
      if (!entry) throw notFound("request");
      res.json(renderEntry(entry));
    },

    check: async (req, res) => {
      const { full } = parse(checkQuery, req.query);
      const check = await money.check({ full: full === "true" });
      res.json({
        ok: check.ok,
        accounts: check.accounts,
        difference_usd: formatUsd(check.differenceNanoUsd),
        open_holds: check.openHolds,
        overdue_holds: check.overdueHolds,
        oldest_open_hold_seconds: check.oldestOpenHoldSeconds,
        undecided: check.undecided,
      });
    },
  } satisfies Record<string, RequestHandler<{ id: string }>>;
}
