import type { Clock } from "#platform/clock";
import type { CallHold } from "../holds.ts";

/** The hold of one call, given out of a lease. */
export interface Leased {
  /** The id of the lease. */
  readonly lease: string;
  readonly heldNanoUsd: bigint;
  /** The call is decided at this cost, at most what it held: the rest may be given out again. Counts once. */
  end(costNanoUsd: bigint): void;
}

/** Tells the sweeper that this instance lives. Without a renewal for 30 s it counts as dead. */
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

export interface Lease {
  readonly id: string;
  readonly takenAt: number;
  unusedNanoUsd: bigint;
  /** The cost of its ended calls. */
  spentNanoUsd: bigint;
  /** Functions that end them, by request id. */
  readonly openCalls: Map<string, (costNanoUsd: bigint) => void>;
  lastUsedAt: number;
  /** The sweeper closes it from then on in any case: no hold of its calls expires later. Unix milliseconds. */
  callsEndAt: number;
  /** When its document was known to hold it, by the monotonic clock. Undefined: it is not taken yet. */
  stoodAt: number | undefined;
}

/** The leases of one account. */
export interface AccountLeases {
  readonly account: string;
  /** Gives out. */
  current: Lease | undefined;
  /** Give out nothing more: they wait for their last call. */
  readonly draining: Set<Lease>;
  /** Calls that wait for a write. */
  waiting: number;
  readonly spending: Spending;
}

/** An account that cannot take all that is asked of it. */
export interface AccountState {
  readonly frozen: boolean;
  readonly available: bigint;
  readonly held: bigint;
  /** The leases of other instances. */
  readonly otherLeases: number;
}

/**
 * The call may be served soon: by what other instances return, or, if the balance does not even cover its minimum, by the end
 * of calls that hold more than they cost.
 */
export function isWorthWaiting(
  { frozen, available, held, otherLeases }: AccountState,
  { minNanoUsd }: CallHold,
): boolean {
  if (frozen || available + held < minNanoUsd) return false;
  return otherLeases > 0 || available < minNanoUsd;
}

/** Counts the leases of other instances that the account has. */
export const countOthers = (instance: string) => {
  const isOther = { $regexMatch: { input: "$$this.k", regex: `^lease:(?!${instance}:)` } };
  return { $size: { $filter: { input: { $objectToArray: "$holds" }, cond: isOther } } };
};

const aheadShare = 8;
/** From then on the sweeper asks whether the instance lives. */
const sweptAfterMs = 15_000;

/**
 * An instance that relies on its lease writes another expiry, whatever its clock says. The sweeper closes a lease only if
 * its expiry is the one that it read before it asked whether the instance lives.
 */
export function movedExpiry(id: string, now: number) {
  const path = `holds.${id}.expiresAt`;
  return { [path]: { $max: [new Date(now + sweptAfterMs), { $add: [`$${path}`, 1] }] } };
}

/**
 * The update that takes or grows a lease. Computed from the document: what is needed, or all that is available if that is
 * less; and what is taken ahead, at most an eighth of what is available, if the account is rich enough.
 */
export function growth(
  id: string,
  lease: {
    readonly isFirst: boolean;
    readonly needNanoUsd: bigint;
    readonly aheadNanoUsd: bigint;
    readonly richNanoUsd: bigint;
    readonly now: number;
    readonly callsEndAt: Date;
  },
) {
  const { isFirst, needNanoUsd, aheadNanoUsd, richNanoUsd, now, callsEndAt } = lease;
  const hold = `holds.${id}`;
  const share = { $toLong: { $floor: { $divide: ["$available", aheadShare] } } };
  const ahead = { $cond: [{ $gte: ["$available", richNanoUsd] }, { $min: [aheadNanoUsd, share] }, 0n] };
  const granted = { $min: ["$available", { $add: [needNanoUsd, ahead] }] };
  const amount = isFirst ? `$${hold}.granted` : { $add: [`$${hold}.amount`, `$${hold}.granted`] };
  return [
    { $set: { [`${hold}.granted`]: granted, [`${hold}.callsEndAt`]: callsEndAt, ...movedExpiry(id, now) } },
    {
      $set: {
        available: { $subtract: ["$available", `$${hold}.granted`] },
        held: { $add: ["$held", `$${hold}.granted`] },
        [`${hold}.amount`]: amount,
        ...(isFirst && {
          [`${hold}.heldAt`]: new Date(now),
          openHolds: { $add: ["$openHolds", 1] },
          holdsExpireAt: { $min: ["$holdsExpireAt", `$${hold}.expiresAt`] },
        }),
      },
    },
  ];
}

const windowMs = 5_000;

export type Spending = ReturnType<typeof createSpending>;

/** The spending of an account in five seconds: the larger sum of this window and the previous one. */
export function createSpending(clock: Clock) {
  let windowAt = clock.now();
  let current = 0n;
  let previous = 0n;

  function move(): void {
    const now = clock.now();
    if (now - windowAt < windowMs) return;
    previous = now - windowAt < 2 * windowMs ? current : 0n;
    current = 0n;
    windowAt = now;
  }

  return {
    add(nanoUsd: bigint): void {
      move();
      current += nanoUsd;
    },
    inFiveSeconds(): bigint {
      move();
      return current > previous ? current : previous;
    },
  };
}
