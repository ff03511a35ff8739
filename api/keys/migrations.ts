import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { live } from "./store.ts";

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
