import type { Clock } from "#platform/clock";
import type { CallHold } from "../holds.ts";

/** The hold of one call, drawn from a lease. */
export interface Leased {
  /** The id of the lease. */
  readonly lease: string;
  readonly heldNanoUsd: bigint;
  /** Reports that the call was captured at this cost, at most its hold. The rest may be reused. Repeats are ignored. */
  end(costNanoUsd: bigint): void;
}

/** Shows the sweeper that this instance is alive. Without a renewal for 30 s it counts as dead. */
export interface Registration {
  readonly instance: string;
  /**
   * The start of the period without a gap of more than 20 s between renewals, on the monotonic clock. Undefined when
   * the last renewal is older than that.
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
  /** Functions that end the calls, by request id. */
  readonly openCalls: Map<string, (costNanoUsd: bigint) => void>;
  lastUsedAt: number;
  /** Unix milliseconds after which the sweeper closes the lease in any case. No hold of its calls expires later. */
  callsEndAt: number;
  /** When its document was known to hold it, on the monotonic clock. Undefined until the lease is taken. */
  stoodAt: number | undefined;
}

export interface AccountLeases {
  readonly account: string;
  /** The lease from which holds are drawn. */
  current: Lease | undefined;
  /** Leases from which no more holds are drawn. They wait for their last call. */
  readonly draining: Set<Lease>;
  /** Amounts on their way back to the balance, by the writes that return them. */
  readonly returning: Map<Promise<unknown>, bigint>;
  /** Number of calls that wait for a write. */
  waiting: number;
  readonly spending: Spending;
}

/** The lease of another API instance. */
export interface OtherLease {
  readonly lease: string;
  readonly amount: bigint;
}

/** The state of an account that cannot take everything requested of it. */
export interface AccountState {
  readonly frozen: boolean;
  readonly available: bigint;
  readonly held: bigint;
  readonly others: readonly OtherLease[];
  /** What this instance was returning when the state was read. `available` may include it already. */
  readonly returning: bigint;
}

/**
 * Returns true if the call may be served soon: from amounts that this instance or others return or, if the balance does
 * not even cover its minimum, when calls end that hold more than they cost.
 */
export function isWorthWaiting(
  { frozen, available, held, others, returning }: AccountState,
  { minNanoUsd }: CallHold,
): boolean {
  if (frozen || available + held < minNanoUsd) return false;
  return others.length > 0 || returning > 0n || available < minNanoUsd;
}

/** Projects `others`. */
export const leasesOfOthers = (instance: string) => {
  const isOther = { $regexMatch: { input: "$$this.k", regex: `^lease:(?!${instance}:)api_` } };
  const others = { $filter: { input: { $objectToArray: "$holds" }, cond: isOther } };
  return { $map: { input: others, in: { lease: "$$this.k", amount: "$$this.v.amount" } } };
};

const aheadShare = 8;
/** Afterwards the sweeper checks whether the instance is alive. */
const sweptAfterMs = 15_000;

/**
 * An instance that relies on its lease changes the expiry, regardless of its clock. The sweeper closes a lease only if
 * its expiry is still the one that it read before it checked whether the instance is alive.
 */
export function movedExpiry(id: string, now: number) {
  const path = `holds.${id}.expiresAt`;
  return { [path]: { $max: [new Date(now + sweptAfterMs), { $add: [`$${path}`, 1] }] } };
}

/** The update that takes or grows a lease: by the needed amount, or what is available, plus an advance if it is rich. */
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

/** Measures the spending of an account in five seconds: the larger sum of this window and the previous one. */
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
