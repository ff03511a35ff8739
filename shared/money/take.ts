import { accountFrozen, insufficientBalance, noCapacity, rateLimited } from "#errors";
import type { Background } from "#platform/background";
import { type Clock, sleep } from "#platform/clock";
import type { Decided, Decision, ReleasedCall, ReleaseReason } from "./decide.ts";
import { type Hold, type HoldAnswer, HoldUnknown, mostOpenHolds } from "./holds.ts";
import { isPaymentAccount, unitNanoUsd } from "./payment-accounts.ts";

/** What is to be held, and whose entry it is if it has to be decided 0 at once. */
export interface Take extends Hold, Pick<Decision, "kind" | "key" | "endpoint" | "model"> {
  /** Says what was asked for and what the balance covers: the text of the 402. */
  poor(availableNanoUsd: bigint): string;
}

interface Deps {
  readonly hold: (hold: Hold) => Promise<HoldAnswer>;
  readonly release: (call: ReleasedCall, reason: ReleaseReason) => Promise<Decided>;
  readonly background: Background;
  readonly clock: Clock;
}

/**
 * A call is answered before its cost is applied: what it held and did not use is there a moment later. A caller who calls
 * again at once must not be told that it is missing.
 */
const momentMs = 50;
/** After this the sweeper ends a hold of unknown fate. It also bounds `settled`. */
const unknownMs = 120_000;

export function createTake({ hold, release, background, clock }: Deps) {
  async function patiently(ask: Hold): Promise<HoldAnswer> {
    const answer = await hold(ask);
    if (answer.ok || answer.reason !== "poor") return answer;
    if (answer.availableNanoUsd + answer.heldNanoUsd < ask.leastNanoUsd) return answer;
    await sleep(clock, momentMs);
    return hold(ask);
  }

  /** Whether the hold stands is unknown: settle at zero in the background. */
  function releaseUnknown({ kind, account, requestId, key, endpoint, model }: Take, unknown: HoldUnknown): void {
    const signal = AbortSignal.timeout(unknownMs);
    const { heldNanoUsd } = unknown;
    const call = { kind, account, requestId, key, endpoint, model, heldNanoUsd, totalMs: 0, signal };
    const released = release(call, { status: "failed", error: "no_capacity" });
    background.run("a hold of unknown fate is left to the sweeper", released, { requestId });
  }

  return async function take(ask: Take): Promise<bigint> {
    const answer = await patiently(ask).catch((error: unknown) => {
      if (!(error instanceof HoldUnknown)) throw error;
      releaseUnknown(ask, error);
      throw noCapacity("The balance could not be reached; nothing was charged.", 1, error);
    });
    if (answer.ok) return answer.heldNanoUsd;
    switch (answer.reason) {
      case "frozen":
        throw accountFrozen();
      case "full": {
        const most = mostOpenHolds.toLocaleString("en");
        throw rateLimited(`This account has ${most} calls in flight, the most that there may be.`, 1);
      }
      case "poor":
        // Nobody who has paid is told to top up: another call of the payment holds all of it, or has just ended.
        if (isPaymentAccount(ask.account) && answer.availableNanoUsd < unitNanoUsd)
          throw noCapacity("This payment is in use by another call of the same request. Repeat it as it is.", 1);
        throw insufficientBalance(ask.poor(answer.availableNanoUsd));
    }
  };
}
