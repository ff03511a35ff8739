import { createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { parseSearch, stringifySearch, texts } from "./lib/search.ts";
import { usageParams } from "./lib/usage.ts";
import { loaded } from "./loaded.ts";
import { operatorRoutes } from "./operator/routes.tsx";
import { Failed, Loading, rootRoute } from "./root.tsx";

/** All screens, loaded on demand. */

const getParentRoute = () => rootRoute;

const overview = createRoute({
  getParentRoute,
  path: "/",
  validateSearch: texts("by", "days", "as"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/overview/overview.tsx")),
    "Overview",
  ),
});

/** A bookmarked address. Without a session every address shows the sign-in page. */
const signIn = createRoute({
  getParentRoute,
  path: "/sign-in",
  beforeLoad: () => {
    throw redirect({ to: "/" });
  },
});

const keys = createRoute({
  getParentRoute,
  path: "/keys",
  component: lazyRouteComponent(
    loaded(() => import("./screens/keys/keys.tsx")),
    "Keys",
  ),
});

const usage = createRoute({
  getParentRoute,
  path: "/usage",
  validateSearch: texts(...usageParams, "as"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/usage/usage.tsx")),
    "Usage",
  ),
});

const requests = createRoute({
  getParentRoute,
  path: "/requests",
  validateSearch: texts(
    "status",
    "model",
    "endpoint",
    "key",
    "tag",
    "session_id",
    "user",
    "provider_key",
    "from",
    "to",
    "after",
  ),
  component: lazyRouteComponent(
    loaded(() => import("./screens/requests/requests.tsx")),
    "Requests",
  ),
});

const requestDetail = createRoute({
  getParentRoute,
  path: "/requests/$id",
  component: lazyRouteComponent(
    loaded(() => import("./screens/requests/request-detail.tsx")),
    "RequestDetail",
  ),
});

const jobs = createRoute({
  getParentRoute,
  path: "/jobs",
  validateSearch: texts("status", "endpoint"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/jobs/jobs.tsx")),
    "Jobs",
  ),
});

const jobDetail = createRoute({
  getParentRoute,
  path: "/jobs/$id",
  component: lazyRouteComponent(
    loaded(() => import("./screens/jobs/job-detail.tsx")),
    "JobDetail",
  ),
});

const batches = createRoute({
  getParentRoute,
  path: "/batches",
  component: lazyRouteComponent(
    loaded(() => import("./screens/batches/batches.tsx")),
    "Batches",
  ),
});

const batchDetail = createRoute({
  getParentRoute,
  path: "/batches/$id",
  component: lazyRouteComponent(
    loaded(() => import("./screens/batches/batch-detail.tsx")),
    "BatchDetail",
  ),
});

const webhooks = createRoute({
  getParentRoute,
  path: "/webhooks",
  validateSearch: texts("endpoint", "type", "status"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/webhooks/webhooks.tsx")),
    "Webhooks",
  ),
});

const webhookDelivery = createRoute({
  getParentRoute,
  path: "/webhooks/$id",
  component: lazyRouteComponent(
    loaded(() => import("./screens/webhooks/delivery-detail.tsx")),
    "DeliveryDetail",
  ),
});

const providerKeys = createRoute({
  getParentRoute,
  path: "/provider-keys",
  component: lazyRouteComponent(
    loaded(() => import("./screens/provider-keys/provider-keys.tsx")),
    "ProviderKeys",
  ),
});

const playground = createRoute({
  getParentRoute,
  path: "/playground",
  validateSearch: texts("model"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/playground/playground.tsx")),
    "Playground",
  ),
});

const models = createRoute({
  getParentRoute,
  path: "/models",
  validateSearch: texts("q", "type", "order"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/models/models.tsx")),
    "Models",
  ),
});

const modelDetail = createRoute({
  getParentRoute,
  path: "/models/$provider/$name",
  component: lazyRouteComponent(
    loaded(() => import("./screens/models/model-detail.tsx")),
    "ModelDetail",
  ),
});

const files = createRoute({
  getParentRoute,
  path: "/files",
  component: lazyRouteComponent(
    loaded(() => import("./screens/files/files.tsx")),
    "Files",
  ),
});

const topUp = createRoute({
  getParentRoute,
  path: "/top-up",
  validateSearch: texts("id"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/top-up/top-up.tsx")),
    "TopUp",
  ),
});

const statement = createRoute({
  getParentRoute,
  path: "/statement",
  validateSearch: texts("from", "to"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/money/statement.tsx")),
    "Statement",
  ),
});

const invoices = createRoute({
  getParentRoute,
  path: "/invoices",
  validateSearch: texts("month", "by"),
  component: lazyRouteComponent(
    loaded(() => import("./screens/money/invoices.tsx")),
    "Invoices",
  ),
});

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    overview,
    signIn,
    usage,
    keys,
    requests,
    requestDetail,
    jobs,
    jobDetail,
    batches,
    batchDetail,
    webhooks,
    webhookDelivery,
    providerKeys,
    playground,
    models,
    modelDetail,
    files,
    topUp,
    statement,
    invoices,
    ...operatorRoutes,
  ]),
  basepath: "/dashboard",
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  defaultPendingComponent: Loading,
  defaultErrorComponent: Failed,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
