import { type InferRawDocType, Schema } from "mongoose";
import type { Usage } from "#catalog";
import { invalidValue } from "#errors";
import { olderThan, openCollection } from "#platform/collection";
import { answered, type Mongo } from "#platform/mongo";
import type { Page } from "./accounts.ts";
import { isRequestId } from "./request-id.ts";

export const entryKinds = ["credit", "adjustment", "usage", "storage", "refund", "payout"] as const;
export type EntryKind = (typeof entryKinds)[number];

/** What a charge owes to the token of its caller. */
export interface Accrual {
  /** A mint: base58. */
  readonly token: string;
  /** Negative in the entry that gives a call's cost back. */
  readonly nanoUsd: bigint;
  /** The batch that it is bought back in. */
  readonly batch: string | null;
}

/** One decided movement. It never changes, but for the batch of its accrual and the mark that a checkpoint counts it. */
export interface LedgerEntry {
  /**
   * The request id, `credit:<account>:<idempotency key>`, `refund:<request id>`; of a payment on chain the hash of its
   * message, `payout:<account>:<signature>` of one that went back.
   */
  readonly id: string;
  readonly account: string;
  readonly kind: EntryKind;
  /** What it does to the account: a credit adds, usage takes. */
  readonly amountNanoUsd: bigint;
  /** What the call or the upload cost; 0 for whatever is neither. */
  readonly costNanoUsd: bigint;
  readonly createdAt: Date;
  readonly idempotencyKey?: string;
  readonly reason?: string;
  /** The signature of the transaction on chain that moved it. */
  readonly transaction?: string;
  readonly buyback?: Accrual;
  readonly request?: RequestRecord;
}

/** How a call went. The sweeper, which decides for calls that nobody ended, knows no key, endpoint or model. */
export interface RequestRecord {
  readonly key?: string;
  readonly endpoint?: string;
  readonly model?: string;
  readonly upstream?: string;
  readonly attempts: number;
  readonly status: "succeeded" | "failed" | "cancelled";
  /** The code of the error that was answered. */
  readonly error?: string;
  readonly usage: Usage;
  /** The provider gave no usage. */
  readonly estimated: boolean;
  readonly queueMs?: number;
  readonly firstTokenMs?: number;
  readonly totalMs: number;
  /** What the call cost beyond its hold, and nobody pays. */
  readonly shortfallNanoUsd: bigint;
}

const statuses = ["succeeded", "failed", "cancelled"] as const;
const request = {
  key: { type: String },
  endpoint: { type: String },
  model: { type: String },
  upstream: { type: String },
  attempts: { type: Number, required: true },
  status: { type: String, enum: statuses, required: true },
  error: { type: String },
  usage: { type: Map, of: Number, required: true },
  estimated: { type: Boolean, required: true },
  queueMs: { type: Number },
  firstTokenMs: { type: Number },
  totalMs: { type: Number, required: true },
  shortfall: { type: BigInt, required: true },
} as const;
const accrual = {
  token: { type: String, required: true },
  nanoUsd: { type: BigInt, required: true },
  batch: { type: String, default: null },
} as const;
const definition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  kind: { type: String, enum: entryKinds, required: true },
  amount: { type: BigInt, required: true },
  createdAt: { type: Date, required: true },
  /** Random for each attempt to decide: whose entry this is, also when the answer to its insert was lost. */
  decider: { type: String, required: true },
  idempotencyKey: { type: String },
  reason: { type: String },
  transaction: { type: String },
  buyback: { type: accrual, _id: false },
  request: { type: request, _id: false },
  /** Its account's checkpoint counts it. Absent before. */
  checkpointed: { type: Boolean },
} as const;
const schema = new Schema(definition, { collection: "ledger", strict: "throw", versionKey: false });
export const accountIndex = { account: 1, createdAt: -1, _id: -1 } as const;
schema.index(accountIndex);
/** The accruals that no batch has. */
schema.index({ "buyback.token": 1 }, { partialFilterExpression: { "buyback.batch": { $type: "null" } } });
/** The entries that no checkpoint counts, also those of earlier versions. */
export const uncounted = { checkpointed: null };
export const uncountedIndex = { account: 1 } as const;
schema.index(uncountedIndex, { partialFilterExpression: uncounted });

export type StoredEntry = InferRawDocType<typeof definition>;

/** As it is outside: money with its unit, and nothing of how it was decided. */
export function toEntry(stored: StoredEntry): LedgerEntry {
  const { _id: id, account, kind, amount, createdAt, idempotencyKey, reason, request } = stored;
  const { transaction, buyback } = stored;
  return {
    id,
    account,
    kind,
    amountNanoUsd: amount,
    costNanoUsd: kind === "usage" || kind === "storage" ? -amount : 0n,
    createdAt,
    ...(idempotencyKey != null && { idempotencyKey }),
    ...(reason != null && { reason }),
    ...(transaction != null && { transaction }),
    ...(buyback && { buyback: { token: buyback.token, nanoUsd: buyback.nanoUsd, batch: buyback.batch ?? null } }),
    ...(request && { request: toRecord(request) }),
  };
}

function toRecord(stored: NonNullable<StoredEntry["request"]>): RequestRecord {
  const { attempts, status, usage, estimated, totalMs, shortfall } = stored;
  const { key, endpoint, model, upstream, error, queueMs, firstTokenMs } = stored;
  return {
    ...(key != null && { key }),
    ...(endpoint != null && { endpoint }),
    ...(model != null && { model }),
    ...(upstream != null && { upstream }),
    attempts,
    status,
    ...(error != null && { error }),
    usage,
    estimated,
    ...(queueMs != null && { queueMs }),
    ...(firstTokenMs != null && { firstTokenMs }),
    totalMs,
    shortfallNanoUsd: shortfall,
  };
}

export type Ledger = ReturnType<typeof createLedger>;

/** The collection `ledger`: append-only. Decisions are inserted through `collection`, which casts nothing. */
export function createLedger({ mongo }: { mongo: Mongo }) {
  const { model, collection, prepare } = openCollection<StoredEntry>(mongo, "ledger", schema);

  /** Entries that no failover can take back, by id. */
  async function standing(ids: readonly string[]): Promise<Map<string, StoredEntry>> {
    const found = collection.find({ _id: { $in: [...ids] } }, { readConcern: { level: "majority" } });
    return new Map((await answered(found.toArray())).map((entry) => [entry._id, entry]));
  }

  /**
   * As `standing`, of an entry that a transaction may have seen: it is not missed because it stands since a moment only.
   */
  async function seen(id: string): Promise<StoredEntry | undefined> {
    const found = collection.findOne({ _id: id }, { readConcern: { level: "linearizable" } });
    return (await answered(found)) ?? undefined;
  }

  /** The entry of one call. */
  async function entry(requestId: string): Promise<LedgerEntry | undefined> {
    if (!isRequestId(requestId)) return undefined;
    const stored = await model.findById(requestId).lean();
    return stored ? toEntry(stored) : undefined;
  }

  /** Newest first. */
  async function list(account: string, { kind, limit, after }: Page & { readonly kind?: EntryKind | undefined }) {
    const last = after === undefined ? undefined : await model.findOne({ _id: after, account }).lean();
    if (last === null) throw invalidValue("after", `after: this account has no entry '${after}'.`);
    const older = last && olderThan(last._id, last.createdAt);
    const filter = { account, ...(kind && { kind }), ...older };
    const stored = await model.find(filter).sort({ createdAt: -1, _id: -1 }).limit(limit).lean();
    return stored.map(toEntry);
  }

  return { model, collection, prepare, standing, seen, entry, list };
}
