import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

export const paymentsSchema = {
  module: "payments",
  unsharded: {
    quotes: "a message hash is unique over all quotes, and the chain takes fewer payments than one shard",
    buybacks: "a few batches for each token",
    topups: "a few for each account, and a job looks for all that are due",
    topupPayments: "a signature is unique over all accounts, and the chain takes fewer payments than one shard",
  },
  migrations: [
    createCollections("quotes and buybacks", [
      {
        collection: "quotes",
        indexes: [
          { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
          { key: { messageHash: 1 }, unique: true, partialFilterExpression: { messageHash: { $exists: true } } },
          { key: { lookAt: 1 }, sparse: true },
        ],
      },
      {
        collection: "buybacks",
        indexes: [
          { key: { token: 1 }, unique: true, partialFilterExpression: { state: "open" } },
          { key: { lookAt: 1 }, sparse: true },
          { key: { createdAt: -1, _id: -1 } },
        ],
      },
    ]),
    createCollections("top-ups and their payments", [
      {
        collection: "topups",
        indexes: [
          { key: { account: 1, createdAt: -1, _id: -1 } },
          { key: { lookAt: 1 }, sparse: true },
          { key: { removeAt: 1 }, expireAfterSeconds: 0 },
        ],
      },
      { collection: "topupPayments", indexes: [{ key: { topup: 1 } }] },
    ]),
  ],
} satisfies ModuleSchema;
