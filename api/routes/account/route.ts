import type { Caller, Keys } from "#keys";
import type { Leases, Money } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Uses } from "#platform/uses";
import type { Refusals } from "#refusals";
import { routeOf } from "../../http/route.ts";

export interface AccountDeps extends Uses<"clock"> {
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "topups">;
  readonly refusals: Pick<Refusals, "find">;
  readonly bodyBudget: ByteBudget;
}

/** Defines a route of the account's own interface, limited to the caller's account. */
export const route = routeOf<AccountDeps, Caller>();
