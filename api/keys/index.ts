/**
 * API keys: who is calling, and how much a key may still do this minute. Owns the collection `keys` and the Redis keys
 * `limits:*`.
 *
 * A secret is `live_` and 40 random base62 characters (docs/api/inference.md, part 5), shown once and stored as a hash.
 * What a secret stands for is cached in memory until `limits:epoch` has another value. Whoever changes something that a
 * `Caller` carries writes MongoDB first, then the epoch. A paid call compares it in the very script that takes its slot,
 * any other call at most 500 ms late; so a revocation can neither be missed nor lost.
 *
 * Limits belong to a key (docs/api/inference.md, part 8); a payment by x402 has the default ones, and a caller with neither
 * is counted by address. A call takes a slot before its body is read: requests and slots are checked before either is
 * counted. Its tokens are taken once their number is known. Uploads have a rate and slots of their own for each key.
 *
 * Throws `invalidApiKey`, `rateLimited` (`accountFrozen` where that is so too), `notFound("key")`, `invalidValue("after")`,
 * and `noCapacity` while a store that is needed is unavailable.
 */
import type { Redis } from "ioredis";
import type { Tier } from "#catalog";
import { accountFrozen, invalidApiKey, noCapacity, notFound, rateLimited, ServiceError } from "#errors";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { createAddressLimit } from "./addresses.ts";
import { createEpoch } from "./epoch.ts";
import {
  anyEpoch,
  callQuota,
  createLimits,
  type LimitCheck,
  type Limits,
  type Quota,
  type RateLimits,
  uploadQuota,
} from "./limits.ts";
import { createLookups } from "./lookups.ts";
import { createPendingWrites } from "./pending-writes.ts";
import { createKeyStore, type KeyPatch, type KeyRecord, type Page, secretHash } from "./store.ts";

export type { Limits, RateLimits } from "./limits.ts";
export type { KeyPatch, KeyRecord } from "./store.ts";

/** Who is calling, as admission needs it. */
export interface Caller {
  readonly keyId: string;
  readonly account: string;
  readonly tier: Tier;
  readonly buybackToken: string | null;
  /** Only chooses the error of a refused call: whether a call may run is decided by the hold. */
  readonly frozen: boolean;
  readonly limits: Limits;
  /** The value of `limits:epoch` that this was looked up under; `any` for what never changes. */
  readonly epoch: string;
}

/** One request that was counted, and its place among the key's concurrent ones. */
export interface Slot {
  /** As of the time when the slot was taken, which may be newer than the lookup. */
  readonly caller: Caller;
  readonly requestId: string;
  readonly kind: SlotKind;
  rateLimits: RateLimits;
  /** What `takeTokens` has counted so far. */
  takenTokens: number;
}
type SlotKind = "calls" | "uploads";

interface SlotRequest {
  readonly requestId: string;
  /** Then the slot is free in any case. */
  readonly ttlMs: number;
}

interface SlotEnd {
  readonly usedTokens?: number;
  readonly refusedBy?: ServiceError | undefined;
}

export interface Keys {
  /** Makes the collection and its indexes. Doing it again changes nothing. */
  prepare(): Promise<void>;
  authenticate(secret: string | undefined): Promise<Caller>;
  /** The caller of a paid-for call: there is no key, and the id of the payment's account stands in its place. */
  payer(account: string, buybackToken: string | undefined): Caller;
  /** Counts a request without a key. Throws 429 for an address that makes too many. */
  countAddress(address: string, requestId: string): Promise<void>;
  /** Counts one request and takes a slot. The same request counts once. Throws 401, 403, 429, 503. */
  takeSlot(caller: Caller, request: SlotRequest): Promise<Slot>;
  takeUploadSlot(caller: Caller, request: SlotRequest): Promise<Slot>;
  /** Counts the tokens of a call that has a slot. Throws 403, 429, 503. */
  takeTokens(slot: Slot, tokens: number): Promise<void>;
  /**
   * Frees the slot and counts `usedTokens` (default: none) instead of those taken. A request that was refused for a reason
   * that is not the caller's does not count either. Never rejects: while Redis is unavailable it is done later.
   */
  release(slot: Slot, end?: SlotEnd): Promise<void>;
  /** The secret is returned only here. */
  issue(account: string, key: KeyPatch): Promise<{ key: KeyRecord; secret: string }>;
  list(account: string, page: Page): Promise<KeyRecord[]>;
  update(id: string, patch: KeyPatch): Promise<KeyRecord>;
  /** Doing it again changes nothing, but notifies every instance again. */
  revoke(id: string): Promise<KeyRecord>;
  /** To be called after an account was changed. */
  epochChanged(): Promise<void>;
}

