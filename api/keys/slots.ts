import type { Tier } from "#catalog";
import {
  accountFrozen,
  insufficientScope,
  invalidApiKey,
  keyExpired,
  noCapacity,
  rateLimited,
  ServiceError,
} from "#errors";
import type { KeyBudget, KeyCache, Limits, PromptCache, Scope } from "#key-records";
import type { Clock } from "#platform/clock";
import { onReconnect } from "#platform/redis";
import type { Uses } from "#platform/uses";
import { budgetedQuotas, type createBudgets, hasBudget, sharedQuotas } from "./budgets.ts";
import { anyEpoch, type Epoch } from "./epoch.ts";
import type { createLimits, LimitCheck, Quota, QuotaBudget, RateLimits } from "./limits.ts";
import { createPendingWrites } from "./pending-writes.ts";

/** The owner of a key, or the account of a payment. */
export interface Caller {
  readonly keyId: string;
  readonly account: string;
  readonly tier: Tier;
  readonly scopes: readonly Scope[];
  readonly buybackToken: string | null;
  readonly frozen: boolean;
  readonly limits: Limits;
  readonly budget: KeyBudget | null;
  /** The budgets of the keys that created it. Its calls also count against these. */
  readonly sharedBudgets: readonly QuotaBudget[];
  /** Ids of models, and `provider/*`. Null stands for all. */
  readonly models: readonly string[] | null;
  readonly promptCache: PromptCache;
  readonly cache: KeyCache;
  readonly expiresAt: Date | null;
  /** The value of `limits:epoch` at the lookup; `any` for callers that never change. */
  readonly epoch: string;
}

/** One request that was counted, and its place among the key's concurrent ones. */
export interface Slot {
  /** Read when the slot was taken, so it may be newer than the result of `authenticate`. */
  readonly caller: Caller;
  readonly requestId: string;
  readonly quota: Quota;
  /** The key's other requests that were in flight when this one came, in all instances. */
  readonly inFlight: number;
  rateLimits: RateLimits;
  /** The tokens that have been counted so far. */
  takenTokens: number;
  /** The call is, or may be, open in the key's budget. */
  isBudgeted?: boolean;
}

interface SlotRequest {
  readonly requestId: string;
  /** The slot expires after this time. */
  readonly ttlMs: number;
  /** The tokens of the call if they are known. They are taken too if there are as many. */
  readonly tokens?: number;
}

/** The time within which a release joins the script of the key's next request. */
const releaseWaitMs = 25;

interface Released {
  readonly usedTokens?: number;
  readonly refusedBy?: ServiceError | undefined;
  readonly costNanoUsd?: bigint | undefined;
}

interface SlotKind {
  quotaOf(caller: Caller): Quota;
  /** The names that errors use for counted requests and for those in flight. */
  readonly names: readonly [rate: string, running: string];
}

