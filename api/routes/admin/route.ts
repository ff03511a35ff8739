import { z } from "zod";
import type { Audit } from "#audit";
import type { Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Refusals } from "#refusals";
import { routeOf } from "../../http/route.ts";
import type { createOverview, OverviewDeps } from "./read-overview.ts";

export interface AdminDeps extends OverviewDeps {
  readonly refusals: Pick<Refusals, "findOfAll">;
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "unused" | "buyback">;
  readonly audit: Audit;
  readonly bodyBudget: ByteBudget;
}

export interface AdminRouteDeps extends AdminDeps {
  readonly overview: ReturnType<typeof createOverview>;
}

/** Defines a route for operators; `who` is the operator's name. */
export const route = routeOf<AdminRouteDeps, string>();

export const idOf = (what: string) => ({ id: z.string().describe(what) });
