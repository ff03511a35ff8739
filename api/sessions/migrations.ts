import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

export const sessionsSchema = {
  module: "sessions",
  unsharded: { sessions: "at most 100 for each key and operator, found by the hash of their secret" },
  migrations: [
    createCollections("sessions", [
      {
        collection: "sessions",
        indexes: [
          { key: { owner: 1, createdAt: -1, _id: -1 } },
          // The index only saves space: every read checks the time.
          { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;
