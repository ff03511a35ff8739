import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

const daySeconds = 24 * 60 * 60;

export const refusalsSchema = {
  module: "refusals",
  unsharded: {
    refusedRequests: "small documents of one day, as many as API processes let through, found by their ids",
  },
  migrations: [
    createCollections("refusedRequests", [
      {
        collection: "refusedRequests",
        // The index only saves space: every read checks the time.
        indexes: [{ key: { createdAt: 1 }, expireAfterSeconds: daySeconds }],
      },
    ]),
  ],
} satisfies ModuleSchema;
