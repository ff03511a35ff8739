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
 * by address. All are checked before any is counted: a refused call costs nothing.
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
import { createLimits, type Limits, type RateLimits, type Reached } from "./limits.ts";
import { createLookups } from "./lookups.ts";
import { createOwed } from "./owed.ts";
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

export interface Keys {
  /** Makes the collection and its indexes. Doing it again changes nothing. */
  prepare(): Promise<void>;
  authenticate(secret: string | undefined): Promise<Caller>;
  /** Who calls on the account of a payment: there is no key, and the account's id stands in its place. */
  payer(account: string, buybackToken: string | undefined): Caller;
  /** A request without a key. Throws 429 for an address that makes too many. */
  countAddress(address: string, requestId: string): Promise<void>;
  /** Counts one request, its tokens and a slot that frees itself after `ttlMs`. The same request counts once. */
  take(
    caller: Caller,
    call: { readonly requestId: string; readonly tokens: number; readonly ttlMs: number },
  ): Promise<RateLimits>;
  /** Undoes `take` for a call that was refused after it. Never rejects: what Redis does not take now it gets later. */
  giveBack(caller: Caller, requestId: string, tokens: number): Promise<void>;
  /** The call has ended: frees its slot and counts the tokens it really used. Never rejects, as `giveBack`. */
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
  /** Of one address, without a key. */
  addressRequestsPerMinute: number;
}): Keys {
  const { redis, money, clock, log, defaults } = deps;
  const store = createKeyStore(deps);
  const epoch = createEpoch(deps);
  const limits = createLimits(redis);
  const owed = createOwed({ clock, log });
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

  async function tryTake(caller: Caller, call: { requestId: string; tokens: number; ttlMs: number }, known: string) {
    const sentAt = clock.now();
    // What was not even sent owes nothing.
    const sending = redis.status === "ready";
    try {
      const taken = await limits.take(caller.keyId, caller.limits, call, known);
      epoch.heard(taken.epoch, sentAt);
      return taken;
    } catch (error) {
      if (sending) owed.later(freeing(caller, call.requestId, { requests: -1, tokens: -call.tokens }));
      throw noCapacity("The limits of the API key cannot be checked right now.", 1, error);
    }
  }

  const freeing = (caller: Caller, requestId: string, used: { requests: number; tokens: number }) => () =>
    limits.free(caller.keyId, caller.limits, { requestId, ...used });

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

    async take(caller, call) {
      let current = caller;
      let taken = await tryTake(caller, call, caller.epoch);
      if (taken.outdated) {
        const known = await lookUp(caller.keyId, (under) => read({ _id: caller.keyId }, under));
        if (!known) throw invalidApiKey();
        // Current as of the script's answer: what changes from here on comes after this call.
        taken = await tryTake(known.caller, call, "any");
        current = known.caller;
      }
      // Waiting would not help.
      if (taken.reached && current.frozen) throw accountFrozen();
      if (taken.reached)
        throw new RateLimitReached(refusal(taken.reached, taken.waitMs, current.limits, call.tokens), taken.rateLimits);
      return taken.rateLimits;
    },

    giveBack: (caller, requestId, tokens) => owed.pay(freeing(caller, requestId, { requests: -1, tokens: -tokens })),

    release: (caller, requestId, { takenTokens, usedTokens }) =>
      owed.pay(freeing(caller, requestId, { requests: 0, tokens: usedTokens - takenTokens })),

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

/** Names the limit whose wait is the longest. */
function refusal(reached: Reached, waitMs: number, limits: Limits, tokens: number) {
  if (tokens > limits.tokensPerMinute)
    return rateLimited(
      `The call asks for ${tokens} tokens and can never pass: this API key has ${limits.tokensPerMinute} tokens a minute.`,
      Number.POSITIVE_INFINITY,
    );
  const limit = {
    requests: `requests a minute, limit ${limits.requestsPerMinute}`,
    tokens: `tokens a minute, limit ${limits.tokensPerMinute}, the call asks for ${tokens}`,
    concurrent: `calls in flight, limit ${limits.concurrentRequests}`,
  }[reached];
  return rateLimited(`Rate limit of this API key reached: ${limit}.`, waitMs / 1000);
}
