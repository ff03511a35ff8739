import { z } from "zod";
import type { Audit } from "#audit";
import type { Batches } from "#batches";
import type { DetachedCalls } from "#detached-calls";
import type { Queues } from "#jobs";
import type { Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { ProviderKeys } from "#provider-keys";
import type { Refusals } from "#refusals";
import type { Secrets } from "#secrets";
import type { Sessions } from "#sessions";
import type { Webhooks } from "#webhooks";
import { routeOf } from "../../http/route.ts";
import type { createOverview, createUpstreamTraffic, OverviewDeps } from "./read-overview.ts";

export interface AdminDeps extends OverviewDeps {
  readonly batches: Pick<Batches, "listOpen" | "findOfAny" | "cancel">;
  readonly refusals: Pick<Refusals, "findOfAll">;
  readonly detachedCalls: Pick<DetachedCalls, "countOpenByAccount">;
  readonly webhooks: Pick<Webhooks, "sealedValues" | "notices"> & {
    readonly endpoints: Pick<Webhooks["endpoints"], "failing">;
  };
  readonly providerKeys: Pick<ProviderKeys, "list" | "sealedValues">;
  readonly secrets: Pick<Secrets, "currentKey">;
  readonly queues: OverviewDeps["queues"] & Pick<Queues, "enqueueRewrap">;
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "unused" | "buyback">;
  readonly audit: Audit;
  readonly sessions: Pick<Sessions, "issueCode">;
  readonly publicUrl: () => string;
  readonly bodyBudget: ByteBudget;
}

export interface AdminRouteDeps extends AdminDeps {
  readonly overview: ReturnType<typeof createOverview>;
  readonly upstreamTraffic: ReturnType<typeof createUpstreamTraffic>;
}

/** Defines a route for operators; `who` is the operator's name. */
export const route = routeOf<AdminRouteDeps, string>();

export const idOf = (what: string) => ({ id: z.string().describe(what) });
