import { z } from "zod";
import { budgetPeriods, scopes } from "#keys";
import { usdText } from "../http/input.ts";
import { keyPatch, newKey } from "../routes/key-object.ts";
import { requestId } from "./headers.ts";
import { type Group, json, operation, pathId, unixSeconds, usd } from "./operation.ts";

const limit = z.int().nullable().describe("Null: the configured limit");
export const key = z
  .object({
    id: z.string().describe("key_..."),
    object: z.literal("key"),
    account: z.string(),
    name: z.string().nullable(),
    prefix: z.string().describe("What may be shown of the secret").meta({ example: "live_Ab3..." }),
    scopes: z
      .array(z.enum(scopes))
      .describe("`inference` calls models and sees itself; `manage` sees and changes the account"),
    limits: z.object({ requests_per_minute: limit, tokens_per_minute: limit, concurrent_requests: limit }),
    budget: z
      .object({ limit_usd: usdText, period: z.enum(budgetPeriods) })
      .nullable()
      .describe("What its calls may cost in each period; periods are UTC, weeks begin on Monday"),
    shares_budget_of: z
      .array(z.string())
      .describe("Keys whose budgets its calls count against, too: those that made it and had one"),
    models: z.array(z.string()).nullable().describe("Ids of models, or `provider/*`; null: all"),
    expires_at: unixSeconds.nullable(),
    created_at: unixSeconds,
    last_used_at: unixSeconds.nullable(),
    revoked_at: unixSeconds.nullable(),
  })
  .meta({ id: "Key" });

const spentBudget = z
  .object({
    limit_usd: usd,
    period: z.enum(budgetPeriods),
    spent_usd: usd.describe("By calls that have ended"),
    resets_at: unixSeconds.nullable(),
  })
  .nullable();

export const listedKey = z.object({ ...key.shape, budget: spentBudget }).meta({ id: "ListedKey" });

const ownKey = z
  .object({
    ...key.shape,
    account: z.object({ id: z.string(), name: z.string(), tier: z.enum(["standard", "elite"]), frozen: z.boolean() }),
    budget: spentBudget,
    usage: z.object({ day_usd: usd, month_usd: usd, total_usd: usd }).describe("What its calls cost; days are UTC"),
  })
  .meta({ id: "OwnKey" });

export const madeKey = z
  .object({ ...key.shape, key: z.string().describe("The secret, `live_...`, only this once") })
  .meta({ id: "NewKeyWithSecret" });

const keyList = z
  .object({
    object: z.literal("list"),
    data: z.array(listedKey),
    has_more: z.boolean(),
    next: z.string().nullable().describe("Pass it as `after`"),
  })
  .meta({ id: "KeyList" });

const examples = {
  budget: {
    summary: "Five dollars a day, for some models",
    value: { name: "ci", budget: { limit_usd: "5", period: "day" }, models: ["local/*"] },
  },
};
const ofKey = pathId("key_2kT9vQ4mXw7pLr3sZb8n");

export const accountKeys: Group = {
  name: "Keys",
  description: "The keys of an account. All but `GET /v1/key` need a key with the scope `manage`",
  operations: {
    "GET /v1/key": operation("getOwnKey", "The key that asks, with its account and what it spent", {
      ok: ["The key", ownKey],
      errors: [401, 429, 500, 503],
    }),
    "GET /v1/keys": operation("listKeys", "The account's keys, newest first", {
      params: {
        query: z.object({
          limit: z.int().min(1).max(200).optional(),
          after: z.string().min(1).max(200).optional().describe("`next` of the page before"),
        }),
      },
      ok: ["The keys", keyList],
      errors: [400, 401, 403, 429, 500, 503],
    }),
    "POST /v1/keys": operation("createKey", "Make a key that may do at most what the key that asks may do", {
      body: newKey.meta({ id: "NewKey" }),
      examples,
      responses: {
        "201": { description: "The key, with its secret", headers: z.object(requestId), content: json(madeKey) },
      },
      errors: [400, 401, 403, 408, 409, 413, 415, 429, 500, 503],
    }),
    "PATCH /v1/keys/{id}": operation("updateKey", "Change a key; in force everywhere within a second", {
      params: ofKey,
      body: keyPatch.meta({ id: "KeyPatch" }),
      ok: ["The key", key],
      errors: [400, 401, 403, 404, 408, 413, 415, 429, 500, 503],
    }),
    "DELETE /v1/keys/{id}": operation("revokeKey", "Revoke a key; in force everywhere within a second", {
      params: ofKey,
      ok: ["The key, with `revoked_at`", key],
      errors: [401, 403, 404, 429, 500, 503],
    }),
  },
};
