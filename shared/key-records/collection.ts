import type { DocumentOf } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { budgetPeriods } from "./budget-period.ts";

/** `inference` calls models, `manage` sees and changes the whole account. */
export const scopes = ["inference", "manage"] as const;
export type Scope = (typeof scopes)[number];

/** `auto`: workers add cache marks to the key's calls, where they pay off. */
export const promptCaches = ["auto", "off"] as const;
export type PromptCache = (typeof promptCaches)[number];

/** The default of the key's calls for the response cache. */
export interface KeyCache {
  readonly enabled: boolean;
  readonly ttlSeconds: number;
  /** Headers of calls cannot switch it on. */
  readonly locked: boolean;
}
export const maxCacheTtlSeconds = 86_400;
export const defaultKeyCache: KeyCache = { enabled: false, ttlSeconds: 300, locked: false };

/** The filter of keys that are not revoked, and of the partial index on them. */
export const live = { revokedAt: null };

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
    createCollections("index: keys whose budgets are watched, and keys that expire", [
      {
        collection: "keys",
        indexes: [
          { key: { budgetDueAt: 1 }, sparse: true },
          { key: { expiresAt: 1 }, sparse: true },
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
const cache = {
  enabled: { type: Boolean, required: true },
  ttlSeconds: { type: Number, required: true },
  locked: { type: Boolean, required: true },
} as const;
export const definition = {
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
  /** Defaults to `off`. */
  promptCache: { type: String, enum: promptCaches },
  /** Defaults to `defaultKeyCache`. */
  cache: { type: cache, _id: false },
  expiresAt: { type: Date },
  createdAt: { type: Date, required: true },
  lastUsedAt: { type: Date },
  revokedAt: { type: Date },
  /** Set while the key's calls may use up a budget, its own or a shared one: when to look at it next. */
  budgetDueAt: { type: Date },
  /** The highest threshold of its own budget that is recorded, and the beginning of that period. */
  budgetWatch: { type: { from: Number, limitNanoUsd: BigInt, percent: Number }, _id: false },
  /** The expiry that has been announced, keyed by the days before it. */
  announced: { type: { 7: Date, 1: Date }, _id: false },
} as const;

export type StoredKey = DocumentOf<typeof definition>;
