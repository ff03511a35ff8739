import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

export const responsesSchema = {
  module: "responses",
  shardKeys: { responses: "account" },
  migrations: [
    createCollections("responses", [
      {
        collection: "responses",
        indexes: [
          { key: { account: 1, items: 1, createdAt: -1 } },
          { key: { account: 1, expiresAt: 1, bytes: 1 } },
          { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;
