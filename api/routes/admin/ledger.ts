import type { RequestHandler } from "express";
import { z } from "zod";
import { notFound } from "#errors";
import { entryKinds, formatUsd, type Money } from "#money";
import { pageQuery, parse } from "../../http/input.ts";
import { renderEntry } from "./entry.ts";
import { readList } from "./list.ts";

const ledgerQuery = pageQuery.extend({ kind: z.enum(entryKinds).optional() });

const checkQuery = z.strictObject({ full: z.enum(["true", "false"]).optional() });

export function ledgerHandlers({ money }: { money: Money }) {
  return {
    list: async (req, res) => {
      const { kind, ...page } = parse(ledgerQuery, req.query);
      const { id } = req.params;
      if (!(await money.account(id))) throw notFound("account");
      res.json(await readList(page, (more) => money.ledger(id, { ...more, ...(kind && { kind }) }), renderEntry));
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
