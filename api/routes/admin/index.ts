import { type Request, type RequestHandler, type Response, Router } from "express";
import type { z } from "zod";
import type { Audit } from "#audit";
import type { Catalog } from "#catalog";
import type { Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import type { Refusals } from "#refusals";
import { databaseUnavailable, type Handler, jsonRoutes } from "../../http/json-routes.ts";
import { keyPatch, newKey } from "../key-object.ts";
import { accountHandlers, accountPatch, newAccount } from "./accounts.ts";
import { archiveHandlers, newRestore } from "./archives.ts";
import { auditHandlers } from "./audit.ts";
import { recordedIn } from "./audited.ts";
import { buybackHandlers } from "./buyback.ts";
import { holdHandlers } from "./holds.ts";
import { keyHandlers } from "./keys.ts";
import { ledgerHandlers, newCredit } from "./ledger.ts";
import { type OverviewDeps, overviewHandlers } from "./overview.ts";
import { newRefund, owedHandlers } from "./owed.ts";
import { workerHandlers } from "./workers.ts";

export { type AdminTokens, createAdminTokens, identifyByToken } from "./tokens.ts";

export interface AdminDeps extends OverviewDeps {
  readonly refusals: Pick<Refusals, "findOfAll">;
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "unused" | "buyback">;
  readonly catalog: Catalog;
  readonly audit: Audit;
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
}

/** A change, and the schema of its body; null: it has none. */
type Change = readonly [body: z.ZodType | null, handle: Handler];
interface Methods {
  readonly get?: Handler;
  readonly post?: Change;
  readonly patch?: Change;
  readonly delete?: Change;
}

/**
 * The admin interface, mounted at `/admin/v1`, where a token says which operator calls, and under the dashboard, where a session
 * does. `identify` returns the operator's name, or throws. Every change is recorded under that name.
 */
export function createAdminRouter(
  deps: AdminDeps,
  identify: (req: Request, res: Response) => string | Promise<string>,
): Router {
  const router = Router();
  const add = jsonRoutes(router, { ...deps, payerOf: () => ({ account: "admin" }) });
  const recorded = recordedIn(deps.audit, operatorOf);

  function route(path: string, { get, ...changes }: Methods): void {
    const handlers = Object.entries(changes).map(([method, [body, handle]]: [string, Change]) => [
      method,
      recorded(`${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, "{$1}")}`, body, handle),
    ]);
    add(path, { ...(get && { get }), ...Object.fromEntries(handlers) });
  }

  const authorize: RequestHandler = async (req, res, next) => {
    Object.assign(res.locals, { operator: await identify(req, res) });
    // Answers contain secrets and balances.
    res.set("cache-control", "no-store");
    next();
  };

  const overview = overviewHandlers(deps);
  const accounts = accountHandlers(deps);
  const keys = keyHandlers(deps);
  const ledger = ledgerHandlers(deps);
  const holds = holdHandlers(deps);
  const archives = archiveHandlers(deps);
  const owed = owedHandlers(deps);
  const buyback = buybackHandlers(deps);
  const workers = workerHandlers(deps);
  const audit = auditHandlers(deps);

  router.use(authorize);
  route("/overview", { get: overview.get });
  route("/accounts", { get: accounts.list, post: [newAccount, accounts.create] });
  route("/accounts/:id", { get: accounts.get, patch: [accountPatch, accounts.update] });
  route("/accounts/:id/credits", { post: [newCredit, ledger.credit] });
  route("/accounts/:id/keys", { get: keys.list, post: [newKey, keys.issue] });
  route("/accounts/:id/ledger", { get: ledger.list });
  route("/keys/:id", { patch: [keyPatch, keys.update], delete: [null, keys.revoke] });
  route("/requests", { get: ledger.requests });
  route("/requests/:id", { get: ledger.request });
  route("/ledger/check", { get: ledger.check });
  route("/holds", { get: holds.list });
  route("/archives", { get: archives.list });
  route("/archives/:id", { get: archives.get });
  route("/archives/:id/restore", { post: [newRestore, archives.restore], delete: [null, archives.remove] });
  route("/owed", { get: owed.list });
  route("/owed/total", { get: owed.total });
  route("/owed/:id/refunds", { post: [newRefund, owed.refund] });
  route("/buyback/accruals", { get: buyback.accruals });
  route("/buyback/batches", { get: buyback.batches });
  route("/workers", { get: workers.list });
  route("/upstreams", { get: workers.upstreams });
  route("/catalog", { get: workers.catalog });
  route("/audit", { get: audit.list });
  router.use(databaseUnavailable);
  return router;
}

const operatorOf = ({ locals }: Response) => (locals as { operator: string }).operator;
