/**
 * The fee of a call that ran with a provider key of its account: `feeBps` basis points of what the call would have cost
 * otherwise. That amount is whole nano-USD already; the fee is rounded up, once.
 */
export const feeOf = (listNanoUsd: bigint, feeBps: number): bigint => (listNanoUsd * BigInt(feeBps) + 9_999n) / 10_000n;

/** The most that a call may otherwise cost for its fee to be within an amount. Undefined without a fee. */
export const listWithin = (feeNanoUsd: bigint, feeBps: number): bigint | undefined =>
  feeBps === 0 ? undefined : (feeNanoUsd * 10_000n) / BigInt(feeBps);
