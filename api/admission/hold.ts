import type { Bound } from "#catalog";
import { formatUsd, type Money, type Take } from "#money";

export interface Held {
  readonly heldNanoUsd: bigint;
  /** Output tokens for each choice that the hold pays for. */
  readonly outputCap: number;
}

/** Holds the most that the call can cost; for a caller who set no cap, what the balance covers if that is less. */
export async function hold(
  money: Money,
  call: Omit<Take, "mostNanoUsd" | "leastNanoUsd" | "poor"> & { readonly bound: Bound },
): Promise<Held> {
  const { bound, ...whose } = call;
  const { mostNanoUsd, leastNanoUsd } = bound;
  const poor = (availableNanoUsd: bigint) => poorText(bound, availableNanoUsd);
  const heldNanoUsd = await money.take({ ...whose, mostNanoUsd, leastNanoUsd, poor });
  return { heldNanoUsd, outputCap: heldNanoUsd === mostNanoUsd ? bound.outputCap : bound.capFor(heldNanoUsd) };
}

/** Says what was asked for and what the balance covers. */
const poorText = (bound: Bound, availableNanoUsd: bigint) =>
  bound.outputCap > 0
    ? `The balance is too low. You asked for up to ${bound.outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`
    : `The balance is too low. The call can cost ${formatUsd(bound.mostNanoUsd)} USD; the balance has ${formatUsd(availableNanoUsd)}.`;
