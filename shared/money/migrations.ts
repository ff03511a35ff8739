import { backfill, createCollections } from "#platform/migration-steps";
import type { ModuleSchema } from "#platform/migrations";
import { nameCollation, named, withOpenHolds } from "./accounts.ts";
import { keyIndex, ofKeys } from "./key-usage.ts";
import { sweptLifetimeSeconds } from "./lease-closing.ts";
import { accountIndex, archivable, archiveIndex, leaseIndex, uncounted, uncountedIndex } from "./ledger.ts";

const attempts = "$request.attempts";
/** As `StoredAttempts`: all but the last failed at an unknown upstream, and the last one ended as the call did. */
const attemptsFromNumber = {
  $map: {
    input: { $range: [0, { $toInt: attempts }] },
    in: {
      $cond: [
        { $lt: [{ $add: ["$$this", 1] }, attempts] },
        { u: null, o: "failed" },
        { $cond: [{ $eq: ["$request.status", "succeeded"] }, { $literal: {} }, { o: "$request.status" }] },
      ],
    },
  },
};

/** Ids of accounts are random, so ranges of them are as even as hashes, and the check of the ledger asks one shard for each. */
export const moneySchema = {
  module: "money",
  shardKeys: { accounts: "_id", ledger: "account", checkpoints: "_id", archivedSums: "_id" },
  unsharded: {
    sweptLeases: "only the leases of instances that died within two days",
    archives: "a document for each file of the archive",
    restores: "a document for each month that is restored",
    restoredEntries: "for an investigation, then removed",
  },
  scatter: {
    operator: "an operator's search: by a request id alone, or all accounts",
    sweep: "scheduled: holds that are overdue, by a partial index",
    metrics: "scheduled: a bounded count of open holds, by a partial index",
    check: "the check of the ledger: ranges of accounts, which are on one shard or a few",
    checkpoint: "scheduled: entries without a mark, by a partial index",
    archive: "scheduled: entries of a closed month, by a partial index",
    buyback: "scheduled: accruals in no batch, by a partial index, and the entries of a batch by their ids",
    "unused payments": "scheduled, or an operator's: payment accounts",
  },
  migrations: [
    createCollections("accounts, ledger, checkpoints, swept leases and the archive", [
      {
        collection: "accounts",
        indexes: [
          { key: { createdAt: -1, _id: -1 } },
          { key: { holdsExpireAt: 1 }, partialFilterExpression: withOpenHolds },
        ],
      },
      {
        collection: "ledger",
        indexes: [
          { key: accountIndex },
          { key: leaseIndex, partialFilterExpression: { lease: { $exists: true } } },
          // The accruals that are in no batch.
          { key: { "buyback.token": 1 }, partialFilterExpression: { "buyback.batch": { $type: "null" } } },
          { key: uncountedIndex, partialFilterExpression: uncounted },
          { key: archiveIndex, partialFilterExpression: archivable },
        ],
      },
      { collection: "checkpoints", indexes: [] },
      { collection: "archivedSums", indexes: [] },
      {
        collection: "archives",
        indexes: [
          { key: { open: 1 }, unique: true, partialFilterExpression: { open: true } },
          { key: { month: -1, _id: 1 } },
        ],
      },
      { collection: "restores", indexes: [] },
      { collection: "restoredEntries", indexes: [{ key: accountIndex }, { key: archiveIndex }] },
      { collection: "sweptLeases", indexes: [{ key: { closedAt: 1 }, expireAfterSeconds: sweptLifetimeSeconds }] },
    ]),
    backfill("attempts that were stored as a number become a list", {
      collection: "ledger",
      filter: { "request.attempts": { $type: "number" } },
      update: [{ $set: { "request.attempts": attemptsFromNumber } }],
    }),
    createCollections("accounts by name, for an operator's search", [
      {
        collection: "accounts",
        indexes: [{ key: { name: 1, _id: 1 }, collation: nameCollation, partialFilterExpression: named }],
      },
    ]),
    createCollections("index: the charges of a key", [
      { collection: "ledger", indexes: [{ key: keyIndex, partialFilterExpression: ofKeys }] },
    ]),
  ],
} satisfies ModuleSchema;
