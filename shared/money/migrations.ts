import { backfill, createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { nameCollation, named, withOpenHolds } from "./accounts.ts";
import { unclaimed } from "./accruals.ts";
import { alertIndex, withAlert } from "./balance-alerts.ts";
import { sweptLifetimeSeconds } from "./leases/closing.ts";
import {
  accountIndex,
  answerIndex,
  anyStatusIndex,
  archivable,
  archiveIndex,
  errorIndex,
  keyIndex,
  leaseIndex,
  modelIndex,
  ofKeys,
  ofModels,
  sessionIndex,
  statusIndex,
  taggedIndex,
  tagIndex,
  timeIndex,
  uncounted,
  uncountedIndex,
  unsuccessful,
  userIndex,
  withAnswerId,
  withError,
  withSession,
  withTags,
  withUser,
} from "./ledger.ts";
import { decidedLifetimeSeconds, noteIndex, waiting, waitingIndex } from "./lost-responses.ts";
import { spentIndex, unusedIndex, withoutUnused, withUnused } from "./payment-accounts.ts";
import { movementIndex, movements } from "./statement.ts";
import { refunds } from "./usage/entries.ts";
import { accountHourIndex, hourIndex, tagHourIndex } from "./usage/hours.ts";
import { tagsLifetimeSeconds } from "./usage/month-tags.ts";

const attempts = "$request.attempts";
/**
 * Converts a number to `StoredAttempts`: all attempts except the last failed at an unknown upstream, and the last one
 * ended as the call did.
 */
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

/** Ids of accounts are random, so ranges of them are even, and the ledger check queries one shard per range. */
export const moneySchema = {
  module: "money",
  shardKeys: {
    accounts: "_id",
    ledger: "account",
    checkpoints: "_id",
    archivedSums: "_id",
    usageDays: "account",
    usageHours: "account",
    usageTagDays: "account",
    usageTagHours: "account",
    usageTags: "account",
    keyMonths: "account",
    invoices: "_id",
  },
  unsharded: {
    checkpointBatches: "one document",
    sweptLeases: "only the leases of instances that died within two days",
    archives: "a document for each file of the archive",
    apiInstances: "a document for each API instance",
    lostResponses: "a document for each response that is lost when an API instance dies",
    restores: "a document for each month that is restored",
    restoredEntries: "for an investigation, then removed",
    usageDayStates: "a document for each day",
    usageHourStates: "a document for each hour of two weeks",
  },
  scatter: {
    operator: "an operator's search: by a request id alone, or all accounts; or the sums of all accounts",
    sweep: "scheduled: holds that are overdue, by a partial index",
    metrics: "scheduled: a bounded count of open holds, by a partial index",
    check: "the check of the ledger: ranges of accounts, which are on one shard or a few",
    checkpoint: "scheduled: entries without a mark, by a partial index",
    archive: "scheduled: entries of a closed month, by a partial index",
    "usage days": "scheduled: the entries of an hour, its rows, and those of a day",
    "balance alerts": "scheduled: accounts with a threshold, by a partial index",
    buyback: "scheduled: accruals in no batch, by a partial index, and the entries of a batch by their ids",
    "undelivered answers": "scheduled: the last entries, after the death of an API instance",
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
          { key: { "buyback.token": 1 }, partialFilterExpression: unclaimed },
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
    createCollections("usage by day, and the indexes of it and of searches for calls", [
      {
        collection: "ledger",
        indexes: [
          { key: timeIndex },
          { key: { createdAt: 1, account: 1 }, partialFilterExpression: refunds },
          { key: keyIndex, partialFilterExpression: ofKeys },
          { key: modelIndex, partialFilterExpression: ofModels },
          { key: answerIndex, partialFilterExpression: withAnswerId },
          { key: statusIndex, partialFilterExpression: unsuccessful },
          { key: anyStatusIndex, partialFilterExpression: unsuccessful },
          { key: errorIndex, partialFilterExpression: withError },
        ],
      },
      { collection: "accounts", indexes: [{ key: alertIndex, partialFilterExpression: withAlert }] },
      { collection: "usageDays", indexes: [{ key: { account: 1, day: 1 } }, { key: { account: 1, key: 1, day: 1 } }] },
      { collection: "usageDayStates", indexes: [] },
      { collection: "keyMonths", indexes: [{ key: { account: 1, key: 1 } }] },
    ]),
    createCollections("accounts by name, for an operator's search", [
      {
        collection: "accounts",
        indexes: [{ key: { name: 1, _id: 1 }, collation: nameCollation, partialFilterExpression: named }],
      },
    ]),
    createCollections("undelivered calls of API instances", [{ collection: "apiInstances", indexes: [] }]),
    createCollections("usage by hour, and indexes of payment accounts with an unused rest, and of spent ones", [
      {
        collection: "accounts",
        indexes: [
          { key: unusedIndex, partialFilterExpression: withUnused },
          { key: spentIndex, partialFilterExpression: withoutUnused },
        ],
      },
      { collection: "usageHours", indexes: [{ key: hourIndex }] },
      { collection: "usageHourStates", indexes: [] },
    ]),
    createCollections("an index of the hours of an account's keys", [
      { collection: "usageHours", indexes: [{ key: accountHourIndex }] },
    ]),
    createCollections("usage by tag, and the indexes of tags, sessions and users", [
      {
        collection: "ledger",
        indexes: [
          { key: sessionIndex, partialFilterExpression: withSession },
          { key: userIndex, partialFilterExpression: withUser },
          { key: tagIndex, partialFilterExpression: withTags },
          { key: taggedIndex, partialFilterExpression: withTags },
        ],
      },
      { collection: "usageTagHours", indexes: [{ key: accountHourIndex }, { key: tagHourIndex }] },
      {
        collection: "usageTagDays",
        indexes: [{ key: { account: 1, day: 1 } }, { key: { account: 1, tag: 1, day: 1 } }],
      },
      {
        collection: "usageTags",
        indexes: [{ key: { createdAt: 1 }, expireAfterSeconds: tagsLifetimeSeconds }, { key: { account: 1 } }],
      },
    ]),
    createCollections("the batch of entries that checkpoints count", [
      { collection: "checkpointBatches", indexes: [] },
    ]),
    createCollections("responses that were lost with API instances", [
      {
        collection: "lostResponses",
        indexes: [
          { key: noteIndex },
          { key: waitingIndex, partialFilterExpression: waiting },
          { key: { decidedAt: 1 }, expireAfterSeconds: decidedLifetimeSeconds },
        ],
      },
    ]),
    createCollections("invoices, and an index of the entries that are no calls, for statements", [
      { collection: "ledger", indexes: [{ key: movementIndex, partialFilterExpression: movements }] },
      { collection: "invoices", indexes: [] },
    ]),
  ],
} satisfies ModuleSchema;
