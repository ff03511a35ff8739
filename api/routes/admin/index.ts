import { type Request, type RequestHandler, Router } from "express";
import type { Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { databaseUnavailable, jsonRoutes } from "../../http/json-routes.ts";
import { accountHandlers } from "./accounts.ts";
import { archiveHandlers } from "./archives.ts";
import { buybackHandlers } from "./buyback.ts";
import { keyHandlers } from "./keys.ts";
import { ledgerHandlers } from "./ledger.ts";
import { owedHandlers } from "./owed.ts";

export { type AdminTokens, createAdminTokens, identifyByToken } from "./tokens.ts";

export interface AdminDeps {
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "unused" | "buyback">;
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
}

/**
 * The admin interface, mounted at `/admin/v1`, where a token says which operator calls, and under the dashboard, where a session
 * does. `identify` returns the operator's name, or throws.
 */
export function createAdminRouter(deps: AdminDeps, identify: (req: Request) => string | Promise<string>): Router {
  const router = Router();
  const route = jsonRoutes(router, { ...deps, payerOf: () => ({ account: "admin" }) });

  const authorize: RequestHandler = async (req, res, next) => {
    Object.assign(res.locals, { operator: await identify(req) });
    // Answers contain secrets and balances.
    res.set("cache-control", "no-store");
    next();
  };

  const accounts = accountHandlers(deps);
  const keys = keyHandlers(deps);
  const ledger = ledgerHandlers(deps);
  const archives = archiveHandlers(deps);
  const owed = owedHandlers(deps);
  const buyback = buybackHandlers(deps);

  router.use(authorize);
  route("/accounts", { post: accounts.create, get: accounts.list });
  route("/accounts/:id", { get: accounts.get, patch: accounts.update });
  route("/accounts/:id/credits", { post: ledger.credit });
  route("/accounts/:id/keys", { post: keys.issue, get: keys.list });
  route("/accounts/:id/ledger", { get: ledger.list });
  route("/keys/:id", { patch: keys.update, delete: keys.revoke });
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
