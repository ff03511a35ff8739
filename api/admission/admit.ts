import type { Catalog, Model } from "#catalog";
import { noCapacity } from "#errors";
import { estimateTokens, type ParsedCall } from "#formats";
import type { Picture, Pool } from "#jobs";
import type { Caller, Keys, RateLimits } from "#keys";
import { HoldUnknown, type Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { checkCapacity } from "./capacity.ts";
import { type Held, hold } from "./hold.ts";
import { resolveModel } from "./model.ts";

export interface AdmissionDeps {
  readonly catalog: Catalog;
  readonly picture: Picture;
  readonly keys: Keys;
  readonly money: Money;
  readonly clock: Clock;
  readonly backlogLimit: number;
  readonly log: Logger;
}

export interface Ask {
  readonly requestId: string;
  readonly caller: Caller;
  readonly call: ParsedCall;
  readonly endpoint: string;
  readonly pool: Pool;
  /** Unix milliseconds. */
  readonly arrivedAt: number;
  readonly deadlineAt: number;
}

export interface Admitted extends Held {
  readonly model: Model;
  readonly limits: RateLimits;
  /** Tokens counted against the key's limit until the true number is known. */
  readonly takenTokens: number;
  readonly inputEstimate: number;
}

/** A hold outlives its call by this much before the sweeper looks at it. */
const holdMarginMs = 120_000;

/**
 * The gates of a paid call, cheapest first; each throws its own error. What passes has its limits taken and its money
 * held; what does not has neither.
 */
export async function admit(deps: AdmissionDeps, ask: Ask): Promise<Admitted> {
  const { call, caller, requestId } = ask;
  const model = resolveModel(deps, ask.endpoint, call);
  checkCapacity(deps, ask.pool, model);
  const bound = deps.catalog.bound(model, call.size, caller.tier);
  const inputEstimate = Math.min(bound.inputTokens, estimateTokens(call.textBytes));
  const takenTokens = inputEstimate + (call.size.outputCap === undefined ? 0 : bound.outputCap * call.size.choices);
  const ttlMs = ask.deadlineAt - ask.arrivedAt;
  const limits = await deps.keys.take(caller, { requestId, tokens: takenTokens, ttlMs });
  try {
    const expiresAt = ask.deadlineAt + holdMarginMs;
    const held = await hold(deps, { account: caller.account, requestId, expiresAt, bound });
    return { ...held, model, limits, takenTokens, inputEstimate };
  } catch (error) {
    await deps.keys.giveBack(caller, requestId, takenTokens);
    if (!(error instanceof HoldUnknown)) throw error;
    releaseUnknown(deps, ask, model, error);
    throw noCapacity("The balance could not be reached; nothing was charged.", 1, error);
  }
}

/** The hold may stand: it is decided 0 as soon as MongoDB takes it, and the caller does not wait for that. */
function releaseUnknown({ money, log }: AdmissionDeps, ask: Ask, model: Model, unknown: HoldUnknown): void {
  const { requestId, caller, endpoint } = ask;
  const settled = money.settle({
    account: caller.account,
    requestId,
    key: caller.keyId,
    endpoint,
    model: model.id,
    heldNanoUsd: unknown.heldNanoUsd,
    costNanoUsd: 0n,
    status: "failed",
    error: "no_capacity",
    attempts: 0,
    usage: {},
    estimated: false,
    totalMs: 0,
    signal: AbortSignal.timeout(holdMarginMs),
  });
  settled.catch((error: unknown) =>
    log.warn({ err: error, requestId }, "a hold of unknown fate is left to the sweeper"),
  );
}
