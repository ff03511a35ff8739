import { z } from "zod";
import { budgetPeriods, defaultKeyCache, maxCacheTtlSeconds, promptCaches, scopes } from "#key-records";
import type { ListedKey } from "#keys";
import {
  fields,
  inputFields,
  orNull,
  positiveUsd,
  secondsAsDate,
  tag,
  unixSeconds,
  unixSecondsOfMs,
  usd,
  usdInput,
} from "../http/fields.ts";
import { name } from "../http/input.ts";

/** A key in the admin interface and in the account's own. */

const count = z.int().positive().max(1e12);
const modelName = z
  .string()
  .max(200)
  .regex(/^[^\s/*]+\/(\*|[^\s*]+)$/, "expected the id of a model, or `provider/*`");
/** Redis counts budgets in floating point, which is exact to 2^53 nano-USD. */
const maxBudgetUsd = 9_000_000n;
const budgetLimit = positiveUsd.refine(
  (nanoUsd) => nanoUsd <= maxBudgetUsd * 1_000_000_000n,
  `must be at most ${maxBudgetUsd}`,
);
const period = z.enum(budgetPeriods);
const cacheTtl = z.int().min(1).max(maxCacheTtlSeconds);
const cache = inputFields({
  enabled: z.boolean().default(defaultKeyCache.enabled),
  ttl_seconds: cacheTtl.default(defaultKeyCache.ttlSeconds),
  locked: z.boolean().default(defaultKeyCache.locked),
}).refine(({ enabled, locked }) => !(enabled && locked), {
  path: ["locked"],
  message: "must be false if the cache is enabled",
});
const rights = {
  name: name.nullable().optional(),
  scopes: z.array(z.enum(scopes)).min(1).max(scopes.length).optional(),
  budget: inputFields({ limit_usd: budgetLimit, period }).nullable().optional(),
  models: z.array(modelName).min(1).max(100).nullable().optional(),
  prompt_cache: z.enum(promptCaches).optional(),
  cache: cache.optional(),
  expires_at: secondsAsDate(z.int().positive().max(1e11)).nullable().optional(),
};
const limitsOf = <Limit extends z.ZodType>(limit: Limit) => ({
  requests_per_minute: limit,
  tokens_per_minute: limit,
  concurrent_requests: limit,
});

export const newKey = inputFields({ ...rights, limits: inputFields(limitsOf(count.optional())).optional() });
/** A limit of `null` removes an override. */
export const keyPatch = inputFields({
  ...rights,
  limits: inputFields(limitsOf(count.nullable().optional())).optional(),
});

/** The account of a key, as its caller sees it. */
export const keyAccount = z.object({
  id: z.string(),
  name: z.string(),
  tier: z.enum(["standard", "elite"]),
  frozen: z.boolean(),
});

export const keyFields = {
  id: z.string().describe("key_..."),
  object: tag("key"),
  account: z.string(),
  name: z.string().nullable(),
  prefix: z.string().describe("The part of the secret that may be shown").meta({ example: "live_Ab3..." }),
  scopes: z
    .array(z.enum(scopes))
    .describe("`inference` may call models and see its own key; `manage` may see and change the account"),
  limits: fields(limitsOf(orNull(z.int()).describe("null: the configured limit applies"))),
  budget: fields({ limit_usd: usdInput, period })
    .nullable()
    .describe("Maximum cost of its calls in each period; periods are in UTC, weeks begin on Monday"),
  shares_budget_of: z
    .array(z.string())
    .describe("Other keys whose budgets its calls also count against: the keys that created it and had a budget"),
  models: z.array(z.string()).nullable().describe("Ids of models, or `provider/*`; null: all models"),
  prompt_cache: z
    .enum(promptCaches)
    .describe("`auto` adds cache marks to its calls to models that need them, where they pay off"),
  cache: fields({
    enabled: z.boolean().describe("Whether calls without `x-xm-cache` use the response cache"),
    ttl_seconds: cacheTtl.describe("How long the answers of calls without `x-xm-cache-ttl` are stored"),
    locked: z.boolean().describe("`x-xm-cache` cannot switch it on"),
  }).describe("The default of its calls for the response cache"),
  expires_at: unixSeconds.nullable(),
  created_at: unixSeconds,
  last_used_at: unixSeconds.nullable(),
  revoked_at: unixSeconds.nullable(),
};
export const key = fields(keyFields).meta({ id: "Key" });

export const spentBudget = fields({
  limit_usd: usd,
  period,
  spent_usd: usd.describe("Cost of the calls that have ended"),
  resets_at: orNull(unixSecondsOfMs),
}).nullable();

export const listedKey = fields({ ...keyFields, budget: spentBudget }).meta({ id: "ListedKey" });
export const withSpent = (key: ListedKey) => ({ ...key, budget: key.spent });

export const keyWithSecret = fields({
  ...keyFields,
  key: z.string().describe("The secret, `live_...`; it is shown only once"),
}).meta({ id: "NewKeyWithSecret" });
