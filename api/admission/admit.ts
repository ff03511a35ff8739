import type { Bound, Catalog, Model } from "#catalog";
import type { Files } from "#files";
import { estimateTokens, type ParsedCall } from "#formats";
import type { Pool, WorkerRegistry } from "#jobs";
import type { Caller, Entered, Keys } from "#keys";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { boundOf } from "./bound.ts";
import { checkCapacity } from "./capacity.ts";
import { type Held, hold } from "./hold.ts";
import { resolveModel, type Serves } from "./model.ts";

export interface AdmissionDeps {
  readonly catalog: Catalog;
  readonly registry: WorkerRegistry;
  readonly keys: Keys;
  readonly money: Money;
  readonly files: Files;
  readonly clock: Clock;
  readonly backlogLimit: number;
  readonly log: Logger;
}

export interface Ask {
  readonly requestId: string;
  readonly caller: Caller;
  readonly entered: Entered;
  readonly call: ParsedCall;
  readonly serves: Serves;
  /** Nothing is held, and only the limit of requests counts. */
  readonly isFree: boolean;
  readonly pool: Pool;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
}

export interface Admitted extends Held {
  readonly model: Model;
  /** Tokens counted against the key's limit until the true number is known. */
  readonly takenTokens: number;
  /** The most that it can use of what is held for it: no provider's count takes more of the limit. */
  readonly mostTokens: number;
  /** Input tokens that the hold covers. */
  readonly inputBound: number;
  readonly inputEstimate: number;
}

/** What can be said before anything is taken. */
type Checking = Pick<Ask, "call" | "serves" | "pool"> & { readonly caller: Pick<Caller, "account" | "tier"> };

const nothing = { mostNanoUsd: 0n, leastNanoUsd: 0n, outputCap: 0, capFor: () => 0 };

/** A refused caller waits no longer for what it held to be given back. */
const settleMs = 2_000;
/** A hold outlives its call by this much before the sweeper looks at it. */
const holdMarginMs = 120_000;

/** Whether the call can be worked on now, and the most that it can cost. Takes nothing. */
export async function check(
  deps: Omit<AdmissionDeps, "keys" | "money">,
  { call, caller, serves, pool }: Checking,
): Promise<{ readonly model: Model; readonly bound: Bound }> {
  const model = resolveModel(deps, serves, call);
  if (call.input) deps.catalog.checkInput(model, call.input);
  checkCapacity(deps, pool, model);
  return { model, bound: await boundOf(deps, caller, model, call) };
}

/**
 * The gates of a paid call, cheapest first; each throws its own error. What passes has its tokens taken and its money
 * held; what does not has no money held, and whoever let it enter gives back what that took.
 */
export async function admit(deps: AdmissionDeps, ask: Ask): Promise<Admitted> {
  const { call, caller, requestId } = ask;
  const { model, bound: most } = await check(deps, ask);
  const bound = ask.isFree ? { ...most, ...nothing } : most;
  const inputEstimate = Math.min(bound.inputTokens, estimateTokens(call.textBytes));
  const takenTokens = ask.isFree
    ? 0
    : inputEstimate + (call.size.outputCap === undefined ? 0 : bound.outputCap * call.size.choices);
  const expiresAt = ask.deadlineAt + holdMarginMs;
  const whose = {
    account: caller.account,
    key: caller.keyId,
    requestId,
    endpoint: ask.serves.endpoint,
    model: model.id,
  };
  const taking = takenTokens > 0 ? deps.keys.takeTokens(ask.entered, takenTokens) : Promise.resolve();
  // Far from its limit nothing is expected to be refused: then the hold need not wait for the answer.
  if (takenTokens > ask.entered.rateLimits.remainingTokens / 2) await taking;
  const [tokens, holding] = await Promise.allSettled([taking, hold(deps.money, { ...whose, expiresAt, bound })]);
  if (holding.status === "rejected") throw holding.reason;
  const held = holding.value;
  if (tokens.status === "rejected") {
    const signal = AbortSignal.timeout(settleMs);
    const released = { ...whose, heldNanoUsd: held.heldNanoUsd, totalMs: 0, signal };
    await deps.money
      .release(released, { status: "failed", error: "rate_limit_exceeded" })
      .catch((error: unknown) => deps.log.warn({ err: error, requestId }, "a hold is left to the sweeper"));
    throw tokens.reason;
  }
  const mostTokens = bound.inputTokens + held.outputCap * call.size.choices;
  return { ...held, model, takenTokens, mostTokens, inputBound: bound.inputTokens, inputEstimate };
}
