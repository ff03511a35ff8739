import { z } from "zod";
import { usdText } from "../http/input.ts";
import { requestOperations } from "./account-requests.ts";
import { usageOperations } from "./account-usage.ts";
import { type Group, operation, unixSeconds, usd } from "./operation.ts";

const alertFields = {
  alert_below_usd: usd.nullable().describe("The threshold of the balance alert"),
  alert: z
    .object({ since: unixSeconds })
    .nullable()
    .describe("Since when `available_usd` has been below the threshold, as a look every 15 seconds found it"),
};

const balance = z
  .object({
    object: z.literal("balance"),
    balance_usd: usd.describe("Credits less decided costs"),
    available_usd: usd.describe("What calls may still hold"),
    held_usd: usd.describe("Held for calls that run"),
    ...alertFields,
  })
  .meta({ id: "Balance" });

const ownAccount = z
  .object({
    id: z.string(),
    object: z.literal("account"),
    name: z.string(),
    tier: z.enum(["standard", "elite"]),
    frozen: z.boolean(),
    ...alertFields,
    created_at: unixSeconds,
  })
  .meta({ id: "Account" });

export const account: Group = {
  name: "Account",
  description: "What an account sees and changes without an operator",
  operations: {
    "GET /v1/balance": operation("getBalance", "The account's balance, exact", {
      ok: ["The balance", balance],
      errors: [401, 429, 500, 503],
    }),
    "PATCH /v1/account": operation("updateAccount", "Change the account's settings (scope `manage`)", {
      body: z.object({ alert_below_usd: usdText.nullable().optional().describe("null removes the threshold") }),
      examples: { alert: { summary: "An alert below 5 USD", value: { alert_below_usd: "5.00" } } },
      ok: ["The account", ownAccount],
      errors: [400, 401, 403, 408, 413, 415, 429, 500, 503],
    }),
    ...usageOperations,
    ...requestOperations,
  },
};
