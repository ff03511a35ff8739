/**
 * API keys: authentication, rate limits and budgets. Owns the Redis keys `limits:*`; the records of keys are in
 * `shared/key-records`.
 *
 * A secret is `live_` and 40 random base62 characters (docs/api/inference.md, part 5), shown once and stored as a hash. Keys
 * are cached in memory until the value of `limits:epoch` changes. Every change to data in a `Caller` is written to MongoDB
 * first, and then replaces the epoch. A paid call reads the epoch together with the script that takes its slot, any other
 * call at most 500 ms late, so a revocation can be neither missed nor lost.
 *
 * Limits belong to a key (docs/api/inference.md, part 8). An x402 payment has the default limits, and a caller with neither
 * is counted by address. A call takes a slot before its body is read, unless that is small and has come with the headers:
 * requests and slots are checked before either is counted. Its tokens are taken once their number is known. Each key has a
 * separate rate and slots for uploads.
 *
 * Throws `invalidApiKey`, `keyExpired`, `insufficientScope`, `accountFrozen`, `rateLimited`, `budgetExceeded`,
 * `beyondOwnKey`, `conflict`, `notFound`, `invalidValue`, and `noCapacity` while a required store is unavailable.
 */
import { isIPv6 } from "node:net";
import { invalidApiKey, noCapacity, rateLimited } from "#errors";
import {
  type Budget,
  createKeyStore,
  defaultKeyCache,
  type KeyBudget,
  type KeyRecord,
  type Limits,
  periodAt,
  secretHash,
} from "#key-records";
import type { Money } from "#money";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import type { Uses } from "#platform/uses";
import type { ProviderKey, ProviderKeys } from "#provider-keys";
import { createBudgets } from "./budgets.ts";
import { anyEpoch, createEpoch } from "./epoch.ts";
import { createLimits, type Quota } from "./limits.ts";
import { createLookups } from "./lookups.ts";
import { createManaging } from "./managing.ts";
import { assertNotExpired, type Caller, createSlots, isExpired } from "./slots.ts";

export type { RateLimits } from "./limits.ts";
export { type Caller, RateLimitReached, type Slot } from "./slots.ts";

/** The first half of an IPv6 address, because one host may have the whole second half. IPv4 addresses stay whole. */
export function addressNetwork(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [front = [], back = []] = address.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => "0");
  return [...front, ...zeros, ...back].slice(0, 4).join(":");
}

interface SpentBudget extends Budget {
  readonly spentNanoUsd: bigint;
  /** Unix milliseconds. */
  readonly resetsAt: number | undefined;
}

export type ListedKey = KeyRecord & { readonly spent: SpentBudget | null };

interface CachedKey {
  readonly caller: Caller;
  /** Unix milliseconds, as far as this instance knows. */
  lastUsedAt: number;
}

const lastUsedEveryMs = 60_000;
/** The budgets of this many keys are read at once, because missing counters are counted from MongoDB. */
const budgetsAtOnce = 20;
/** Longer than a sign-in takes. */
const signInMs = 10_000;

/** Callers poll jobs, so their requests have a limit of their own, this many times that of the account's interface. */
const jobRequestsFactor = 10;

