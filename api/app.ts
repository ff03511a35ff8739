import express, { type Express } from "express";
import type { Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Config } from "#platform/config";
import type { Probe } from "#platform/probe";
import { authenticate } from "./admission/authenticate.ts";
import { errorHandler, methodNotAllowed, noSuchRoute } from "./http/errors.ts";
import { checkHead, closeWhile, cors, noSniffing, requestId, security } from "./http/headers.ts";
import { type CallDeps, paidRoute } from "./paid-call.ts";
import { createAccountRouter } from "./routes/account/index.ts";
import { type AdminDeps, createAdminRouter, createAdminTokens, identifyByToken } from "./routes/admin/index.ts";
import { adminDocsRoutes, docsRoutes } from "./routes/docs.ts";
import { fileRoutes } from "./routes/files.ts";
import { geminiRoutes } from "./routes/gemini.ts";
import { healthRoutes } from "./routes/health.ts";
import { messagesRoutes } from "./routes/messages.ts";
import { geminiModelRoutes, modelRoutes } from "./routes/models.ts";
import { paidRoutes } from "./routes/paid.ts";
import { responsesRoutes } from "./routes/responses.ts";
import { uploadRoutes } from "./routes/uploads.ts";

export interface AppDeps extends CallDeps, Pick<AdminDeps, "audit" | "gathered" | "queues" | "traffic"> {
  readonly config: Pick<Config, "ADMIN_TOKEN" | "ADMIN_TOKENS">;
  /** A shutdown has begun. */
  readonly draining: () => boolean;
  readonly bodyBudget: ByteBudget;
  readonly spoolBudget: ByteBudget;
  readonly money: Money;
  readonly payments: Payments;
  readonly probes: Readonly<Record<"mongodb" | "redis" | "s3", Probe>>;
}

/** All middleware and routes. */
export function createApp(deps: AppDeps): Express {
  const app = express();
  app.disable("x-powered-by").disable("etag").set("query parser", "simple");
  app.use(requestId(deps.clock), cors, noSniffing, closeWhile(deps.draining), checkHead);

  for (const route of paidRoutes) app.route(route.endpoint).post(paidRoute(deps, route)).all(methodNotAllowed("POST"));
  app.use(security);
  app.use(healthRoutes(deps));
  app.use(docsRoutes(deps));
  const tokens = createAdminTokens(deps.config);
  if (tokens) {
    const identify = identifyByToken(tokens);
    app.use("/admin/v1", createAdminRouter(deps, identify));
    app.use(adminDocsRoutes(deps, identify));
  }

  app.use(
    "/v1",
    createAccountRouter(deps, (req) => authenticate(deps.keys, req)),
  );
  app.use("/v1/messages", messagesRoutes(deps));
  app.use("/v1/responses", responsesRoutes(deps));
  app.use("/v1/uploads", uploadRoutes({ ...deps, arrive: () => deps.openCalls.arrive() }));
  app.all(["/v1beta/*path", "/v1/*path"], geminiRoutes(deps));
  app.use("/v1/models", modelRoutes(deps));
  app.use("/v1beta/models", geminiModelRoutes(deps));
  app.use("/media", fileRoutes(deps));

  app.use(noSuchRoute);
  app.use(errorHandler(deps));
  return app;
}
