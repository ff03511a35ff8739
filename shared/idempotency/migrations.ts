import { createCollections } from "#platform/migration-steps";
import type { ModuleSchema } from "#platform/migrations";

export const idempotencySchema = {
  module: "idempotency",
  shardKeys: { idempotency: "_id" },
  migrations: [
    createCollections("idempotency", [
      { collection: "idempotency", indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }] },
    ]),
  ],
} satisfies ModuleSchema;
