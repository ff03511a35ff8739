import { z } from "zod";
import { budgetPeriods, type KeyPatch, type KeyRecord, type ListedKey, type SpentBudget, scopes } from "#keys";
import { formatUsd } from "#money";
import { name, positiveUsd } from "../http/input.ts";
import { unixSeconds } from "../http/json-routes.ts";

/** A key as the admin interface and the account's own show and take it. */

const count = z.int().positive().max(1e12);
const limits = z
  .strictObject({ requests_per_minute: count, tokens_per_minute: count, concurrent_requests: count })
  .partial();
/** `null` removes an override. */
const limitsPatch = z
  .strictObject({
    requests_per_minute: count.nullable(),
    tokens_per_minute: count.nullable(),
    concurrent_requests: count.nullable(),
  })
  .partial();

const scopeList = z.array(z.enum(scopes)).min(1).max(scopes.length);
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
const rights = {
  name: name.nullable().optional(),
  scopes: scopeList.optional(),
  budget: z
    .strictObject({ limit_usd: budgetLimit, period: z.enum(budgetPeriods) })
    .nullable()
    .optional(),
  models: z.array(modelName).min(1).max(100).nullable().optional(),
  expires_at: z.int().positive().max(1e11).nullable().optional(),
};

export const newKey = z.strictObject({ ...rights, limits: limits.optional() });
export const keyPatch = z.strictObject({ ...rights, limits: limitsPatch.optional() });

export const toPatch = ({
  limits,
  budget,
  expires_at: expiresAt,
  ...same
}: z.infer<typeof newKey> | z.infer<typeof keyPatch>): KeyPatch => ({
  ...same,
  limits: limits && {
    requestsPerMinute: limits.requests_per_minute,
    tokensPerMinute: limits.tokens_per_minute,
    concurrentRequests: limits.concurrent_requests,
  },
  budget: budget && { limitNanoUsd: budget.limit_usd, period: budget.period },
  expiresAt: typeof expiresAt === "number" ? new Date(expiresAt * 1_000) : expiresAt,
});

/** Limits set on the key; `null` means the configured default. */
export const renderKey = (key: KeyRecord) => ({
  id: key.id,
  object: "key",
  account: key.account,
  name: key.name,
  prefix: key.prefix,
  scopes: key.scopes,
  limits: {
    requests_per_minute: key.limits.requestsPerMinute ?? null,
    tokens_per_minute: key.limits.tokensPerMinute ?? null,
    concurrent_requests: key.limits.concurrentRequests ?? null,
  },
  budget: key.budget && { limit_usd: formatUsd(key.budget.limitNanoUsd), period: key.budget.period },
  shares_budget_of: key.sharesBudgetOf,
  models: key.models,
  expires_at: key.expiresAt && unixSeconds(key.expiresAt),
  created_at: unixSeconds(key.createdAt),
  last_used_at: key.lastUsedAt && unixSeconds(key.lastUsedAt),
  revoked_at: key.revokedAt && unixSeconds(key.revokedAt),
});

export const renderSpent = (budget: SpentBudget | null) =>
  budget && {
    limit_usd: formatUsd(budget.limitNanoUsd),
    period: budget.period,
    spent_usd: formatUsd(budget.spentNanoUsd),
    resets_at: budget.resetsAt === undefined ? null : budget.resetsAt / 1_000,
  };

export const renderListed = (key: ListedKey) => ({ ...renderKey(key), budget: renderSpent(key.spent) });
