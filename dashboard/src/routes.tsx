import { createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { operatorRoutes } from "./operator/routes.tsx";
import { Failed, Loading, rootRoute } from "./root.tsx";

/** All screens. Each is loaded when it is first opened. */

const getParentRoute = () => rootRoute;

const overview = createRoute({
  getParentRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./screens/overview.tsx"), "Overview"),
});

export const router = createRouter({
  routeTree: rootRoute.addChildren([overview, ...operatorRoutes]),
  basepath: "/dashboard",
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
