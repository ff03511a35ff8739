/**
 * API keys: who is calling, and how much a key may still do this minute. Owns the collection `keys` and the Redis keys
 * `limits:*`.
 *
 * A secret is `live_` and 40 random base62 characters (specification, part 5), shown once and stored as a hash. What a
 * secret stands for is remembered in memory, and forgotten as soon as `limits:epoch` has another value. Whoever changes
 * something that a `Caller` carries writes MongoDB first, then the epoch. A paid call compares it in the very script
 * that takes its limits, any other call at most 500 ms late; so a revocation can neither be missed nor lost on the way.
 *
 * Limits belong to a key (specification, part 8); a payment by x402 has the usual ones, and who has neither is counted
 * by address. A call enters before its body is read: requests and slots are checked before either is counted. It takes
 * tokens once it is known how many it asks for. Uploads have a rate and slots of their own for each key.
 *
 * Throws `invalidApiKey`, `rateLimited` (`accountFrozen` where that is so too), `notFound("key")`, `invalidValue("after")`,
 * and `noCapacity` while a store that is needed is away.
 */
import type { Redis } from "ioredis";
import type { Tier } from "#catalog";
import { accountFrozen, invalidApiKey, noCapacity, notFound, rateLimited, ServiceError } from "#errors";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { createAddresses } from "./addresses.ts";
import { createEpoch } from "./epoch.ts";
import { callsOf, createLimits, type Limits, type RateLimits, type Reached, uploadsOf } from "./limits.ts";
import { createLookups } from "./lookups.ts";
import { createPendingWrites } from "./pending-writes.ts";
import { createKeyStore, type KeyPatch, type KeyRecord, type Page, secretHash } from "./store.ts";

export type { Limits, RateLimits } from "./limits.ts";
export type { KeyPatch, KeyRecord } from "./store.ts";

/** Who calls, as admission needs it. */
export interface Caller {
  readonly keyId: string;
  readonly account: string;
  readonly tier: Tier;
  readonly buybackToken: string | null;
  /** Only for what a refusal says: whether a call may go on is the hold's to decide. */
  readonly frozen: boolean;
  readonly limits: Limits;
  /** The value of `limits:epoch` that this was looked up under; `any` for what never changes. */
  readonly epoch: string;
}

/** A request that was counted, and its slot. */
export interface Entered {
  /** As of now: what was changed since it was looked up is seen here. */
  readonly caller: Caller;
  readonly requestId: string;
  readonly of: "calls" | "uploads";
  rateLimits: RateLimits;
  /** What `takeTokens` has counted so far. */
  takenTokens: number;
}

/** `ttlMs`: after so long the slot frees itself. */
interface Entering {
  readonly requestId: string;
  readonly ttlMs: number;
}

export interface Keys {
  /** Makes the collection and its indexes. Doing it again changes nothing. */
  prepare(): Promise<void>;
  authenticate(secret: string | undefined): Promise<Caller>;
  /** Who calls on the account of a payment: there is no key, and the account's id stands in its place. */
  payer(account: string, buybackToken: string | undefined): Caller;
  /** A request without a key. Throws 429 for an address that makes too many. */
  countAddress(address: string, requestId: string): Promise<void>;
  /** Counts one request and takes a slot. The same request counts once. Throws 401, 403, 429, 503. */
  enter(caller: Caller, call: Entering): Promise<Entered>;
  /** The same for an upload. */
  enterUpload(caller: Caller, upload: Entering): Promise<Entered>;
  /** Counts the tokens of a call that has entered. Throws 403, 429, 503. */
  takeTokens(entered: Entered, tokens: number): Promise<void>;
  /**
   * Frees the slot and gives back the tokens of what was refused after it entered, or has ended; the request stays counted
   * unless `uncounted`. Never rejects: what Redis does not take now it gets later.
   */
  leave(entered: Entered, how?: { readonly uncounted: boolean }): Promise<void>;
  /** The call has ended: frees its slot and counts the tokens it really used. Never rejects, as `leave`. */
  release(
    caller: Caller,
    requestId: string,
    tokens: { readonly takenTokens: number; readonly usedTokens: number },
  ): Promise<void>;
  /** `secret` is told this once. */
  issue(account: string, key: KeyPatch): Promise<{ key: KeyRecord; secret: string }>;
  list(account: string, page: Page): Promise<KeyRecord[]>;
  update(id: string, patch: KeyPatch): Promise<KeyRecord>;
  /** Doing it again changes nothing, but makes sure that every instance hears of it. */
  revoke(id: string): Promise<KeyRecord>;
  /** To be called after an account was changed. */
  epochChanged(): Promise<void>;
}

interface Known {
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
  const uploads: Limits = {
    requestsPerMinute: deps.uploads.perMinute,
    tokensPerMinute: 1,
    concurrentRequests: deps.uploads.concurrent,
  };
  const owed = createPendingWrites({ clock, log });
  redis.on("ready", () => owed.again());
  const lookUp = createLookups<Known>({ clock, epoch });

