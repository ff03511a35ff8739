import type { Bound } from "#catalog";
import { type CallHold, formatUsd, type Money } from "#money";

export interface Held {
  readonly heldNanoUsd: bigint;
  /** Output tokens for each choice that the hold pays for. */
  readonly outputCap: number;
}

/** Holds the most that the call can cost; for a caller who set no cap, what the balance covers if that is less. */
export async function hold(
  money: Money,
  call: Omit<CallHold, "maxNanoUsd" | "minNanoUsd" | "insufficientText"> & { readonly bound: Bound },
): Promise<Held> {
  const { bound, ...whose } = call;
  const { mostNanoUsd, leastNanoUsd } = bound;
  const heldNanoUsd = await money.holdForCall({
    ...whose,
    maxNanoUsd: mostNanoUsd,
    minNanoUsd: leastNanoUsd,
    insufficientText: (availableNanoUsd) => insufficientText(bound, availableNanoUsd),
  });
  return { heldNanoUsd, outputCap: heldNanoUsd === mostNanoUsd ? bound.outputCap : bound.capFor(heldNanoUsd) };
}

/** Says what the input needs, and what a cap that the caller named comes to. */
function insufficientText(bound: Bound, availableNanoUsd: bigint): string {
  const { mostNanoUsd, inputNanoUsd, outputCap, isCapNamed } = bound;
  const has = `the balance has ${formatUsd(availableNanoUsd)}.`;
  if (outputCap === 0) return `The balance is too low. The call can cost ${formatUsd(mostNanoUsd)} USD; ${has}`;
  const input = `The balance is too low. The input alone can cost ${formatUsd(inputNanoUsd)} USD; ${has}`;
  if (!isCapNamed) return input;
  return `${input} You asked for up to ${outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`;
}
