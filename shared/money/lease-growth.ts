const aheadShare = 8;

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
    readonly now: Date;
    readonly expiresAt: Date;
    readonly callsEndAt: Date;
  },
) {
  const { isFirst, needNanoUsd, aheadNanoUsd, richNanoUsd, now, expiresAt, callsEndAt } = lease;
  const hold = `holds.${id}`;
  const share = { $toLong: { $floor: { $divide: ["$available", aheadShare] } } };
  const ahead = { $cond: [{ $gte: ["$available", richNanoUsd] }, { $min: [aheadNanoUsd, share] }, 0n] };
  const granted = { $min: ["$available", { $add: [needNanoUsd, ahead] }] };
  const amount = isFirst ? `$${hold}.granted` : { $add: [`$${hold}.amount`, `$${hold}.granted`] };
  return [
    { $set: { [`${hold}.granted`]: granted, [`${hold}.callsEndAt`]: callsEndAt } },
    {
      $set: {
        available: { $subtract: ["$available", `$${hold}.granted`] },
        held: { $add: ["$held", `$${hold}.granted`] },
        [`${hold}.amount`]: amount,
        ...(isFirst && {
          [`${hold}.heldAt`]: now,
          [`${hold}.expiresAt`]: expiresAt,
          openHolds: { $add: ["$openHolds", 1] },
          holdsExpireAt: { $min: ["$holdsExpireAt", expiresAt] },
        }),
      },
    },
  ];
}
