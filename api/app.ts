import express, { type Express, type IRouter, Router } from "express";
import type { Batches } from "#batches";
import type { Queues, ReplyReader } from "#jobs";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Config } from "#platform/config";
import type { Probe } from "#platform/observability/probe";
import type { ProviderKeys } from "#provider-keys";
import type { Refusals } from "#refusals";
import type { CacheUsage, ResponseCache } from "#response-cache";
import type { EventLogs } from "#stored-responses";
import type { Traffic } from "#traffic";
import type { Webhooks } from "#webhooks";
import { errorHandler, methodNotAllowed, noSuchRoute } from "./http/errors.ts";
import { checkHead, closeWhile, cors, noSniffing, requestId, security } from "./http/headers.ts";
import { type CallDeps, paidRoute } from "./paid-call.ts";
import type { ProviderKeyManaging } from "./provider-keys/index.ts";
import { createAccountRouter } from "./routes/account/index.ts";
import {
  type AdminDeps,
  type AdminTokens,
  createAdminRouter,
  createAdminTokens,
  identifyByToken,
} from "./routes/admin/index.ts";
import { batchFileRoutes } from "./routes/batch-files.ts";
import { createDashboardRouter, type DashboardDeps } from "./routes/dashboard/index.ts";
import { isNavigation } from "./routes/dashboard/pages.ts";
import { adminDocsRoutes, docsRoutes } from "./routes/docs.ts";
import { fileRoutes } from "./routes/files.ts";
import { geminiRoutes } from "./routes/gemini.ts";
import { healthRoutes } from "./routes/health.ts";
import { jobResultRoutes } from "./routes/jobs.ts";
import { messageBatchRoutes } from "./routes/message-batches.ts";
import { messagesRoutes } from "./routes/messages.ts";
import { geminiModelRoutes, modelRoutes } from "./routes/models.ts";
import { paidRouteAt, paidRoutes } from "./routes/paid.ts";
import { responsesRoutes } from "./routes/responses.ts";
import { uploadRoutes } from "./routes/uploads.ts";

interface AppDeps
  extends CallDeps,
    Pick<AdminDeps, "audit" | "clusterStats" | "secrets">,
    Pick<DashboardDeps, "sessions" | "pages"> {
  readonly config: Pick<
    Config,
    | "ADMIN_TOKEN"
    | "ADMIN_TOKENS"
    | "BUYBACK_BPS"
    | "BUYBACK_EXECUTOR"
    | "OPERATOR_ACCOUNT"
    | "S3_ENDPOINT"
    | "S3_PUBLIC_ENDPOINT"
    | "TRUSTED_PROXIES"
    | "X402_PAY_TO"
  >;
  /** Returns true once a shutdown has begun. */
  readonly draining: () => boolean;
  readonly traffic: Traffic;
  readonly batches: Batches;
  readonly queues: Queues;
  readonly reader: ReplyReader;
  readonly eventLogs: EventLogs;
  readonly bodyBudget: ByteBudget;
  readonly payments: Payments;
  readonly webhooks: Webhooks;
  readonly providerKeys: ProviderKeys;
  readonly providerKeyManaging: ProviderKeyManaging;
  readonly refusals: Refusals;
  readonly invoiceIssuer: string | undefined;
  readonly responseCache: ResponseCache;
  readonly cacheUsage: CacheUsage;
  readonly probes: Readonly<Record<"mongodb" | "redis" | "s3" | "descriptors", Probe>>;
}

export function createApp(deps: AppDeps): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag").set("query parser", "simple");
  app.set("trust proxy", deps.config.TRUSTED_PROXIES ?? false);
  app.use(requestId(deps.clock), noSniffing, closeWhile(deps.draining));
  const free = freeRoutes(deps);
  const tokens = createAdminTokens(deps.config);
  app.use("/dashboard", checkHead, dashboard(deps, tokens, free));
  app.use(cors, checkHead);

  addPaidRoutes(app, deps);
  app.use(security);
  app.use(healthRoutes(deps));
  app.use(docsRoutes(deps));
  app.get("/", (req, res, next) => (isNavigation(req) ? res.redirect("/dashboard") : next()));
  if (tokens) {
    const identify = identifyByToken({ ...deps, tokens });
    app.use("/admin/v1", createAdminRouter(deps, identify));
    app.use(adminDocsRoutes(deps, identify));
  }
  app.use(free);
  app.use("/media", fileRoutes(deps));

  app.use(noSuchRoute);
  app.use(errorHandler(deps));
  return app;
}

function addPaidRoutes(to: IRouter, deps: AppDeps): void {
  for (const route of paidRoutes) to.route(route.endpoint).post(paidRoute(deps, route)).all(methodNotAllowed("POST"));
}

/**
 * All other routes for callers: the account, stored responses, uploads, files for batches, model lists, and the paid routes of Messages and
 * Gemini, which have their own routers.
 */
function freeRoutes(deps: AppDeps): Router {
  const router = Router();
  router.use(createAccountRouter(deps));
  router.use(jobResultRoutes(deps, paidRouteAt));
  router.use("/v1/messages", messagesRoutes(deps));
  router.use(messageBatchRoutes({ ...deps, arrive: () => deps.openCalls.arrive() }));
  router.use("/v1/responses", responsesRoutes(deps));
  const receiving = { ...deps, arrive: () => deps.openCalls.arrive() };
  router.use(uploadRoutes(receiving));
  router.use(batchFileRoutes(receiving));
  router.all(["/v1beta/*path", "/v1/*path"], geminiRoutes(deps));
  router.use("/v1/models", modelRoutes(deps));
  router.use("/v1beta/models", geminiModelRoutes(deps));
  return router;
}

/** Serves the dashboard's page and, under `/api`, the routes of callers and operators for its sessions. */
function dashboard(deps: AppDeps, tokens: AdminTokens | undefined, free: Router): Router {
  const { config } = deps;
  const callers = Router();
  addPaidRoutes(callers, deps);
  callers.use(free);
  const storage = config.S3_PUBLIC_ENDPOINT ?? config.S3_ENDPOINT;
  const hasTopups = config.X402_PAY_TO !== undefined;
  return createDashboardRouter(
    {
      ...deps,
      tokens,
      storage,
      hasTopups,
      buybacks: { bps: config.BUYBACK_BPS, executor: config.BUYBACK_EXECUTOR },
      operatorAccount: config.OPERATOR_ACCOUNT,
    },
    { callers, operators: (identify) => createAdminRouter(deps, identify) },
  );
}
