import { type Request, type RequestHandler, type Response, Router } from "express";
import { insufficientScope } from "#errors";
import type { Caller, Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import type { Refusals } from "#refusals";
import { localsOf } from "../../http/headers.ts";
import { databaseUnavailable, type Handler, jsonRoutes } from "../../http/json-routes.ts";
import { ownAccountHandlers } from "./account.ts";
import { balanceHandlers } from "./balance.ts";
import { generationHandlers } from "./generation.ts";
import type { AccountHandler } from "./handler.ts";
import { invoiceHandlers } from "./invoices.ts";
import { accountKeyHandlers } from "./keys.ts";
import { requestHandlers } from "./requests.ts";
import { topupHandlers } from "./topups.ts";
import { usageHandlers } from "./usage.ts";

/** The interface of an account for itself: docs/api/account.md. Everything in it is the caller's own account's. */

export interface AccountDeps {
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "topups">;
  readonly refusals: Pick<Refusals, "find">;
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
}

/** Mounted at `/v1`, where a key says who is calling, and under the dashboard, where a session does. */
export function createAccountRouter(deps: AccountDeps, identify: (req: Request) => Promise<Caller>): Router {
  const router = Router();
  const callerOf = ({ locals }: Response) => (locals as { caller: Caller }).caller;
  const authorize: RequestHandler<{ id: string }> = async (req, res, next) => {
    const caller = await identify(req as Request);
    // Its answers cost reads of the database.
    await deps.keys.countAccountRequest(caller, localsOf(res).requestId);
    Object.assign(res.locals, { caller });
    // Answers contain balances and secrets.
    res.set("cache-control", "no-store");
    next();
  };
  const route = jsonRoutes(router, { ...deps, authorize, payerOf: callerOf });
  /** For every key; each sees at most what is its own. */
  const any =
    (handle: AccountHandler): Handler =>
    (req, res) =>
      handle(req, res, callerOf(res));
  /** For keys that may see and change the whole account. */
  const managing = (handle: AccountHandler): Handler =>
    any((req, res, caller) => {
      if (!caller.scopes.includes("manage")) throw insufficientScope("manage");
      return handle(req, res, caller);
    });
  const balance = balanceHandlers(deps);
  const own = ownAccountHandlers(deps);
  const keys = accountKeyHandlers(deps);
  const usage = usageHandlers(deps);
  const requests = requestHandlers(deps);
  const generation = generationHandlers(deps);
  const invoices = invoiceHandlers(deps);
  const topups = topupHandlers(deps);
  route("/balance", { get: any(balance.get) });
  route("/account", { patch: managing(own.update) });
  route("/key", { get: any(keys.own) });
  route("/keys", { get: managing(keys.list), post: managing(keys.create) });
  route("/keys/:id", { patch: managing(keys.update), delete: managing(keys.revoke) });
  route("/usage", { get: any(usage.list) });
  route("/requests", { get: any(requests.list) });
  route("/requests/:id", { get: any(requests.get) });
  route("/generation", { get: any(generation.get) });
  route("/invoices", { get: managing(invoices.get) });
  route("/topups", { get: managing(topups.list), post: managing(topups.create) });
  route("/topups/:id", { get: managing(topups.get) });
  router.use(databaseUnavailable);
  return router;
}
