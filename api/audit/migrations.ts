import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

/** Each filter has an index in the order of the list. */
const newestFirst = { createdAt: -1, _id: -1 } as const;

export const auditSchema = {
  module: "audit",
  unsharded: { auditLog: "one small document for each change by an operator" },
  migrations: [
    createCollections("auditLog", [
      {
        collection: "auditLog",
        indexes: [
          { key: newestFirst },
          { key: { who: 1, ...newestFirst } },
          { key: { action: 1, ...newestFirst } },
          { key: { targets: 1, ...newestFirst } },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;
