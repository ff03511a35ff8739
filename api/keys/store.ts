import { createHash } from "node:crypto";
import { notFound } from "#errors";
import { dayMs } from "#platform/clock";
import { newId, randomBase62 } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";
import { type Budget, budgetPeriods, type KeyBudget } from "./budget-period.ts";
import { type Limits, limitNames } from "./limits.ts";

/** `inference` calls models, `manage` sees and changes the whole account. */
export const scopes = ["inference", "manage"] as const;
export type Scope = (typeof scopes)[number];

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
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

export interface KeyPatch {
  readonly name?: string | null | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  /** `null` removes an override. */
  readonly limits?: { readonly [limit in keyof Limits]?: number | null | undefined } | undefined;
  readonly budget?: Budget | null | undefined;
  readonly models?: readonly string[] | null | undefined;
  readonly expiresAt?: Date | null | undefined;
}

/** If `account` is set, only a key of that account is found. */
interface KeyId {
  readonly id: string;
  readonly account?: string | undefined;
}

/** The filter of keys that are not revoked, and of the partial index on them. */
const live = { revokedAt: null };

export const keysSchema = {
  module: "keys",
  unsharded: { keys: "few, cached by the API, and unique by the hash of their secret" },
  migrations: [
    createCollections("keys", [
      {
        collection: "keys",
        indexes: [{ key: { hash: 1 }, unique: true }, { key: { account: 1, createdAt: -1, _id: -1 } }],
      },
    ]),
    createCollections("index: the keys of an account that are not revoked", [
      { collection: "keys", indexes: [{ key: { account: 1 }, partialFilterExpression: live }] },
    ]),
    createCollections("index: the keys that share the budget of a key", [
      {
        collection: "keys",
        indexes: [
          { key: { account: 1, sharesBudgetOf: 1 }, partialFilterExpression: { sharesBudgetOf: { $exists: true } } },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;

const budget = {
  limitNanoUsd: { type: BigInt, required: true },
  period: { type: String, enum: budgetPeriods, required: true },
  since: { type: Date, required: true },
} as const;
const definition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  name: { type: String },
  prefix: { type: String, required: true },
  hash: { type: String, required: true },
  /** Defaults to `inference`. */
  scopes: { type: [{ type: String, enum: scopes }], default: undefined },
  limits: {
    requestsPerMinute: { type: Number },
    tokensPerMinute: { type: Number },
    concurrentRequests: { type: Number },
  },
  budget: { type: budget, _id: false },
  sharesBudgetOf: { type: [{ type: String }], default: undefined },
  models: { type: [{ type: String }], default: undefined },
  expiresAt: { type: Date },
  createdAt: { type: Date, required: true },
  lastUsedAt: { type: Date },
  revokedAt: { type: Date },
} as const;

type Stored = DocumentOf<typeof definition>;

/** The prefix is fixed by docs/api/inference.md, part 5; 40 characters of base62 are 238 bits. */
const newSecret = () => `live_${randomBase62(40)}`;
const isSecret = (text: string) => /^live_[0-9A-Za-z]{40}$/.test(text);
const prefixOf = (secret: string) => `${secret.slice(0, "live_".length + 3)}...`;

/** A random secret needs no salt and no slow hash: it cannot be guessed. */
const hashOf = (secret: string) => createHash("sha256").update(secret).digest("base64url");

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

/** The collection `keys`. It holds no secret, only the hash of one. */
export function createKeyStore({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { model, collection } = openCollection<Stored>(mongo, "keys", definition);
  const now = () => new Date(clock.now());

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
      { name, scopes, limits = {}, budget, models, expiresAt }: KeyPatch,
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

    /** Finds a key that is not revoked. */
    async find(by: { hash: string } | { _id: string }): Promise<KeyRecord | undefined> {
      const stored = await model
        .findOne({ ...by, ...live })
        .lean()
        .exec();
      return stored ? toRecord(stored) : undefined;
    },

    async used(id: string) {
      await model.updateOne({ _id: id }, { $max: { lastUsedAt: now() } });
    },
  };
}
