import type { CallHold } from "../holds.ts";
import type { createSpending } from "./spending.ts";

/** The hold of one call, given out of a lease. */
export interface Leased {
  /** The id of the lease. */
  readonly lease: string;
  readonly heldNanoUsd: bigint;
  /** The call is decided at this cost, at most what it held: the rest may be given out again. Counts once. */
  end(costNanoUsd: bigint): void;
}

/** What says to the sweeper that this instance lives. Without a renewal for 30 s it counts as dead. */
export interface Registration {
  readonly instance: string;
  /**
   * Since when there was no gap of more than 20 s between renewals, by the monotonic clock. Undefined when the last one is
   * longer ago.
   */
  since(): number | undefined;
  /** Rejects while Redis is unavailable. */
  renew(): Promise<void>;
}

/** How instances ask each other to return what they do not use. */
export interface Recalls {
  /** Without an account: for all of them. */
  ask(account?: string): void;
  /** `from`: the instance that asks. */
  onAsked(giveBack: (request: { readonly account?: string | undefined; readonly from: string }) => void): void;
}

export interface Lease {
  readonly id: string;
  readonly takenAt: number;
  unusedNanoUsd: bigint;
  /** What its ended calls cost. */
  spentNanoUsd: bigint;
  /** By request id: how to end them. */
  readonly openCalls: Map<string, (costNanoUsd: bigint) => void>;
  lastUsedAt: number;
  /** The sweeper closes it from then on in any case: no hold of its calls expires later. Unix milliseconds. */
  callsEndAt: number;
  /** When its document was known to hold it, by the monotonic clock. Undefined: it is not taken yet. */
  stoodAt: number | undefined;
}

/** The leases of one account. */
export interface Book {
  readonly account: string;
  /** Gives out. */
  current: Lease | undefined;
  /** Give out nothing more: they wait for their last call. */
  readonly draining: Set<Lease>;
  /** Calls that wait for a write. */
  waiting: number;
  readonly spending: ReturnType<typeof createSpending>;
}

/** An account that cannot take all that is asked of it. */
export interface State {
  readonly frozen: boolean;
  readonly available: bigint;
  readonly held: bigint;
  /** The leases of other instances. */
  readonly otherLeases: number;
}

/**
 * Whether the call may be served soon: by what other instances return, or, if the balance does not even cover the least of
 * it, by the end of calls that hold more than they cost.
 */
export function isWorthWaiting({ frozen, available, held, otherLeases }: State, { minNanoUsd }: CallHold): boolean {
  if (frozen || available + held < minNanoUsd) return false;
  return otherLeases > 0 || available < minNanoUsd;
}

/** How many leases of other instances the account has. */
export const countOthers = (instance: string) => {
  const isOther = { $regexMatch: { input: "$$this.k", regex: `^lease:(?!${instance}:)` } };
  return { $size: { $filter: { input: { $objectToArray: "$holds" }, cond: isOther } } };
};
