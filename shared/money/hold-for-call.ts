import { accountFrozen, insufficientBalance, noCapacity, rateLimited } from "#errors";
import type { Background } from "#platform/background";
import { type Clock, sleep } from "#platform/clock";
import { type Hold, type HoldResult, HoldUnknown, maxOpenHolds } from "./holds.ts";
import { isPaymentAccount, unitNanoUsd } from "./movements.ts";
import type { Decision, ReleasedCall, ReleaseReason } from "./settle.ts";

/** What to hold, and the call that it is for: its entry is written at once if the hold has to be released. */
export interface CallHold extends Hold, Pick<Decision, "kind" | "key" | "endpoint" | "model"> {
  /** The message of the 402. */
  insufficientText(availableNanoUsd: bigint): string;
}

/**
 * A call is answered before its cost is applied, so what it held and did not use is available a moment later. A caller
 * who calls again at once must not be refused for that.
 */
const applyDelayMs = 50;
/** After this the sweeper ends a hold whose outcome is unknown. It also bounds `settled`. */
const releaseTimeoutMs = 120_000;

export function createHoldForCall(deps: {
  hold: (hold: Hold) => Promise<HoldResult>;
  release: (call: ReleasedCall, reason: ReleaseReason) => Promise<unknown>;
  background: Background;
  clock: Clock;
}) {
  const { hold, release, background, clock } = deps;

  async function holdTwice(request: Hold): Promise<HoldResult> {
    const result = await hold(request);
    if (result.ok || result.reason !== "insufficient") return result;
    if (result.availableNanoUsd + result.heldNanoUsd < request.minNanoUsd) return result;
    await sleep(clock, applyDelayMs);
    return hold(request);
  }

  /** Hold outcome unknown: settle at zero in the background. */
  function releaseUnknown({ kind, account, requestId, key, endpoint, model }: CallHold, heldNanoUsd: bigint): void {
    const signal = AbortSignal.timeout(releaseTimeoutMs);
    const call = { kind, account, requestId, key, endpoint, model, heldNanoUsd, totalMs: 0, signal };
    const released = release(call, { status: "failed", error: "no_capacity" });
    background.run("the sweeper will end a hold whose outcome is unknown", released, { requestId });
  }

  /**
   * `hold` for a waiting caller: resolves with the amount held, or throws the error to answer (402, 403, 429, 503). A hold
   * whose outcome is unknown is released in the background.
   */
  return async function holdForCall(call: CallHold): Promise<bigint> {
    const result = await holdTwice(call).catch((error: unknown) => {
      if (!(error instanceof HoldUnknown)) throw error;
      releaseUnknown(call, error.heldNanoUsd);
      throw noCapacity("The balance could not be reached; nothing was charged.", 1, error);
    });
    if (result.ok) return result.heldNanoUsd;
    switch (result.reason) {
      case "frozen":
        throw accountFrozen();
      case "full": {
        const max = maxOpenHolds.toLocaleString("en");
        throw rateLimited(`This account has ${max} calls in flight, which is the maximum.`, 1);
      }
      case "insufficient":
        // A caller who has paid need not top up: another call of the payment holds all of it, or has just ended.
        if (isPaymentAccount(call.account) && result.availableNanoUsd < unitNanoUsd)
          throw noCapacity("This payment is in use by another call of the same request. Repeat it as it is.", 1);
        throw insufficientBalance(call.insufficientText(result.availableNanoUsd));
    }
  };
}