  async function read(by: { hash: string } | { _id: string }, under: string): Promise<Known | undefined> {
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
        epoch: under,
      };
      return { caller, lastUsedAt: key.lastUsedAt?.getTime() ?? 0 };
    } catch (error) {
      throw noCapacity("The API key cannot be checked right now.", 1, error);
    }
  }

  function noteUse(known: Known) {
    const now = clock.now();
    if (now - known.lastUsedAt < lastUsedEveryMs) return;
    known.lastUsedAt = now;
    store
      .used(known.caller.keyId)
      .catch((error: unknown) => log.warn({ err: error }, "the use of a key was not noted"));
  }

  async function epochChanged() {
    try {
      await epoch.replace();
    } catch (error) {
      throw noCapacity("The change is stored, but may take half a minute to be in force. Repeat it.", 1, error);
    }
  }

  const nameOf = ({ keyId }: Caller, of: Entered["of"]) => (of === "calls" ? callsOf(keyId) : uploadsOf(keyId));
  const limitsOf = (caller: Caller, of: Entered["of"]) => (of === "calls" ? caller.limits : uploads);
  const unchecked = (error: unknown) => noCapacity("The limits of the API key cannot be checked right now.", 1, error);

  type Leaving = Pick<Entered, "caller" | "requestId" | "of">;
  const freeing =
    ({ caller, requestId, of }: Leaving, used: { requests: number; tokens: number }) =>
    () =>
      limits.free(nameOf(caller, of), limitsOf(caller, of), { requestId, ...used });

  async function tryEnter(caller: Caller, call: Entering, of: Entered["of"], known: string) {
    const sentAt = clock.now();
    // What was not even sent owes nothing.
    const sending = redis.status === "ready";
    try {
      const taken = await limits.enter(nameOf(caller, of), limitsOf(caller, of), call, known);
      epoch.heard(taken.epoch, sentAt);
      return taken;
    } catch (error) {
      if (sending) owed.later(freeing({ caller, requestId: call.requestId, of }, { requests: -1, tokens: 0 }));
      throw unchecked(error);
    }
  }

  async function enter(caller: Caller, call: Entering, of: Entered["of"]): Promise<Entered> {
    let current = caller;
    let taken = await tryEnter(caller, call, of, caller.epoch);
    if (taken.outdated) {
      const known = await lookUp(caller.keyId, (under) => read({ _id: caller.keyId }, under));
      if (!known) throw invalidApiKey();
      // Current as of the script's answer: what changes from here on comes after this call.
      current = known.caller;
      taken = await tryEnter(current, call, of, "any");
    }
    if (taken.reached) {
      const refused = refusalOf(taken.reached, taken.waitMs, limitsOf(current, of), of);
      throw reachedBy(current, taken.rateLimits, refused);
    }
    return { caller: current, requestId: call.requestId, of, rateLimits: taken.rateLimits, takenTokens: 0 };
  }

  const reachedBy = ({ frozen }: Caller, rateLimits: RateLimits, refused: ServiceError) =>
    // Waiting would not help.
    frozen ? accountFrozen() : new RateLimitReached(refused, rateLimits);

  return {
    prepare: () => store.prepare(),

    async authenticate(secret) {
      const hash = secretHash(secret);
      if (hash === undefined) throw invalidApiKey();
      await epoch.current();
      const known = await lookUp(hash, (under) => read({ hash }, under));
      if (!known) throw invalidApiKey();
      noteUse(known);
      return known.caller;
    },

    payer: (account, buybackToken) => ({
      keyId: account,
      account,
      tier: "standard",
      buybackToken: buybackToken ?? null,
      frozen: false,
      limits: defaults,
      epoch: "any",
    }),

    countAddress: createAddresses({ limits, requestsPerMinute: deps.addressRequestsPerMinute }),

    enter: (caller, call) => enter(caller, call, "calls"),
    enterUpload: (caller, upload) => enter(caller, upload, "uploads"),

    async takeTokens(entered, tokens) {
      const { caller, requestId } = entered;
      // After a failure it is not known whether they count: those that do come back with the minute.
      const taking = limits.takeTokens(callsOf(caller.keyId), caller.limits, { requestId, tokens });
      const taken = await taking.catch((error: unknown) => Promise.reject(unchecked(error)));
      if (taken.reached) throw reachedBy(caller, taken.rateLimits, tokensRefused(taken.waitMs, caller.limits, tokens));
      entered.takenTokens += tokens;
      entered.rateLimits = taken.rateLimits;
    },

    leave: (entered, { uncounted } = { uncounted: false }) =>
      owed.pay(freeing(entered, { requests: uncounted ? -1 : 0, tokens: -entered.takenTokens })),

    release: (caller, requestId, { takenTokens, usedTokens }) =>
      owed.pay(freeing({ caller, requestId, of: "calls" }, { requests: 0, tokens: usedTokens - takenTokens })),

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

const reachedText = "Rate limit of this API key reached:";

/** Names the limit whose wait is the longest. */
function refusalOf(reached: Reached, waitMs: number, limits: Limits, of: Entered["of"]): ServiceError {
  const [rate, running] = of === "calls" ? ["requests", "calls in flight"] : ["uploads", "uploads at once"];
  const limit = {
    requests: `${rate} a minute, limit ${limits.requestsPerMinute}`,
    tokens: `tokens a minute, limit ${limits.tokensPerMinute}, earlier calls used more`,
    concurrent: `${running}, limit ${limits.concurrentRequests}`,
  }[reached];
  return rateLimited(`${reachedText} ${limit}.`, waitMs / 1000);
}

function tokensRefused(waitMs: number, { tokensPerMinute }: Limits, tokens: number): ServiceError {
  if (tokens > tokensPerMinute)
    return rateLimited(
      `The call asks for ${tokens} tokens and can never pass: this API key has ${tokensPerMinute} tokens a minute.`,
      Number.POSITIVE_INFINITY,
    );
  const limit = `tokens a minute, limit ${tokensPerMinute}, the call asks for ${tokens}`;
  return rateLimited(`${reachedText} ${limit}.`, waitMs / 1000);
}
