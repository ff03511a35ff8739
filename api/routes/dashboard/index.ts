import { type Request, type RequestHandler, type Response, Router } from "express";
import helmet from "helmet";
import { crossSiteRequest } from "#errors";
import type { Caller } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import { databaseUnavailable, noSuchRoute } from "../../http/errors.ts";
import { localsOf } from "../../http/headers.ts";
import { routerOf } from "../../http/route.ts";
import { createModelPerformance, type PerformanceDeps } from "./model-performance.ts";
import { type OwnDeps, ownRoutes } from "./own.ts";
import { pageRoutes } from "./pages.ts";
import { createIdentify, type SessionDeps, sessionRoutes } from "./session.ts";

export interface DashboardDeps extends SessionDeps, Omit<OwnDeps, "modelPerformance">, PerformanceDeps {
  readonly bodyBudget: ByteBudget;
  /** The address of the storage in the links that callers get. */
  readonly storage: string;
  /** The folder of the built page. */
  readonly pages: string;
}

/** The routes of callers and of operators, which are also served below `/dashboard/api`. */
interface SharedRoutes {
  readonly callers: RequestHandler;
  readonly operators: (identify: (req: Request) => string) => RequestHandler;
}

/** The dashboard, mounted at `/dashboard` (docs/api/dashboard.md). */
export function createDashboardRouter(deps: DashboardDeps, { callers, operators }: SharedRoutes): Router {
  const router = Router();
  router.use(pageHeaders(deps), sameOriginWrites(deps.publicUrl));

  const { bodyBudget, clock } = deps;
  const authorize = (_req: Request, res: Response) => void res.set("cache-control", "no-store");
  router.use(routerOf(sessionRoutes, deps, { bodyBudget, clock, authorize, payerOf: () => "anonymous" }));

  const api = Router();
  const identify = createIdentify(deps);
  api.use((_req, res, next) => {
    res.set("cache-control", "no-store");
    next();
  });
  api.use(
    "/admin/v1",
    async (req, res, next) => {
      const { operator } = await identify.operator(req);
      Object.assign(res.locals, { operator });
      next();
    },
    operators(({ res }) => operatorOf(res as Response)),
    noSuchRoute,
  );
  api.use(async (req, res, next) => {
    localsOf(res).sessionCaller = (await identify.account(req)).caller;
    next();
  });
  const own = routerOf(
    ownRoutes,
    { ...deps, modelPerformance: createModelPerformance(deps) },
    {
      bodyBudget,
      clock,
      payerOf: (caller) => caller,
      async authorize(_req, res) {
        const caller = callerOf(res);
        // Answers cost reads of the stores, like those of the account's own interface.
        await deps.keys.countAccountRequest(caller, localsOf(res).requestId);
        return caller;
      },
    },
  );
  api.use(own);
  api.use(callers);
  api.use(noSuchRoute);
  router.use("/api", api);
  router.use(databaseUnavailable);
  router.use(pageRoutes(deps.pages));
  return router;
}

/** Both are set before every route that uses them. */
const operatorOf = ({ locals }: Response) => (locals as { operator: string }).operator;
const callerOf = (res: Response) => localsOf(res).sessionCaller as Caller;

const isRead = (method: string) => method === "GET" || method === "HEAD";

/**
 * Refuses writes that another site's page makes the browser send, in addition to the cookie's `SameSite`. A browser that
 * sends no `Sec-Fetch-Site` sends `Origin` with every write.
 */
const sameOriginWrites =
  (publicUrl: () => string): RequestHandler =>
  (req, _res, next) => {
    if (isRead(req.method)) return next();
    const site = req.get("sec-fetch-site");
    if (site === undefined ? !isOwn(req.get("origin"), req.get("host"), publicUrl()) : site !== "same-origin")
      throw crossSiteRequest();
    next();
  };

function isOwn(origin: string | undefined, host: string | undefined, publicUrl: string): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false;
  const given = new URL(origin);
  return given.origin === new URL(publicUrl).origin || given.host === host;
}

/**
 * The security headers of the page. Besides its own host, the page may reach only the storage, for direct uploads, and the
 * public address, which is in the links of generated files. `blob:` allows what the page creates itself: previews of chosen
 * files, and images and audio of answers.
 */
export function pageHeaders({ publicUrl, storage }: { publicUrl: () => string; storage: string }): RequestHandler {
  const storageOrigin = new URL(storage).origin;
  const linked = ["'self'", () => new URL(publicUrl()).origin, storageOrigin];
  const strict = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        fontSrc: ["'self'"],
        connectSrc: linked,
        imgSrc: [...linked, "blob:"],
        mediaSrc: [...linked, "blob:"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
    },
    referrerPolicy: { policy: "no-referrer" },
    crossOriginOpenerPolicy: { policy: "same-origin" },
    crossOriginResourcePolicy: { policy: "same-origin" },
    xFrameOptions: { action: "deny" },
  });
  return (req, res, next) => {
    res.setHeader("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()");
    strict(req, res, next);
  };
}
