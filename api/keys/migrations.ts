import { createCollections } from "#platform/migration-steps";
import type { ModuleSchema } from "#platform/migrations";

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
  ],
} satisfies ModuleSchema;
