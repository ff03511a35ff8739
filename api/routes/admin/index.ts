import type { Request, Response, Router } from "express";
import { localsOf } from "../../http/headers.ts";
import { groupOf } from "../../http/openapi/describe.ts";
import { type Resource, type Route, type RouteCall, routerOf } from "../../http/route.ts";
import { accountRoutes } from "./accounts.ts";
import { archiveRoutes } from "./archives.ts";
import { auditRoutes } from "./audit.ts";
import { batchRoutes } from "./batches.ts";
import { jobRoutes } from "./jobs.ts";
import { keyRoutes } from "./keys.ts";
import { ledgerRoutes } from "./ledger.ts";
import { lostResponseRoutes } from "./lost-responses.ts";
import { overviewRoutes } from "./overview.ts";
import { paymentRoutes } from "./payments.ts";
import { providerKeyRoutes, secretRoutes } from "./provider-keys.ts";
import { createOverview, createUpstreamTraffic } from "./read-overview.ts";
import type { AdminDeps, AdminRouteDeps } from "./route.ts";
import { usageRoutes } from "./usage.ts";
import { webhookRoutes } from "./webhooks.ts";
import { workerRoutes } from "./workers.ts";

export type { AdminDeps } from "./route.ts";
export { type AdminTokens, createAdminTokens, identifyByToken } from "./tokens.ts";

const resources: readonly Resource<AdminRouteDeps, string>[] = [
  {
    name: "Service",
    description: "The state of the service, and the audit log",
    routes: [
      ...overviewRoutes,
      ...workerRoutes,
      ...jobRoutes,
      ...batchRoutes,
      ...webhookRoutes,
      ...secretRoutes,
      ...auditRoutes,
    ],
  },
  {
    name: "Accounts",
    description: "The owners of balances and keys",
    routes: [...accountRoutes, ...keyRoutes, ...providerKeyRoutes],
  },
  {
    name: "Money",
    description: "Balances, the ledger, its archive, payments and buybacks",
    routes: [...ledgerRoutes, ...usageRoutes, ...lostResponseRoutes, ...archiveRoutes, ...paymentRoutes],
  },
];

export const adminGroups = resources.map((resource) => groupOf(resource, { errors: [400, 401, 500, 503] }));

/**
 * The admin interface, mounted at `/admin/v1`, where a token identifies the operator, and under the dashboard, where a
 * session does. `identify` returns the operator's name, or throws. Every change is recorded under that name.
 */
export function createAdminRouter(
  deps: AdminDeps,
  identify: (req: Request, res: Response) => string | Promise<string>,
): Router {
  const routes = resources.flatMap((resource) => resource.routes);
  const routeDeps = { ...deps, overview: createOverview(deps), upstreamTraffic: createUpstreamTraffic(deps) };
  return routerOf<AdminRouteDeps, string>(routes, routeDeps, {
    ...deps,
    payerOf: () => ({ account: "admin" }),
    async before(req, res, next) {
      Object.assign(res.locals, { operator: await identify(req, res) });
      // Answers contain secrets and balances.
      res.set("cache-control", "no-store");
      next();
    },
    authorize: (_req, { locals }) => (locals as { operator: string }).operator,
    perform: (route, call, run) => (route.method === "get" ? run() : recorded(deps, route, call, run)),
  });
}

/**
 * Records a change before and after it runs. A body that its schema refuses changes nothing and is not recorded. A recorded
 * body has only fields of the schema, none of which is a secret.
 */
function recorded(
  { audit }: AdminDeps,
  { method, path, body }: Route<AdminRouteDeps, string>,
  { who, params: { id }, req, res }: RouteCall<string, { readonly id?: string }>,
  run: () => Promise<object | string>,
): Promise<object | string> {
  const intent = {
    who,
    action: `${method.toUpperCase()} ${path}`,
    targets: id === undefined ? [] : [id],
    changes: body ? (req.body as object) : undefined,
    requestId: localsOf(res).requestId,
  };
  return audit.record(intent, run, (answer) => ({ status: res.statusCode, targets: targetsIn(answer) }));
}

/** The ids in the answer to a change: that of the created or changed object, and that of its account. */
function targetsIn(answer: unknown): string[] {
  const { id, account } = answer as { id?: unknown; account?: unknown };
  return [id, account].filter((each) => typeof each === "string");
}
