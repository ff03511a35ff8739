import { createHash, timingSafeEqual } from "node:crypto";
import { type RequestHandler, Router } from "express";
import { invalidApiKey } from "#errors";
import type { Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import { bearer } from "../../admission/authenticate.ts";
import { databaseUnavailable, jsonRoutes } from "../../http/json-routes.ts";
import { accountHandlers } from "./accounts.ts";
import { archiveHandlers } from "./archives.ts";
import { buybackHandlers } from "./buyback.ts";
import { keyHandlers } from "./keys.ts";
import { ledgerHandlers } from "./ledger.ts";
import { owedHandlers } from "./owed.ts";

export interface AdminDeps {
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "unused" | "buyback">;
  readonly config: Pick<Config, "ADMIN_TOKEN">;
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
}

/** The admin interface, mounted at `/admin/v1`. Without a token in the configuration it has no routes. */
export function createAdminRouter(deps: AdminDeps): Router {
  const router = Router();
  if (deps.config.ADMIN_TOKEN === undefined) return router;

  const route = jsonRoutes(router, { ...deps, payerOf: () => ({ account: "admin" }) });

  const accounts = accountHandlers(deps);
  const keys = keyHandlers(deps);
  const ledger = ledgerHandlers(deps);
  const archives = archiveHandlers(deps);
  const owed = owedHandlers(deps);
  const buyback = buybackHandlers(deps);

  router.use(requireToken(deps.config.ADMIN_TOKEN));
  route("/accounts", { post: accounts.create, get: accounts.list });
  route("/accounts/:id", { get: accounts.get, patch: accounts.update });
  route("/accounts/:id/credits", { post: ledger.credit });
  route("/accounts/:id/keys", { post: keys.issue, get: keys.list });
  route("/accounts/:id/ledger", { get: ledger.list });
  route("/keys/:id", { patch: keys.update, delete: keys.revoke });
  route("/requests", { get: ledger.requests });
  route("/requests/:id", { get: ledger.request });
  route("/ledger/check", { get: ledger.check });
  route("/archives", { get: archives.list });
  route("/archives/:id", { get: archives.get });
  route("/archives/:id/restore", { post: archives.restore, delete: archives.remove });
  route("/owed", { get: owed.list });
  route("/owed/total", { get: owed.total });
  route("/owed/:id/refunds", { post: owed.refund });
  route("/buyback/accruals", { get: buyback.accruals });
  route("/buyback/batches", { get: buyback.batches });
  router.use(databaseUnavailable);
  return router;
}

const digest = (text: string) => createHash("sha256").update(text).digest();

/** Compares hashes, which have equal lengths, with every token, so that the time reveals nothing about them. */
function requireToken(tokens: string): RequestHandler {
  const expected = tokens.split(",").map(digest);
  return (req, res, next) => {
    const given = digest(bearer(req) ?? "");
    if (expected.filter((each) => timingSafeEqual(given, each)).length === 0)
      throw invalidApiKey("Missing or invalid admin token.");
    // Answers contain secrets and balances.
    res.set("cache-control", "no-store");
    next();
  };
}
