import type { Request, Router } from "express";
import { insufficientScope } from "#errors";
import type { Caller } from "#keys";
import { localsOf } from "../../http/headers.ts";
import { groupOf } from "../../http/openapi/describe.ts";
import { routerOf } from "../../http/route.ts";
import { accountRoutes } from "./account.ts";
import { keyRoutes } from "./keys.ts";
import { requestRoutes } from "./requests.ts";
import type { AccountDeps } from "./route.ts";
import { topupRoutes } from "./topups.ts";
import { usageRoutes } from "./usage.ts";

/** The account's own interface (docs/api/account.md). Every route is limited to the caller's account. */
const resources = [
  {
    name: "Account",
    description: "What an account can see and change without an operator",
    routes: [...accountRoutes, ...usageRoutes, ...requestRoutes],
  },
  {
    name: "Keys",
    description: "The keys of an account. All routes except `GET /v1/key` require a key with the scope `manage`",
    routes: keyRoutes,
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
export function createAccountRouter(deps: AccountDeps, identify: (req: Request) => Promise<Caller>): Router {
  const routes = resources.flatMap((resource) => resource.routes);
  return routerOf(routes, deps, {
    ...deps,
    payerOf: (caller) => caller,
    async authorize(req, res, { scope }) {
      const caller = await identify(req);
      // Answers cost reads of the database.
      await deps.keys.countAccountRequest(caller, localsOf(res).requestId);
      // Answers contain balances and secrets.
      res.set("cache-control", "no-store");
      if (scope && !caller.scopes.includes(scope)) throw insufficientScope(scope);
      return caller;
    },
  });
}
