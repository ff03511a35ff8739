import type { Bound } from "#catalog";
import { accountFrozen, insufficientBalance, rateLimited } from "#errors";
import { formatUsd, type Money } from "#money";
import { type Clock, sleep } from "#platform/clock";

export interface Held {
  readonly heldNanoUsd: bigint;
  /** Output tokens for each choice that the hold pays for. */
  readonly outputCap: number;
}

/**
 * A call is answered before its cost is applied: what it held and did not use is there a moment later. Who calls again at
 * once must not be told that it is missing.
 */
const momentMs = 50;

/** Holds the most that the call can cost; for a caller who set no cap, what the balance covers if that is less. */
export async function hold(
  { money, clock }: { money: Money; clock: Clock },
  call: { account: string; requestId: string; expiresAt: number; bound: Bound },
): Promise<Held> {
  const { bound, account, requestId, expiresAt } = call;
  const { mostNanoUsd, leastNanoUsd } = bound;
  const ask = () => money.hold({ account, requestId, mostNanoUsd, leastNanoUsd, expiresAt });
  let answer = await ask();
  if (!answer.ok && answer.reason === "poor") {
    // Unreadable just now: then the answer that is there stands.
    const { openHolds = 0, availableNanoUsd = 0n } = (await money.account(account).catch(() => undefined)) ?? {};
    if (openHolds > 0) await sleep(clock, momentMs);
    if (openHolds > 0 || availableNanoUsd >= leastNanoUsd) answer = await ask();
  }
  if (answer.ok) {
    const { heldNanoUsd } = answer;
    return { heldNanoUsd, outputCap: heldNanoUsd === mostNanoUsd ? bound.outputCap : bound.capFor(heldNanoUsd) };
  }
  switch (answer.reason) {
    case "frozen":
      throw accountFrozen();
    case "full":
      throw rateLimited("This account has 2,000 calls in flight, the most that there may be.", 1);
    case "poor":
      throw insufficientBalance(poorText(bound, answer.availableNanoUsd));
  }
}

/** Says what was asked for and what the balance covers. */
const poorText = (bound: Bound, availableNanoUsd: bigint) =>
  bound.outputCap > 0
    ? `The balance is too low. You asked for up to ${bound.outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`
    : `The balance is too low. The call can cost ${formatUsd(bound.mostNanoUsd)} USD; the balance has ${formatUsd(availableNanoUsd)}.`;
