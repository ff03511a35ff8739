import { z } from "zod";
import { type Group, operation, usd } from "./operation.ts";

const balance = z
  .object({
    object: z.literal("balance"),
    balance_usd: usd.describe("Credits less decided costs"),
    available_usd: usd.describe("What calls may still hold"),
    held_usd: usd.describe("Held for calls that run"),
  })
  .meta({ id: "Balance" });

export const account: Group = {
  name: "Account",
  description: "What an account sees and changes without an operator",
  operations: {
    "GET /v1/balance": operation("getBalance", "The account's balance, exact", {
      ok: ["The balance", balance],
      errors: [401, 429, 500, 503],
    }),
  },
};
