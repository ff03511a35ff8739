import { createHash, timingSafeEqual } from "node:crypto";
import { type ErrorRequestHandler, type RequestHandler, Router } from "express";
import { mongo } from "mongoose";
import { invalidApiKey, noCapacity } from "#errors";
import type { Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import { bearer } from "../../admission/authenticate.ts";
import { createBodyReader } from "../../http/body.ts";
import { methodNotAllowed } from "../../http/errors.ts";
import { accountHandlers } from "./accounts.ts";
import { archiveHandlers } from "./archives.ts";
import { buybackHandlers } from "./buyback.ts";
import { keyHandlers } from "./keys.ts";
import { ledgerHandlers } from "./ledger.ts";
import { owedHandlers } from "./owed.ts";
import type { Handler } from "./render.ts";

export interface AdminDeps {
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "unused" | "buyback">;
  readonly config: Pick<Config, "ADMIN_TOKEN">;
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
}

type Method = "get" | "post" | "patch" | "delete";

const bodyLimitBytes = 100 * 1024;

/** The admin interface, mounted at `/admin/v1`. Without a token in the configuration it has no routes. */
export function createAdminRouter(deps: AdminDeps): Router {
  const router = Router();
  if (deps.config.ADMIN_TOKEN === undefined) return router;

  const readBody = createBodyReader({ limitBytes: bodyLimitBytes, budget: deps.bodyBudget, clock: deps.clock });
  const json: RequestHandler = async (req, res, next) => {
    const body = await readBody(req, res, { account: "admin" });
    req.body = body.value;
    body.release();
    next();
  };
  const route = (path: string, handlers: Partial<Record<Method, Handler>>) => {
    const at = router.route(path);
    for (const [method, handle] of Object.entries(handlers) as [Method, Handler][]) {
      const answer: RequestHandler<{ id: string }> = async (req, res) => void res.json(await handle(req, res));
      if (method === "post" || method === "patch") at[method](json, answer);
      else at[method](answer);
    }
    at.all(methodNotAllowed(...Object.keys(handlers).map((method) => method.toUpperCase())));
  };

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

/** Every route needs MongoDB. While it is unavailable they answer a 503 that clients retry, not a 500. */
const databaseUnavailable: ErrorRequestHandler = (error: unknown, _req, _res, next) => {
  const { MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError } = mongo;
  const isUnavailable =
    [MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError].some((kind) => error instanceof kind) ||
    // Mongoose throws this class itself while it has no connection; its other errors are subclasses.
    (error instanceof Error && error.name === "MongooseError");
  next(isUnavailable ? noCapacity("The database cannot be reached right now.", 1, error) : error);
};
