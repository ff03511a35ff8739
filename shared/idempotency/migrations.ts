import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

export const idempotencySchema = {
  module: "idempotency",
  shardKeys: { idempotency: "_id" },
  migrations: [
    createCollections("idempotency", [
      { collection: "idempotency", indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }] },
    ]),
  ],
} satisfies ModuleSchema;
