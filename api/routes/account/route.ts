import type { Audit } from "#audit";
import type { Files } from "#files";
import type { Queues } from "#jobs";
import type { Caller, Keys } from "#keys";
import type { Leases } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { ProviderKeys } from "#provider-keys";
import type { Refusals } from "#refusals";
import type { CacheUsage, ResponseCache } from "#response-cache";
import type { Webhooks } from "#webhooks";
import { routeOf } from "../../http/route.ts";
import type { Unread } from "../../http/unread.ts";
import type { ProviderKeyManaging } from "../../provider-keys/index.ts";
import type { BatchDeps } from "../create-batch.ts";
import type { JobActionDeps } from "../job-actions.ts";

export interface AccountDeps extends JobActionDeps, BatchDeps {
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "topups">;
  readonly refusals: Pick<Refusals, "find">;
  readonly responseCache: Pick<ResponseCache, "isConfigured" | "clear">;
  readonly cacheUsage: Pick<CacheUsage, "read">;
  readonly bodyBudget: ByteBudget;
  readonly unread: Unread;
  readonly queues: Pick<Queues, "placeOf" | "removeDetached">;
  readonly files: Files;
  readonly webhooks: Webhooks;
  readonly audit: Audit;
  /** The operator as invoices name it, in lines. */
  readonly invoiceIssuer: string | undefined;
  readonly providerKeys: Pick<ProviderKeys, "list" | "get">;
  readonly providerKeyManaging: ProviderKeyManaging;
}

/** Defines a route of the account's own interface, limited to the caller's account. */
export const route = routeOf<AccountDeps, Caller>();
