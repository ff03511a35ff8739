import { hash } from "node:crypto";
import { notFound } from "#errors";
import { dayMs } from "#platform/clock";
import { groupCommit } from "#platform/concurrency/group-commit";
import { newId, randomBase62 } from "#platform/ids";
import { findPage, openCollection, type Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { Budget, KeyBudget } from "./budget-period.ts";
import {
  defaultKeyCache,
  definition,
  type KeyCache,
  live,
  type PromptCache,
  type Scope,
  type StoredKey,
} from "./collection.ts";
import { createKeyWatch } from "./watch.ts";

export const limitNames = ["requestsPerMinute", "tokensPerMinute", "concurrentRequests"] as const;

/** Limits of one API key: two token buckets that refill continuously, and the calls in flight. */
export type Limits = Readonly<Record<(typeof limitNames)[number], number>>;

/** A key as its owner may see it. The limits that it does not override are the configured ones. */
export interface KeyRecord {
  readonly id: string;
  readonly account: string;
  readonly name: string | null;
  /** The shown part of the secret, such as `live_Ab3...`. */
  readonly prefix: string;
  readonly scopes: readonly Scope[];
  readonly limits: Readonly<Partial<Limits>>;
  readonly budget: KeyBudget | null;
  /** Ids of the keys whose budgets its calls also count against: its creators that had a budget then. */
  readonly sharesBudgetOf: readonly string[];
  /** Ids of models, and `provider/*`. Null stands for all. */
  readonly models: readonly string[] | null;
  readonly promptCache: PromptCache;
  readonly cache: KeyCache;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

/** Returns true if the list has this model, or its `provider/*`. Null stands for all models. */
export const allowsModel = (models: readonly string[] | null, id: string): boolean =>
  models === null || models.includes(id) || models.includes(`${id.slice(0, id.indexOf("/"))}/*`);

export interface KeyPatch {
  readonly name?: string | null | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  /** `null` removes an override. */
  readonly limits?: { readonly [limit in keyof Limits]?: number | null | undefined } | undefined;
  readonly budget?: Budget | null | undefined;
  readonly models?: readonly string[] | null | undefined;
  readonly promptCache?: PromptCache | undefined;
  readonly cache?: KeyCache | undefined;
  readonly expiresAt?: Date | null | undefined;
}

/** If `account` is set, only a key of that account is found. */
interface KeyId {
  readonly id: string;
  readonly account?: string | undefined;
}

type Stored = StoredKey;

/** The prefix is fixed by docs/api/inference.md, part 5; 40 characters of base62 are 238 bits. */
const newSecret = () => `live_${randomBase62(40)}`;
const isSecret = (text: string) => /^live_[0-9A-Za-z]{40}$/.test(text);
const prefixOf = (secret: string) => `${secret.slice(0, "live_".length + 3)}...`;

/** A random secret needs no salt and no slow hash: it cannot be guessed. */
const hashOf = (secret: string) => hash("sha256", secret, "base64url");

/** The hash of a well-formed secret; undefined for anything else. */
export const secretHash = (secret: string | undefined): string | undefined =>
  secret !== undefined && isSecret(secret) ? hashOf(secret) : undefined;

/** Drops limits that are null or undefined. */
const definedLimits = (limits: object): Partial<Limits> =>
  Object.fromEntries(Object.entries(limits).filter(([, value]) => value != null));

const toRecord = (stored: Stored): KeyRecord => ({
  id: stored._id,
  account: stored.account,
  name: stored.name ?? null,
  prefix: stored.prefix,
  scopes: stored.scopes ?? ["inference"],
  limits: definedLimits(stored.limits ?? {}),
  budget: stored.budget ?? null,
  sharesBudgetOf: stored.sharesBudgetOf ?? [],
  models: stored.models ?? null,
  promptCache: stored.promptCache ?? "off",
  cache: stored.cache ?? defaultKeyCache,
  expiresAt: stored.expiresAt ?? null,
  createdAt: stored.createdAt,
  lastUsedAt: stored.lastUsedAt ?? null,
  revokedAt: stored.revokedAt ?? null,
});

/** Calls and jobs of a revoked key continue for less than a day. */
const sharingSince = (id: string, since: Date) => ({
  sharesBudgetOf: id,
  $or: [live, { revokedAt: { $gte: new Date(since.getTime() - dayMs) } }],
});

/** Changes the fields that the patch names; `null` removes one. */
function updateOf({ limits = {}, budget, ...others }: KeyPatch, now: Date) {
  const fields = {
    ...others,
    budget: budget && { ...budget, since: now },
    ...Object.fromEntries(limitNames.map((limit) => [`limits.${limit}`, limits[limit]])),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return {
    $set: Object.fromEntries(given.filter(([, value]) => value !== null)),
    $unset: Object.fromEntries(given.filter(([, value]) => value === null).map(([field]) => [field, 1])),
  };
}

const hashesAtOnce = 100;

export type KeyStore = ReturnType<typeof createKeyStore>;

/** The collection `keys`. It holds no secret, only the hash of one. */
export function createKeyStore({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { model, collection } = openCollection<Stored>(mongo, "keys", definition);
  const now = () => new Date(clock.now());
  /** Anybody can invent secrets: however many arrive at once, MongoDB has one read of them at a time. */
  const findByHash = groupCommit<string, KeyRecord | undefined>({
    limit: hashesAtOnce,
    async write(_, hashes) {
      const found = await model
        .find({ hash: { $in: [...hashes] }, ...live })
        .lean()
        .exec();
      const keys = new Map(found.map((stored) => [stored.hash, toRecord(stored)]));
      return hashes.map((each) => keys.get(each));
    },
  });

  async function change({ id, account }: KeyId, update: object): Promise<KeyRecord> {
    const stored = await model
      .findOneAndUpdate({ _id: id, ...(account !== undefined && { account }) }, update, {
        returnDocument: "after",
        updatePipeline: true,
      })
      .lean();
    if (!stored) throw notFound("key");
    return toRecord(stored);
  }

  return {
    async insert(
      account: string,
      { name, scopes, limits = {}, budget, models, promptCache, cache, expiresAt }: KeyPatch,
      sharesBudgetOf: readonly string[],
    ) {
      const secret = newSecret();
      const created = await model.create({
        _id: newId("key"),
        account,
        ...(name != null && { name }),
        ...(scopes && { scopes: [...scopes] }),
        prefix: prefixOf(secret),
        hash: hashOf(secret),
        limits: definedLimits(limits),
        ...(budget && { budget: { ...budget, since: now() } }),
        ...(sharesBudgetOf.length > 0 && { sharesBudgetOf: [...sharesBudgetOf] }),
        ...(models && { models: [...models] }),
        ...(promptCache && { promptCache }),
        ...(cache && { cache }),
        ...(expiresAt && { expiresAt }),
        createdAt: now(),
      });
      return { key: toRecord(created.toObject()), secret };
    },

    /** Lists keys, newest first, that come after the key with the id `after`. */
    async list(account: string, page: Page): Promise<KeyRecord[]> {
      const found = await findPage(collection, page, { unknown: "this account has no key", owner: { account } });
      return found.map(toRecord);
    },

    /** Throws 404. */
    get: async (account: string, id: string): Promise<KeyRecord> => {
      const stored = await model.findOne({ _id: id, account }).lean();
      if (!stored) throw notFound("key");
      return toRecord(stored);
    },

    /** Counts the keys that are not revoked, up to `limit`. */
    countLive: (account: string, limit: number): Promise<number> =>
      model
        .countDocuments({ account, ...live })
        .limit(limit)
        .exec(),

    /** Those of these ids that are keys of the account, including revoked ones. */
    async existing(account: string, ids: readonly string[]): Promise<string[]> {
      const found = model
        .find({ _id: { $in: [...ids] }, account }, { _id: 1 })
        .lean()
        .exec();
      return (await found).map(({ _id }) => _id);
    },

    /** The budgets of these keys, including revoked ones. */
    async budgetsOf(account: string, ids: readonly string[]): Promise<{ keyId: string; budget: KeyBudget }[]> {
      if (ids.length === 0) return [];
      const found = model
        .find({ _id: { $in: [...ids] }, account }, { budget: 1 })
        .lean()
        .exec();
      return (await found).flatMap(({ _id, budget }) => (budget ? [{ keyId: _id, budget }] : []));
    },

    /** The ids of the keys that share this key's budget and can have been charged since this time. */
    async sharing(account: string, id: string, since: Date): Promise<string[]> {
      const found = model
        .find({ account, ...sharingSince(id, since) }, { _id: 1 })
        .lean()
        .exec();
      return (await found).map(({ _id }) => _id);
    },

    countSharing: (account: string, id: string, since: Date, limit: number): Promise<number> =>
      model
        .countDocuments({ account, ...sharingSince(id, since) })
        .limit(limit)
        .exec(),

    update: (id: KeyId, patch: KeyPatch) => change(id, updateOf(patch, now())),

    /** Keeps the time of the first revocation. */
    revoke: (id: KeyId) => change(id, [{ $set: { revokedAt: { $ifNull: ["$revokedAt", now()] } } }]),

    /** Finds a key that is not revoked by the hash of its secret. */
    findByHash: (of: string): Promise<KeyRecord | undefined> => findByHash("", of, of),

    /** Finds a key that is not revoked. */
    async find(id: string): Promise<KeyRecord | undefined> {
      const stored = await model
        .findOne({ _id: id, ...live })
        .lean()
        .exec();
      return stored ? toRecord(stored) : undefined;
    },

    /** Also makes the key's budgets due for a look, in the same write. */
    async used(id: string) {
      const isBounded = {
        $or: [{ $ne: [{ $type: "$budget" }, "missing"] }, { $ne: [{ $type: "$sharesBudgetOf" }, "missing"] }],
      };
      const change = {
        lastUsedAt: { $max: ["$lastUsedAt", now()] },
        budgetDueAt: { $cond: [isBounded, { $ifNull: ["$budgetDueAt", now()] }, "$$REMOVE"] },
      };
      await collection.updateOne({ _id: id }, [{ $set: change }]);
    },

    ...createKeyWatch({ collection, clock }),
  };
}
