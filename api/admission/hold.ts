import type { Bound } from "#catalog";
import { formatUsd, type Money, type Take } from "#money";

export interface Held {
  readonly heldNanoUsd: bigint;
  /** Output tokens for each choice that the hold pays for. */
  readonly outputCap: number;
}

/** Holds the most that the call can cost, or, if the caller set no cap, the part of it that the balance covers. */
export async function hold(
  money: Money,
  call: Omit<Take, "mostNanoUsd" | "leastNanoUsd" | "poor"> & { readonly bound: Bound },
): Promise<Held> {
  const { bound, ...target } = call;
  const { mostNanoUsd, leastNanoUsd } = bound;
  const poor = (availableNanoUsd: bigint) => insufficientText(bound, availableNanoUsd);
  const heldNanoUsd = await money.take({ ...target, mostNanoUsd, leastNanoUsd, poor });
  return { heldNanoUsd, outputCap: heldNanoUsd === mostNanoUsd ? bound.outputCap : bound.capFor(heldNanoUsd) };
}

/** What the input can cost, and how many output tokens the balance covers if the caller named a cap. */
function insufficientText(bound: Bound, availableNanoUsd: bigint): string {
  const { mostNanoUsd, inputNanoUsd, outputCap, isCapNamed } = bound;
  const balance = `the balance has ${formatUsd(availableNanoUsd)}.`;
  if (outputCap === 0) return `The balance is too low. The call can cost ${formatUsd(mostNanoUsd)} USD; ${balance}`;
  const input = `The balance is too low. The input alone can cost ${formatUsd(inputNanoUsd)} USD; ${balance}`;
  if (!isCapNamed) return input;
  return `${input} You asked for up to ${outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`;
}