interface CachedKey {
  readonly caller: Caller;
  /** Unix milliseconds, as far as this instance knows. */
  lastUsedAt: number;
}

const lastUsedEveryMs = 60_000;

export function createKeys(deps: {
  mongo: Mongo;
  redis: Redis;
  money: Pick<Money, "account">;
  clock: Clock;
  log: Logger;
  defaults: Limits;
  /** Of one key. */
  uploads: { readonly perMinute: number; readonly concurrent: number };
  /** Of one address, without a key. */
  addressRequestsPerMinute: number;
}): Keys {
  const { redis, money, clock, log, defaults } = deps;
  const store = createKeyStore(deps);
  const epoch = createEpoch(deps);
  const limits = createLimits(redis);
  const uploadLimits: Limits = {
    requestsPerMinute: deps.uploads.perMinute,
    tokensPerMinute: 1,
    concurrentRequests: deps.uploads.concurrent,
  };
  const pending = createPendingWrites({ clock, log });
  redis.on("ready", () => pending.repeatRecent());
  const lookUp = createLookups<CachedKey>({ clock, epoch });

  async function read(by: { hash: string } | { _id: string }, currentEpoch: string): Promise<CachedKey | undefined> {
    try {
      const key = await store.find(by);
      const account = key && (await money.account(key.account));
      if (!account) return undefined;
      const { tier, buybackToken, frozen } = account;
      const caller: Caller = {
        keyId: key.id,
        account: key.account,
        tier,
        buybackToken,
        frozen,
        limits: { ...defaults, ...key.limits },
        epoch: currentEpoch,
      };
      return { caller, lastUsedAt: key.lastUsedAt?.getTime() ?? 0 };
    } catch (error) {
      throw noCapacity("The API key cannot be checked right now.", 1, error);
    }
  }

  function recordUse(key: CachedKey) {
    const now = clock.now();
    if (now - key.lastUsedAt < lastUsedEveryMs) return;
    key.lastUsedAt = now;
    store
      .used(key.caller.keyId)
      .catch((error: unknown) => log.warn({ err: error }, "the last use of a key was not recorded"));
  }

  async function epochChanged() {
    try {
      await epoch.replace();
    } catch (error) {
      throw noCapacity("The change is stored, but may take half a minute to be in force. Repeat it.", 1, error);
    }
  }

  const quotaOf = ({ keyId, limits }: Caller, kind: SlotKind): Quota =>
    kind === "calls" ? callQuota(keyId, limits) : uploadQuota(keyId, uploadLimits);
  const unchecked = (error: unknown) => noCapacity("The limits of the API key cannot be checked right now.", 1, error);

  async function enter(caller: Caller, request: SlotRequest, kind: SlotKind, expectedEpoch: string) {
    const sentAt = clock.now();
    const quota = quotaOf(caller, kind);
    const isSent = redis.status === "ready";
    try {
      const entry = await limits.enter(quota, request, expectedEpoch);
      epoch.observe(entry.epoch, sentAt);
      return entry;
    } catch (error) {
      // A script that was sent may have counted the request, whatever became of its answer.
      const { requestId } = request;
      if (isSent) pending.defer(() => limits.free(quota, { requestId, requests: -1, tokens: 0 }));
      throw unchecked(error);
    }
  }

  async function takeSlot(caller: Caller, request: SlotRequest, kind: SlotKind): Promise<Slot> {
    let current = caller;
    let entry = await enter(caller, request, kind, caller.epoch);
    if (entry.isOutdated) {
      const known = await lookUp(caller.keyId, (currentEpoch) => read({ _id: caller.keyId }, currentEpoch));
      if (!known) throw invalidApiKey();
      // Looked up after the script had answered: a later change comes after this call.
      current = known.caller;
      entry = await enter(current, request, kind, anyEpoch);
    }
    if (entry.reached) throw limitReached(current, entry, reachedText(quotaOf(current, kind).limits, entry, kind));
    return { caller: current, requestId: request.requestId, kind, rateLimits: entry.rateLimits, takenTokens: 0 };
  }

  return {
    prepare: () => store.prepare(),

    async authenticate(secret) {
      const hash = secretHash(secret);
      if (hash === undefined) throw invalidApiKey();
      await epoch.current();
      const known = await lookUp(hash, (currentEpoch) => read({ hash }, currentEpoch));
      if (!known) throw invalidApiKey();
      recordUse(known);
      return known.caller;
    },

    payer: (account, buybackToken) => ({
      keyId: account,
      account,
      tier: "standard",
      buybackToken: buybackToken ?? null,
      frozen: false,
      limits: defaults,
      epoch: anyEpoch,
    }),

    countAddress: createAddressLimit(limits, deps.addressRequestsPerMinute),

    takeSlot: (caller, request) => takeSlot(caller, request, "calls"),
    takeUploadSlot: (caller, request) => takeSlot(caller, request, "uploads"),

    async takeTokens(slot, tokens) {
      const { caller, requestId, kind } = slot;
      // After an error it is unknown whether they count: if so the bucket has refilled within a minute.
      const taking = limits.takeTokens(quotaOf(caller, kind), { requestId, tokens });
      const taken = await taking.catch((error: unknown) => Promise.reject(unchecked(error)));
      if (taken.reached) throw limitReached(caller, taken, tokensReachedText(caller.limits, tokens), tokens);
      slot.takenTokens += tokens;
      slot.rateLimits = taken.rateLimits;
    },

    release({ caller, requestId, kind, takenTokens }, { usedTokens = 0, refusedBy } = {}) {
      const requests = refusedBy && !staysCounted(refusedBy) ? -1 : 0;
      const corrections = { requestId, requests, tokens: usedTokens - takenTokens };
      return pending.run(() => limits.free(quotaOf(caller, kind), corrections));
    },

    async issue(account, key) {
      if (!(await money.account(account))) throw notFound("account");
      return store.insert(account, key);
    },

    list: (account, page) => store.list(account, page),

    async update(id, patch) {
      const key = await store.update(id, patch);
      if (patch.limits) await epochChanged();
      return key;
    },

    async revoke(id) {
      const key = await store.revoke(id);
      await epochChanged();
      return key;
    },

    epochChanged,
  };
}

