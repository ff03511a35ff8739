const aheadShare = 8;
/** From then on the sweeper asks whether the instance lives. */
const sweptAfterMs = 15_000;

/**
 * What an instance writes that relies on its lease: another expiry, whatever its clock says. The sweeper closes a lease only if
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
