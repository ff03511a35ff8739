import { createCollections, dropIndexes } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { pendingIndex } from "./records.ts";

const pendingSlot = { status: "pending", "multipart.slot": { $exists: true } };
const pendingAccountSlot = { status: "pending", "multipart.accountSlot": { $exists: true } };

export const filesSchema = {
  module: "files",
  shardKeys: { files: "_id", generations: "_id", batchFiles: "account", batchFileUsage: "_id" },
  unsharded: { uploads: "found by id alone, and unique by account and request: bounded by the upload limits of keys" },
  scatter: {
    expiry: "scheduled: files that are due, by a sparse index",
    "files of an account": "a page of a list that a person looks at, by an index on every shard",
    metrics: "scheduled: the file that is due first, by the same index",
  },
  migrations: [
    createCollections("uploads, files and generations", [
      {
        collection: "uploads",
        indexes: [
          { key: { account: 1, createdAt: -1, _id: -1 } },
          { key: { account: 1, requestId: 1 }, unique: true },
          { key: { dueAt: 1 }, sparse: true },
          { key: pendingIndex, partialFilterExpression: { status: "pending" } },
          { key: { account: 1, key: 1, "multipart.slot": 1 }, unique: true, partialFilterExpression: pendingSlot },
        ],
      },
      { collection: "files", indexes: [{ key: { dueAt: 1 }, sparse: true }] },
      { collection: "generations", indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }] },
    ]),
    dropIndexes("unique indexes of uploads without the account", "uploads", ["requestId_1", "key_1_multipart.slot_1"]),
    createCollections("an index of the files that an account has", [
      {
        collection: "files",
        indexes: [{ key: { account: 1, createdAt: -1, _id: -1 }, partialFilterExpression: { status: "active" } }],
      },
    ]),
    createCollections("batchFiles and batchFileUsage", [
      {
        collection: "batchFiles",
        indexes: [
          { key: { account: 1, createdAt: -1, _id: -1 } },
          { key: { account: 1, expiresAt: 1, status: 1, bytes: 1 } },
          { key: { dueAt: 1 }, sparse: true },
        ],
      },
      { collection: "batchFileUsage", indexes: [] },
    ]),
    createCollections("an index that bounds the unfinished uploads of an account", [
      {
        collection: "uploads",
        indexes: [
          {
            key: { account: 1, "multipart.accountSlot": 1 },
            unique: true,
            partialFilterExpression: pendingAccountSlot,
          },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;