/** A 429 of the key, with the state of its limits. */
export class RateLimitReached extends ServiceError {
  readonly rateLimits: RateLimits;

  constructor(refused: ServiceError, rateLimits: RateLimits) {
    super(refused.fields());
    this.rateLimits = rateLimits;
  }
}

/**
 * Whether a refused request stays counted. It does not after a failure of ours, or a limit that is worth waiting for; work
 * that goes on in another request is no failure.
 */
function staysCounted({ status, code, shouldRetry }: ServiceError): boolean {
  if (status === 429) return shouldRetry === false;
  return status < 500 || code === "generation_in_progress";
}

function limitReached({ frozen, limits }: Caller, { waitMs, rateLimits }: LimitCheck, text: string, tokens = 0) {
  // Waiting would not help.
  if (frozen) return accountFrozen();
  const waitSeconds = tokens > limits.tokensPerMinute ? Number.POSITIVE_INFINITY : waitMs / 1000;
  return new RateLimitReached(rateLimited(text, waitSeconds), rateLimits);
}

const prefix = "Rate limit of this API key reached:";

/** Names the limit whose wait is the longest. */
function reachedText(limits: Limits, { reached = "requests" }: LimitCheck, kind: SlotKind): string {
  const [rate, running] = kind === "calls" ? ["requests", "calls in flight"] : ["uploads", "uploads at once"];
  const limit = {
    requests: `${rate} a minute, limit ${limits.requestsPerMinute}`,
    tokens: `tokens a minute, limit ${limits.tokensPerMinute}, earlier calls used more`,
    concurrent: `${running}, limit ${limits.concurrentRequests}`,
  }[reached];
  return `${prefix} ${limit}.`;
}

const tokensReachedText = ({ tokensPerMinute }: Limits, tokens: number): string =>
  tokens > tokensPerMinute
    ? `The call asks for ${tokens} tokens and can never pass: this API key has ${tokensPerMinute} tokens a minute.`
    : `${prefix} tokens a minute, limit ${tokensPerMinute}, the call asks for ${tokens}.`;