/** Slots and tokens of keys. Releases that fail while Redis is unavailable are made afterwards. */
export function createSlots(
  deps: Uses<"redis" | "clock" | "log"> & {
    limits: ReturnType<typeof createLimits>;
    budgets: ReturnType<typeof createBudgets>;
    epoch: Epoch;
    /** Limits of one key. */
    uploads: { readonly perMinute: number; readonly concurrent: number };
    /** Reads a key again. Resolves to undefined if it is no longer valid. */
    refresh: (keyId: string) => Promise<Caller | undefined>;
  },
) {
  const { redis, limits, budgets, epoch, uploads, refresh, clock, log } = deps;
  const calls: SlotKind = {
    quotaOf: (caller) => ({ ...caller.limits, ...budgetsOf(caller), name: `{${caller.keyId}}` }),
    names: ["requests", "calls in flight"],
  };
  const uploading: SlotKind = {
    quotaOf: (caller) => ({
      name: `{${caller.keyId}}:uploads`,
      ...budgetsOf(caller),
      requestsPerMinute: uploads.perMinute,
      tokensPerMinute: 1,
      concurrentRequests: uploads.concurrent,
    }),
    names: ["uploads", "uploads at once"],
  };
  const pending = createPendingWrites({ clock, log });
  onReconnect(redis, () => pending.repeatRecent());

  function unchecked(error: unknown): never {
    throw noCapacity("The limits of the API key cannot be checked right now.", 1, error);
  }

  /** Returns undefined, and counts nothing, if the epoch is not the expected one. */
  async function enter(quota: Quota, request: SlotRequest, expectedEpoch: string): Promise<LimitCheck | undefined> {
    const isSent = redis.status === "ready";
    const { requestId } = request;
    const uncount = (tokens = 0) => limits.free({ quota, requestId, requests: -1, tokens: -tokens });
    try {
      // Both run together, and need not be in one hash slot. The epoch is read after the caller was looked up.
      const [check, current] = await Promise.all([
        limits.enter({ quota, ...request }),
        expectedEpoch === anyEpoch ? anyEpoch : epoch.current(),
      ]);
      if (current === expectedEpoch) return check;
      if (!check.reached) await pending.run(() => uncount(check.takenTokens));
      return undefined;
    } catch (error) {
      // A script that was sent may have counted the request even if its answer was lost.
      if (isSent) pending.defer(uncount);
      return unchecked(error);
    }
  }

  async function take(
    kind: SlotKind,
    caller: Caller,
    request: SlotRequest,
    expectedEpoch = caller.epoch,
  ): Promise<Slot> {
    const lacksScope = !caller.scopes.includes("inference");
    // The key may have been given the scope since it was looked up.
    if (lacksScope && (expectedEpoch === anyEpoch || (await epoch.current().catch(unchecked)) === expectedEpoch))
      throw insufficientScope("inference");
    assertNotExpired(caller, clock);
    const quota = kind.quotaOf(caller);
    const { requestId } = request;
    const check = lacksScope ? undefined : await enter(quota, request, expectedEpoch);
    if (!check) {
      const refreshed = await refresh(caller.keyId);
      if (!refreshed) throw invalidApiKey();
      // The caller was read after the script had answered, so any later change comes after this call.
      return take(kind, refreshed, request, anyEpoch);
    }
    const { inFlight, rateLimits, takenTokens } = check;
    if (caller.frozen) {
      // The request stays counted, so that the limits hold for frozen accounts too.
      if (!check.reached) await pending.run(() => limits.free({ quota, requestId, requests: 0, tokens: -takenTokens }));
      throw accountFrozen();
    }
    if (check.reached) throw limitReached(caller, check, reachedText(quota, check, kind));
    return { caller, requestId, quota, inFlight, rateLimits, takenTokens };
  }

  /** Never rejects: while Redis is unavailable, the write is retried. */
  const endTake = async (quota: Quota, requestId: string, costNanoUsd: bigint): Promise<void> => {
    const ends = budgetedQuotas(quota).map((each) =>
      pending.run(() => limits.end({ quota: each, requestId, costNanoUsd })),
    );
    await Promise.all(ends);
  };

  function uncheckedUnlessRefused(error: unknown): never {
    if (error instanceof ServiceError) throw error;
    return unchecked(error);
  }

  return {
    /** Counts one request and takes a slot. The same request counts once. Throws 401, 403, 429, 503. */
    takeSlot: (caller: Caller, request: SlotRequest) => take(calls, caller, request),
    takeUploadSlot: (caller: Caller, request: SlotRequest) => take(uploading, caller, request),

    /**
     * The amount that every budget of the key still covers, at least `minNanoUsd`; undefined without a budget. Throws 402,
     * 503.
     */
    async budgetRemaining({ quota }: Slot, minNanoUsd: bigint): Promise<bigint | undefined> {
      const asked = budgetedQuotas(quota).map((each) => budgets.remaining(each, minNanoUsd));
      const remaining = await Promise.all(asked).catch(uncheckedUnlessRefused);
      return remaining.reduce((least, each) => (each < least ? each : least), remaining[0] as bigint);
    },

    /**
     * Counts the tokens of a call that has a slot, and its hold against the key's budgets. The hold must have been written
     * before. After a refusal `release` returns what was taken. Throws 402, 403, 429, 503.
     */
    async takeTokens(slot: Slot, tokens: number, heldNanoUsd = 0n): Promise<void> {
      const { caller, requestId, quota } = slot;
      // An error leaves unknown whether the tokens were counted. If they were, the bucket refills within a minute.
      const take = (from: Quota, count = tokens) =>
        limits.takeTokens({ quota: from, requestId, tokens: count, nanoUsd: heldNanoUsd });
      slot.isBudgeted = budgetedQuotas(quota).length > 0;
      for (const shared of sharedQuotas(quota))
        await budgets.take(shared, heldNanoUsd, () => take(shared, 0)).catch(uncheckedUnlessRefused);
      const taking = hasBudget(quota) ? budgets.take(quota, heldNanoUsd, () => take(quota)) : take(quota);
      const taken = await taking.catch(uncheckedUnlessRefused);
      if (taken.reached) throw limitReached(caller, taken, tokensReachedText(caller.limits, tokens), tokens);
      slot.takenTokens += tokens;
      slot.rateLimits = taken.rateLimits;
    },

    /** Counts the cost of an upload, which another request may have started. */
    async endBudgeted({ quota }: Slot, requestId: string, costNanoUsd: bigint): Promise<void> {
      await endTake(quota, requestId, costNanoUsd);
    },

    /**
     * Frees the slot and counts `usedTokens` (default: none) instead of the tokens taken. A request that was refused for a
     * reason other than the caller's is not counted either. The cost replaces what the call took from the key's budgets; an
     * unknown cost is found in the ledger later. Never rejects: while Redis is unavailable, the write is retried.
     */
    release(slot: Slot, { usedTokens = 0, refusedBy, costNanoUsd }: Released = {}): Promise<void> {
      const { requestId, quota, takenTokens, isBudgeted } = slot;
      if (isBudgeted && costNanoUsd !== undefined) void endTake(quota, requestId, costNanoUsd);
      const requests = refusedBy && !staysCounted(refusedBy) ? -1 : 0;
      const tokens = usedTokens - takenTokens;
      const isHurried = refusedBy !== undefined || !isFarFromLimits(slot);
      return pending.run(() =>
        limits.free({ quota, requestId, requests, tokens, ...(!isHurried && { mayWaitMs: releaseWaitMs }) }),
      );
    },
  };
}

