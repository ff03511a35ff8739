import { type Request, type RequestHandler, type Response, Router } from "express";
import { insufficientScope, invalidApiKey } from "#errors";
import type { Caller } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { databaseUnavailable, noSuchRoute } from "../../http/errors.ts";
import { localsOf } from "../../http/headers.ts";
import { routerOf } from "../../http/route.ts";
import { type OwnDeps, ownRoutes } from "./own.ts";
import { pageRoutes } from "./pages.ts";
import { pageHeaders, sameOriginWrites } from "./policy.ts";
import { createIdentify, type SessionDeps, type SignedIn, sessionRoutes } from "./session.ts";

export interface DashboardDeps extends SessionDeps, OwnDeps {
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
  /** The address of the storage in the links that callers get. */
  readonly storage: string;
  /** The folder of the built page. */
  readonly pages: string;
}

/** The routes of callers and of operators, which are also served below `/dashboard/api`. */
export interface SharedRoutes {
  readonly callers: RequestHandler;
  readonly operators: (identify: (req: Request) => string) => RequestHandler;
}

/** The dashboard, mounted at `/dashboard`: docs/api/dashboard.md. */
export function createDashboardRouter(deps: DashboardDeps, { callers, operators }: SharedRoutes): Router {
  const router = Router();
  router.use(pageHeaders(deps), sameOriginWrites(deps.publicUrl));

  const { bodyBudget, clock } = deps;
  const authorize = (_req: Request, res: Response) => void res.set("cache-control", "no-store");
  router.use(routerOf(sessionRoutes, deps, { bodyBudget, clock, authorize, payerOf: () => "anonymous" }));

  const api = Router();
  const identify = createIdentify(deps);
  api.use(async (req, res, next) => {
    Object.assign(res.locals, { signedIn: await identify(req) });
    res.set("cache-control", "no-store");
    next();
  });
  api.use(
    "/admin/v1",
    operators(({ res }) => {
      const { session } = signedInOf(res as Response);
      if (session.kind !== "operator") throw insufficientScope("operator");
      return session.operator;
    }),
  );
  api.use((_req, res, next) => {
    const { caller } = signedInOf(res);
    if (!caller) throw invalidApiKey("Sign in with an API key.");
    localsOf(res).sessionCaller = caller;
    next();
  });
  const own = routerOf(ownRoutes, deps, {
    bodyBudget,
    clock,
    payerOf: (caller) => caller,
    async authorize(_req, res) {
      const caller = callerOf(res);
      // Answers cost reads of the stores, like those of the account's own interface.
      await deps.keys.countAccountRequest(caller, localsOf(res).requestId);
      return caller;
    },
  });
  api.use(own);
  api.use(callers);
  api.use(noSuchRoute);
  router.use("/api", api);
  router.use(databaseUnavailable);
  router.use(pageRoutes(deps.pages));
  return router;
}

const signedInOf = ({ locals }: Response) => (locals as { signedIn: SignedIn }).signedIn;

/** Set before every route that asks. */
const callerOf = (res: Response) => localsOf(res).sessionCaller as Caller;
