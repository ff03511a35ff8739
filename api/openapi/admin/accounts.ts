import { z } from "zod";
import { accountPatch, newAccount } from "../../routes/admin/accounts.ts";
import { keyPatch, newKey } from "../../routes/key-object.ts";
import { key, listedKey, madeKey } from "../account-keys.ts";
import { type Group, unixSeconds, usd } from "../operation.ts";
import { adminOperation, idOf, listOf, pageQuery, pageWith } from "./operation.ts";

const account = z
  .object({
    id: z.string(),
    object: z.literal("account"),
    name: z.string(),
    tier: z.enum(["standard", "elite"]),
    frozen: z.boolean().describe("Its calls are refused"),
    buyback_token: z.string().nullable(),
    balance_usd: usd.describe("Credits less decided costs"),
    available_usd: usd,
    held_usd: usd,
    open_holds: z.int().describe("Holds and leases"),
    created_at: unixSeconds,
  })
  .meta({ id: "AdminAccount" });

const ofAccount = idOf("The account's id");
const ofKey = idOf("The key's id");

export const accounts: Group = {
  name: "Accounts",
  description: "The owners of balances and keys",
  operations: {
    "GET /accounts": adminOperation("listAccounts", "Accounts, newest first", {
      query: pageWith({
        search: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe("An id, or the beginning of names; in the order of names"),
      }),
      answers: { 200: ["A page", listOf("AdminAccount", account)] },
    }),
    "POST /accounts": adminOperation("createAccount", "Create an account", {
      body: newAccount,
      answers: { 201: ["The account", account] },
    }),
    "GET /accounts/{id}": adminOperation("getAccount", "One account with its balance", {
      path: ofAccount,
      answers: { 200: ["The account", account] },
    }),
    "PATCH /accounts/{id}": adminOperation("updateAccount", "Rename, freeze, or change the tier", {
      path: ofAccount,
      body: accountPatch,
      answers: { 200: ["The account", account] },
    }),
    "GET /accounts/{id}/keys": adminOperation("listKeys", "The account's keys, newest first", {
      path: ofAccount,
      query: pageQuery,
      answers: { 200: ["A page", listOf("ListedKey", listedKey)] },
    }),
    "POST /accounts/{id}/keys": adminOperation("createKey", "Create a key; the answer has its secret, only this once", {
      path: ofAccount,
      body: newKey,
      answers: { 201: ["The key and its secret", madeKey] },
    }),
    "PATCH /keys/{id}": adminOperation("updateKey", "Change a key", {
      path: ofKey,
      body: keyPatch,
      answers: { 200: ["The key", key] },
    }),
    "DELETE /keys/{id}": adminOperation("revokeKey", "Revoke a key, within a second in every instance", {
      path: ofKey,
      answers: { 200: ["The revoked key", key] },
    }),
  },
};
