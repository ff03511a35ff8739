import type { MoneyDeps } from "../deps.ts";
import { assertAmount } from "../usd.ts";
import { movedExpiry } from "./lease.ts";

export interface LongLeaseGrowth {
  readonly account: string;
  readonly lease: string;
  /** The lease must not exist yet; otherwise it must. */
  readonly isFirst: boolean;
  /** Negative amounts are given back. */
  readonly nanoUsd: bigint;
  /** Unix milliseconds after which the sweeper closes the lease in any case. */
  readonly callsEndAt: number;
}

/** The id of a lease whose owner is not an API instance. The sweeper closes it once the owner has ended. */
export const longLeaseOf = (owner: string): string => `lease:${owner}:0`;

/** Leases of work that outlives API instances. */
export function createLongLeases({ accounts, clock }: MoneyDeps) {
  /** Returns false if the balance does not cover the amount, the account is frozen, or the lease is closed. */
  async function growLongLease({ account, lease, isFirst, nanoUsd, callsEndAt }: LongLeaseGrowth): Promise<boolean> {
    assertAmount(nanoUsd < 0n ? -nanoUsd : nanoUsd, "nanoUsd");
    const hold = `holds.${lease}`;
    const now = clock.now();
    const filter = { _id: account, frozen: false, available: { $gte: nanoUsd }, [hold]: { $exists: !isFirst } };
    const { matchedCount } = await accounts.collection.updateOne(filter, [
      {
        $set: {
          available: { $subtract: ["$available", nanoUsd] },
          held: { $add: ["$held", nanoUsd] },
          [`${hold}.amount`]: isFirst ? nanoUsd : { $add: [`$${hold}.amount`, nanoUsd] },
          [`${hold}.callsEndAt`]: new Date(callsEndAt),
          ...movedExpiry(lease, now),
          ...(isFirst && { [`${hold}.heldAt`]: new Date(now), openHolds: { $add: ["$openHolds", 1] } }),
        },
      },
      ...(isFirst ? [{ $set: { holdsExpireAt: { $min: ["$holdsExpireAt", `$${hold}.expiresAt`] } } }] : []),
    ]);
    return matchedCount === 1;
  }

  return { growLongLease };
}
