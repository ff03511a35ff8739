import { z } from "zod";
import { invalidValue } from "#errors";
import { entryKinds, formatUsd, type Leases, type Money, requestStatuses } from "#money";
import type { Refusal, Refusals } from "#refusals";
import { pageQuery, parse, timeSpan, usd, wholeNumber } from "../../http/input.ts";
import { found, type Handler, renderCalls, renderPage, unixSeconds } from "../../http/json-routes.ts";
import { renderEntry, renderMovement } from "./render.ts";

export const newCredit = z.strictObject({
  amount_usd: usd,
  idempotency_key: z.string().min(1).max(255),
  reason: z.string().min(1).max(1000).optional(),
});
const ledgerQuery = pageQuery.extend({
  kind: z.enum(entryKinds).optional(),
  restored: z.enum(["true", "false"]).optional(),
});
const text = z.string().min(1).max(200).optional();
const requestsQuery = pageQuery.extend({
  account: text,
  key: text,
  model: text,
  endpoint: text,
  status: z.enum(requestStatuses).optional(),
  code: text,
  upstream: text,
  ...timeSpan,
});
const checkQuery = z.strictObject({
  full: z.enum(["true", "false"]).optional(),
  pages: wholeNumber.pipe(z.int().min(1).max(1_000)).optional(),
  after: pageQuery.shape.after,
});

/** What has no index of its own needs a filter beside it that has one. */
function requireIndex(query: z.infer<typeof requestsQuery>): void {
  if (query.account !== undefined) return;
  if (query.key !== undefined) throw invalidValue("key", "key: needs its account beside it.");
  const hasIndex = query.code !== undefined || query.status === "failed" || query.status === "cancelled";
  for (const field of ["model", "endpoint", "upstream"] as const)
    if (query[field] !== undefined && !hasIndex)
      throw invalidValue(field, `${field}: needs account, code, or status=failed or cancelled beside it.`);
}

/** It is not in the ledger, and shown as an entry of a call would be. */
const renderRefusal = ({ requestId: id, account, key, endpoint, status, code, createdAt }: Refusal) => ({
  id,
  object: "entry",
  account,
  kind: "usage",
  amount_usd: formatUsd(0n),
  created_at: unixSeconds(createdAt),
  request: {
    key,
    endpoint,
    model: null,
    upstream: null,
    attempts: [],
    status: "refused",
    error: code,
    http_status: status,
    usage: {},
    estimated: false,
    queue_ms: null,
    first_token_ms: null,
    total_ms: 0,
    shortfall_usd: formatUsd(0n),
  },
});

interface LedgerDeps {
  readonly money: Money;
  readonly leases: Leases;
  readonly refusals: Pick<Refusals, "findOfAll">;
}

export function ledgerHandlers({ money, leases, refusals }: LedgerDeps) {
  return {
    credit: async (req, res) => {
      const { amount_usd: amountNanoUsd, idempotency_key: idempotencyKey, reason } = parse(newCredit, req.body);
      const credit = { amountNanoUsd, idempotencyKey, ...(reason !== undefined && { reason }) };
      // What no call needs can be taken back.
      if (amountNanoUsd < 0n) await leases.settleIdle(req.params.id);
      return renderMovement(res, await money.credit(req.params.id, credit));
    },
    list: async (req) => {
      const { kind, restored, ...page } = parse(ledgerQuery, req.query);
      const list = restored === "true" ? money.archives.restoredEntries : money.ledger;
      const { id } = found(await money.account(req.params.id), "account");
      return renderPage(
        page,
        (more) => list(id, { ...more, kind }),
        (entry) => renderEntry(entry),
      );
    },
    request: async (req) => {
      const { id } = req.params;
      const entry = (await money.findEntry(id)) ?? (await money.archives.restoredEntry(id));
      if (!entry) return renderRefusal(found(await refusals.findOfAll(id), "request"));
      return renderEntry(entry, (await money.refundedAmong([entry])).has(entry));
    },
    requests: async (req) => {
      const query = parse(requestsQuery, req.query);
      requireIndex(query);
      const page = await money.findCalls(query);
      const refunded = await money.refundedAmong(page.calls);
      return renderCalls(page, (entry) => renderEntry(entry, refunded.has(entry)));
    },
    check: async (req) => {
      const { full, pages, after } = parse(checkQuery, req.query);
      await leases.settleIdle();
      const part = { ...(pages !== undefined && { maxPages: pages }), ...(after !== undefined && { after }) };
      const [check, all] = await Promise.all([money.check({ full: full === "true", ...part }), money.countAccounts()]);
      return {
        ok: check.ok,
        accounts: check.accounts,
        difference_usd: formatUsd(check.differenceNanoUsd),
        open_holds: check.openHolds,
        overdue_holds: check.overdueHolds,
        oldest_open_hold_seconds: check.oldestOpenHoldSeconds,
        undecided: check.undecided,
        of_accounts: all,
        next: check.next ?? null,
      };
    },
  } satisfies Record<string, Handler>;
}
