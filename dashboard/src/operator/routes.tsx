import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { texts } from "../lib/search.ts";
import { loaded } from "../loaded.ts";
import { rootRoute } from "../root.tsx";

/** The operator's screens: routes under `rootRoute` of root.tsx, loaded on demand. */

const getParentRoute = () => rootRoute;

export const operatorRoutes = [
  createRoute({
    getParentRoute,
    path: "/operator",
    validateSearch: texts("within", "as"),
    component: lazyRouteComponent(
      loaded(() => import("./overview.tsx")),
      "OperatorOverview",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/accounts",
    validateSearch: texts("search", "order"),
    component: lazyRouteComponent(
      loaded(() => import("./accounts.tsx")),
      "Accounts",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/accounts/$id",
    validateSearch: texts("part", "show", "as"),
    component: lazyRouteComponent(
      loaded(() => import("./account.tsx")),
      "Account",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/usage",
    validateSearch: texts("days", "by", "show", "as"),
    component: lazyRouteComponent(
      loaded(() => import("./usage.tsx")),
      "OperatorUsage",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/requests",
    validateSearch: texts(
      "account",
      "key",
      "tag",
      "session_id",
      "user",
      "model",
      "endpoint",
      "status",
      "code",
      "upstream",
      "from",
      "to",
    ),
    component: lazyRouteComponent(
      loaded(() => import("./requests.tsx")),
      "OperatorRequests",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/requests/$id",
    component: lazyRouteComponent(
      loaded(() => import("./request.tsx")),
      "OperatorRequest",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/jobs",
    component: lazyRouteComponent(
      loaded(() => import("./jobs.tsx")),
      "OperatorJobs",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/batches",
    validateSearch: texts("account", "status"),
    component: lazyRouteComponent(
      loaded(() => import("./batches.tsx")),
      "OperatorBatches",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/webhooks",
    component: lazyRouteComponent(
      loaded(() => import("./webhooks.tsx")),
      "OperatorWebhooks",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/money",
    component: lazyRouteComponent(
      loaded(() => import("./money.tsx")),
      "OperatorMoney",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/workers",
    component: lazyRouteComponent(
      loaded(() => import("./workers.tsx")),
      "Workers",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/catalog",
    validateSearch: texts("search", "upstream", "state", "part"),
    component: lazyRouteComponent(
      loaded(() => import("./catalog.tsx")),
      "Catalog",
    ),
  }),
  createRoute({
    getParentRoute,
    path: "/operator/audit",
    validateSearch: texts("who", "action", "target", "from", "to"),
    component: lazyRouteComponent(
      loaded(() => import("./audit.tsx")),
      "Audit",
    ),
  }),
] as const;
