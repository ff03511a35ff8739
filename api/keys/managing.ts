import { beyondOwnKey, conflict, invalidValue, notFound } from "#errors";
import {
  allowsModel,
  type Budget,
  budgetPeriods,
  type KeyPatch,
  type KeyRecord,
  type KeyStore,
  type Limits,
  limitNames,
  periodAt,
} from "#key-records";
import type { Money } from "#money";
import type { Uses } from "#platform/uses";
import type { Caller } from "./slots.ts";

/** Limits the keys of an account that are not revoked. */
const maxKeys = 1_000;
/** Limits the budgets of other keys that one key's calls count against. Each costs a Redis script per call. */
const maxSharedBudgets = 4;
/** Limits the keys that share one budget, including revoked ones that count in its period. */
const maxSharingKeys = 10_000;

const limitParams = {
  requestsPerMinute: "limits.requests_per_minute",
  tokensPerMinute: "limits.tokens_per_minute",
  concurrentRequests: "limits.concurrent_requests",
} as const satisfies Record<keyof Limits, string>;

/** A longer period with the same limit is a smaller budget. */
const isWithin = (given: Budget | null, own: Budget): boolean =>
  given !== null &&
  given.limitNanoUsd <= own.limitNanoUsd &&
  budgetPeriods.indexOf(given.period) >= budgetPeriods.indexOf(own.period);

/** Throws 403, naming the field, if it would grant more than the caller's key has. Missing fields grant nothing. */
function assertWithin(own: Caller, defaults: Limits, { scopes = [], limits = {}, ...given }: KeyPatch): void {
  const scope = scopes.find((each) => !own.scopes.includes(each));
  if (scope) throw beyondOwnKey("scopes", `it lacks '${scope}'`);
  for (const name of limitNames) {
    const limit = limits[name] === null ? defaults[name] : limits[name];
    if (limit !== undefined && limit > own.limits[name])
      throw beyondOwnKey(limitParams[name], `its limit is ${own.limits[name]}`);
  }
  const { models, expiresAt, budget } = given;
  const model = models?.find((each) => !allowsModel(own.models, each));
  if (own.models && (models === null || model !== undefined))
    throw beyondOwnKey("models", model === undefined ? "it has a list of models" : `it may not call '${model}'`);
  if (own.expiresAt && expiresAt !== undefined && (expiresAt === null || expiresAt > own.expiresAt))
    throw beyondOwnKey("expires_at", "it expires earlier");
  if (own.budget && budget !== undefined && !isWithin(budget, own.budget))
    throw beyondOwnKey("budget", "its budget is smaller");
}

/** The ids of the keys whose budgets also bound the keys that this one creates. */
const boundingKeys = ({ keyId, budget, sharedBudgets }: Caller): string[] => [
  ...sharedBudgets.map((shared) => shared.keyId),
  ...(budget ? [keyId] : []),
];

/**
 * Throws 403 if the caller raises the budget of a key that does not share the caller's budgets: what that key spends counts
 * against none of them.
 */
function assertNotRaised(own: Caller, key: KeyRecord, budget: Budget | null): void {
  if (key.id === own.keyId || boundingKeys(own).every((id) => key.sharesBudgetOf.includes(id))) return;
  if (key.budget && !isWithin(budget, key.budget))
    throw beyondOwnKey("budget", "the other key has a smaller one, and does not share its budget");
}

/** A new key inherits the bounds of the caller's key that the request leaves open. */
function withOwnBounds({ limits: own, ...caller }: Caller, defaults: Limits, given: KeyPatch): KeyPatch {
  const lower = limitNames.filter((name) => own[name] < defaults[name]).map((name) => [name, own[name]]);
  return {
    ...given,
    scopes: given.scopes ?? ["inference"],
    limits: { ...Object.fromEntries(lower), ...given.limits },
    models: given.models === undefined ? caller.models : given.models,
    expiresAt: given.expiresAt === undefined ? caller.expiresAt : given.expiresAt,
    budget: given.budget === undefined ? caller.budget : given.budget,
  };
}

/** Creating, changing and revoking keys. `by` is the key that asks, for its own account; operators omit it. */
export function createManaging(
  deps: Uses<"clock"> & {
    store: KeyStore;
    money: Pick<Money, "account">;
    defaults: Limits;
    epochChanged: () => Promise<void>;
  },
) {
  const { store, money, clock, defaults, epochChanged } = deps;

  function assertFuture({ expiresAt }: KeyPatch): void {
    if (expiresAt && expiresAt.getTime() <= clock.now())
      throw invalidValue("expires_at", "expires_at must be in the future; to end a key now, revoke it.");
  }

  /** Throws 409 if more keys would share budgets than can be counted. */
  async function assertSharable({ account, keyId, budget, sharedBudgets }: Caller): Promise<void> {
    const shared = [...sharedBudgets, ...(budget ? [{ ...budget, keyId }] : [])];
    if (shared.length > maxSharedBudgets)
      throw conflict(
        `A key shares the budgets of ${maxSharedBudgets} others at most, and one made by this key would share more.`,
      );
    for (const { keyId: id, period } of shared) {
      const since = new Date(periodAt(period, clock.now()).from);
      if ((await store.countSharing(account, id, since, maxSharingKeys)) >= maxSharingKeys)
        throw conflict(
          `${maxSharingKeys.toLocaleString("en")} keys share the budget of '${id}' in this period, which is the maximum.`,
        );
    }
  }

  return {
    /** The secret is returned only here. Throws 403, 404, and 409 for too many keys. */
    async issue(account: string, given: KeyPatch, by?: Caller): Promise<{ key: KeyRecord; secret: string }> {
      const fields = by ? withOwnBounds(by, defaults, given) : given;
      if (by) assertWithin(by, defaults, fields);
      assertFuture(given);
      if (!(await money.account(account))) throw notFound("account");
      if ((await store.countLive(account, maxKeys)) >= maxKeys)
        throw conflict(`This account has ${maxKeys.toLocaleString("en")} keys, which is the maximum. Revoke one.`);
      if (by) await assertSharable(by);
      return store.insert(account, fields, by ? boundingKeys(by) : []);
    },

    async update(id: string, patch: KeyPatch, by?: Caller): Promise<KeyRecord> {
      if (by) assertWithin(by, defaults, patch);
      assertFuture(patch);
      if (by && patch.budget !== undefined) assertNotRaised(by, await store.get(by.account, id), patch.budget);
      const key = await store.update({ id, account: by?.account }, patch);
      const { name: _, ...rights } = patch;
      if (Object.values(rights).some((given) => given !== undefined)) await epochChanged();
      return key;
    },

    /** Revoking a key again changes nothing, but notifies every instance again. */
    async revoke(id: string, by?: Caller): Promise<KeyRecord> {
      const key = await store.revoke({ id, account: by?.account });
      await epochChanged();
      return key;
    },
  };
}