export function createKeys(
  deps: Uses<"mongo" | "redis" | "clock" | "log"> & {
    money: Pick<Money, "account" | "chargesOfKeys" | "costsOf">;
    providerKeys: Pick<ProviderKeys, "listFor">;
    defaults: Limits;
    /** Limits of one key. */
    uploads: { readonly perMinute: number; readonly concurrent: number };
    /** Limit of one address, without a key. */
    addressRequestsPerMinute: number;
    /** Limit of one key for the account's own interface. */
    accountRequestsPerMinute: number;
    failedSignInsPerMinute: number;
    observeLimits?: ObserveWrite;
  },
) {
  const { money, clock, log, defaults, addressRequestsPerMinute } = deps;
  const { accountRequestsPerMinute, failedSignInsPerMinute } = deps;
  const store = createKeyStore(deps);
  const epoch = createEpoch(deps);
  const limits = createLimits(deps.redis, clock, deps.observeLimits);
  const budgets = createBudgets({ limits, money, store, clock, log });
  const lookUp = createLookups<CachedKey>({ clock, epoch });
  const lookUpProviderKeys = createLookups<readonly ProviderKey[]>({ clock, epoch });

  async function read(finding: Promise<KeyRecord | undefined>, currentEpoch: string): Promise<CachedKey | undefined> {
    try {
      const key = await finding;
      const account = key && (await money.account(key.account));
      if (!account) return undefined;
      const { tier, buybackToken, frozen } = account;
      const shared = await store.budgetsOf(key.account, key.sharesBudgetOf);
      const caller: Caller = {
        keyId: key.id,
        account: key.account,
        tier,
        scopes: key.scopes,
        buybackToken,
        frozen,
        limits: { ...defaults, ...key.limits },
        budget: key.budget,
        sharedBudgets: shared.map(({ keyId, budget }) => ({ ...budget, keyId, account: key.account })),
        models: key.models,
        promptCache: key.promptCache,
        cache: key.cache,
        expiresAt: key.expiresAt,
        epoch: currentEpoch,
      };
      return { caller, lastUsedAt: key.lastUsedAt?.getTime() ?? 0 };
    } catch (error) {
      throw noCapacity("The API key cannot be checked right now.", 1, error);
    }
  }

  const refresh = async (keyId: string) =>
    (await lookUp(keyId, (currentEpoch) => read(store.find(keyId), currentEpoch)))?.caller;

  function recordUse(key: CachedKey) {
    const now = clock.now();
    if (now - key.lastUsedAt < lastUsedEveryMs) return;
    key.lastUsedAt = now;
    store
      .used(key.caller.keyId)
      .catch((error: unknown) => log.warn({ err: error }, "the last use of a key could not be recorded"));
  }

  /** `name` is that of the lookup in the cache. Throws 401 for a key that is unknown, revoked or expired. */
  async function validCaller(name: string, find: (name: string) => Promise<KeyRecord | undefined>): Promise<Caller> {
    await epoch.update();
    const known = await lookUp(name, (currentEpoch) => read(find(name), currentEpoch));
    if (!known) throw invalidApiKey();
    assertNotExpired(known.caller, clock);
    recordUse(known);
    return known.caller;
  }

  async function epochChanged() {
    try {
      await epoch.replace();
    } catch (error) {
      throw noCapacity("The change is stored, but may take half a minute to take effect. Repeat it.", 1, error);
    }
  }

  /** Counts a request against a quota that limits only requests. The count can be taken back within `ttlMs`. */
  async function count(
    name: string,
    perMinute: number,
    requestId: string,
    text: (limit: number) => string,
    ttlMs = 1,
  ): Promise<Quota> {
    const quota = {
      name,
      requestsPerMinute: perMinute,
      tokensPerMinute: 1,
      concurrentRequests: Number.MAX_SAFE_INTEGER,
    };
    const check = await limits.enter({ quota, requestId, ttlMs }).catch((error: unknown) => {
      throw noCapacity("The limits of requests cannot be checked right now.", 1, error);
    });
    if (check.reached) throw rateLimited(text(perMinute), check.waitMs / 1000);
    return quota;
  }

  async function spentOf(key: {
    keyId: string;
    account: string;
    limits: Limits;
    budget: KeyBudget | null;
  }): Promise<SpentBudget | null> {
    const { keyId, account, budget } = key;
    if (!budget) return null;
    const { spentNanoUsd } = await budgets.state({
      ...key.limits,
      name: `{${keyId}}`,
      budget: { ...budget, keyId, account },
    });
    return { ...budget, spentNanoUsd, resetsAt: periodAt(budget.period, clock.now()).until };
  }

  return {
    async authenticate(secret: string | undefined): Promise<Caller> {
      const hash = secretHash(secret);
      if (hash === undefined) throw invalidApiKey();
      return validCaller(hash, (of) => store.findByHash(of));
    },

    /** The caller that `authenticate` returns for this key's secret. Throws 401 once the key is no longer valid. */
    callerOf: (keyId: string): Promise<Caller> => validCaller(keyId, (id) => store.find(id)),

    /** The same without a use of the key. Undefined if there is no such key, or if it is no longer valid. */
    async validKey(keyId: string): Promise<Caller | undefined> {
      const caller = await refresh(keyId);
      return caller && !isExpired(caller, clock) ? caller : undefined;
    },

    /** The limits of a key that has none of its own. */
    defaultLimits: defaults,

    /** The caller of a call paid by x402. There is no key; the id of the payment's account takes its place. */
    payer: (account: string, buybackToken: string | undefined): Caller => ({
      keyId: account,
      account,
      tier: "standard",
      scopes: ["inference"],
      buybackToken: buybackToken ?? null,
      frozen: false,
      limits: defaults,
      budget: null,
      sharedBudgets: [],
      models: null,
      promptCache: "off",
      cache: defaultKeyCache,
      expiresAt: null,
      epoch: anyEpoch,
    }),

    /** Counts a request without a key. Throws 429 for an address that makes too many, and 503 while Redis is unavailable. */
    async countAddress(address: string, requestId: string): Promise<void> {
      const name = `{address:${addressNetwork(address)}}`;
      const text = (limit: number) => `Too many requests without a key, limit ${limit} a minute.`;
      await count(name, addressRequestsPerMinute, requestId, text);
    },

    /** Counts a request for the account's own interface. Throws 429 for a key that makes too many, and 503. */
    async countAccountRequest({ keyId }: Caller, requestId: string): Promise<void> {
      const name = `{${keyId}}:account`;
      await count(name, accountRequestsPerMinute, requestId, (limit) => `Too many requests, limit ${limit} a minute.`);
    },

    /** Like `countAccountRequest`, for the requests of jobs, which callers poll: ten times as many. */
    async countJobRequest({ keyId }: Caller, requestId: string): Promise<void> {
      const limit = jobRequestsFactor * accountRequestsPerMinute;
      await count(`{${keyId}}:jobs`, limit, requestId, () => `Too many requests, limit ${limit} a minute.`);
    },

    /**
     * Counts a sign-in against its address, before the key is checked. Returns a function that takes the count back after a
     * success, so that only failures count. Throws 429 and 503.
     */
    async countSignIn(address: string, requestId: string): Promise<() => Promise<void>> {
      const name = `{address:${addressNetwork(address)}}:sign-ins`;
      const quota = await count(
        name,
        failedSignInsPerMinute,
        requestId,
        () => "Too many failed sign-ins from this address.",
        signInMs,
      );
      return () => limits.free({ quota, requestId, requests: -1, tokens: 0 });
    },

    ...createSlots({ ...deps, limits, budgets, epoch, refresh }),

    ...createManaging({ store, money, clock, defaults, epochChanged }),

    /** Lists keys with what each has spent. Throws 503 if that cannot be read. */
    async list(account: string, page: Parameters<typeof store.list>[1]): Promise<ListedKey[]> {
      const found = await store.list(account, page);
      const listed: ListedKey[] = [];
      for (let at = 0; at < found.length; at += budgetsAtOnce) {
        const some = found.slice(at, at + budgetsAtOnce).map(async (key) => {
          const spent = await spentOf({ ...key, keyId: key.id, limits: { ...defaults, ...key.limits } });
          return { ...key, spent };
        });
        listed.push(
          ...(await Promise.all(some).catch((error: unknown) => {
            throw noCapacity("The budgets of the keys cannot be read right now.", 1, error);
          })),
        );
      }
      return listed;
    },

    get: (account: string, id: string): Promise<KeyRecord> => store.get(account, id),
    /** Those of these ids that are keys of the account. */
    existing: (account: string, ids: readonly string[]): Promise<string[]> => store.existing(account, ids),

    /**
     * The account's own provider keys that are not disabled, in the order in which they are tried. Cached like keys, also if
     * there are none: for a call whose slot was taken, changes count at once. Throws 503.
     */
    async providerKeysOf({ account, keyId }: Pick<Caller, "account" | "keyId">): Promise<readonly ProviderKey[]> {
      // The account of an x402 payment has none.
      if (keyId === account) return [];
      const read = () =>
        deps.providerKeys.listFor(account).catch((error: unknown) => {
          throw noCapacity("The provider keys cannot be read right now.", 1, error);
        });
      return (await lookUpProviderKeys(account, read)) ?? [];
    },

    /** The spending of the key in the current period of its budget, and the end of the period. Null if it has no budget. */
    budgetOf: (caller: Caller): Promise<SpentBudget | null> => spentOf(caller),

    /** Must be called after an account was changed. */
    epochChanged,
  };
}

export type Keys = ReturnType<typeof createKeys>;