/** Another request of the key is unlikely to need what this one frees. */
const isFarFromLimits = ({ quota, inFlight, rateLimits: { tokens } }: Slot): boolean =>
  inFlight < quota.concurrentRequests / 2 && tokens.remaining > tokens.limit / 2;

export const isExpired = ({ expiresAt }: Pick<Caller, "expiresAt">, clock: Clock): boolean =>
  expiresAt != null && clock.now() >= expiresAt.getTime();

/** Throws 401. A cached key may have expired since it was read. */
export function assertNotExpired(caller: Pick<Caller, "expiresAt">, clock: Clock): void {
  if (isExpired(caller, clock)) throw keyExpired();
}

const budgetsOf = ({ budget, sharedBudgets, keyId, account }: Caller): Pick<Quota, "budget" | "sharedBudgets"> => ({
  budget: budget ? { ...budget, keyId, account } : undefined,
  sharedBudgets,
});

/** A 429 of the key, with the state of its limits. */
export class RateLimitReached extends ServiceError {
  readonly rateLimits: RateLimits;

  constructor(refused: ServiceError, rateLimits: RateLimits) {
    super(refused.fields());
    this.rateLimits = rateLimits;
  }
}

/**
 * Returns true if a refused request stays counted against its key. Failures of the service do not count, nor does a limit
 * that is worth waiting for. `generation_in_progress` is not a failure.
 */
function staysCounted({ status, code, shouldRetry }: ServiceError): boolean {
  if (status === 429) return shouldRetry === false;
  return status < 500 || code === "generation_in_progress";
}

function limitReached({ limits }: Caller, { waitMs, rateLimits }: LimitCheck, text: string, tokens = 0) {
  const waitSeconds = tokens > limits.tokensPerMinute ? Number.POSITIVE_INFINITY : waitMs / 1000;
  return new RateLimitReached(rateLimited(text, waitSeconds), rateLimits);
}

const prefix = "Rate limit of this API key reached:";

/** Names the limit whose wait is the longest. */
function reachedText(limits: Limits, { reached = "requests" }: LimitCheck, { names }: SlotKind): string {
  const [rate, running] = names;
  const limit = {
    requests: `${rate} a minute, limit ${limits.requestsPerMinute}`,
    tokens: `tokens a minute, limit ${limits.tokensPerMinute}, earlier calls used more`,
    concurrent: `${running}, limit ${limits.concurrentRequests}`,
  }[reached === "budget" || reached === "uncounted" ? "requests" : reached];
  return `${prefix} ${limit}.`;
}

const tokensReachedText = ({ tokensPerMinute }: Limits, tokens: number): string =>
  tokens > tokensPerMinute
    ? `The call asks for ${tokens} tokens and can never pass: this API key has ${tokensPerMinute} tokens a minute.`
    : `${prefix} tokens a minute, limit ${tokensPerMinute}, the call asks for ${tokens}.`;
