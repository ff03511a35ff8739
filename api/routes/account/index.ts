import type { Router } from "express";
import { authenticate, requireScope } from "../../admission/authenticate.ts";
import { localsOf } from "../../http/headers.ts";
import { groupOf } from "../../http/openapi/describe.ts";
import { routerOf } from "../../http/route.ts";
import { batchRoutes } from "../batches.ts";
import { jobResultOperation, jobRoutes } from "../jobs.ts";
import { accountRoutes } from "./account.ts";
import { cacheRoutes } from "./cache.ts";
import { eventRoutes } from "./events.ts";
import { keyRoutes } from "./keys.ts";
import { providerKeyRoutes } from "./provider-keys.ts";
import { requestRoutes } from "./requests.ts";
import type { AccountDeps } from "./route.ts";
import { statementRoutes } from "./statements.ts";
import { topupRoutes } from "./topups.ts";
import { usageRoutes } from "./usage.ts";
import { webhookRoutes } from "./webhooks.ts";

/** The account's own interface (docs/api/account.md). Every route is limited to the caller's account. */
const resources = [
  {
    name: "Account",
    description: "What an account can see and change without an operator",
    routes: [...accountRoutes, ...usageRoutes, ...statementRoutes, ...cacheRoutes, ...requestRoutes],
  },
  {
    name: "Keys",
    description: "The keys of an account. All routes except `GET /v1/key` require a key with the scope `manage`",
    routes: keyRoutes,
  },
  {
    name: "Provider keys",
    description:
      "Keys of the account for providers, with which its calls run at its own account there. Requires a key with the scope `manage`; 501 if the service has no key to seal secrets",
    routes: providerKeyRoutes,
  },
  {
    name: "Jobs",
    description: "Calls that were made with `Prefer: respond-async`: their state, and their results for 24 hours",
    routes: jobRoutes,
    operations: { "GET /v1/jobs/{id}/result": jobResultOperation },
  },
  {
    name: "Batches",
    description: "Files of calls that run when workers are idle, within 24 hours, in OpenAI's interface",
    routes: batchRoutes,
  },
  {
    name: "Events",
    description: "What happened to the account: its alerts, budgets, keys, top-ups and batches",
    routes: eventRoutes,
  },
  {
    name: "Webhooks",
    description:
      "Endpoints that receive events, and the deliveries of events. Requires a key with the scope `manage`; 501 if the service has no key to seal secrets",
    routes: webhookRoutes,
  },
  {
    name: "Top-ups",
    description:
      "Topping up the balance with USDC on Solana. Requires a key with the scope `manage`; 404 if the service does not accept on-chain payments",
    routes: topupRoutes,
  },
];

export const accountGroups = resources.map((resource) => groupOf(resource, { errors: [401, 429, 500, 503] }));

/** The caller is identified by a key or, under the dashboard, by a session. */
export function createAccountRouter(deps: AccountDeps): Router {
  const routes = resources.flatMap((resource) => resource.routes);
  return routerOf(routes, deps, {
    ...deps,
    payerOf: (caller) => caller,
    async authorize(req, res, { scope, path }) {
      const isOfJobs = path.startsWith("/v1/jobs");
      // A job may be read with the credentials of the call that made it.
      const caller = await authenticate(deps.keys, req, isOfJobs ? "any" : undefined);
      // Answers cost reads of the database.
      const { requestId } = localsOf(res);
      if (isOfJobs || path.startsWith("/v1/batches")) await deps.keys.countJobRequest(caller, requestId);
      else await deps.keys.countAccountRequest(caller, requestId);
      // Answers contain balances and secrets.
      res.set("cache-control", "no-store");
      requireScope(caller, scope);
      return caller;
    },
  });
}
