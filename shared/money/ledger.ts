import { type ClientSession, type Collection, Schema } from "mongoose";
import type { Usage } from "#catalog";
import { type DocumentOf, findPage, openCollection, type Page, scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { type Attempt, attemptsOf, type StoredAttempts } from "./attempts.ts";

const requestId = /^req_[0-9A-Za-z]{1,64}$/;

/** A request id becomes part of a path in an update, so a dot or a dollar sign in it would address another field. */
export function assertRequestId(id: string): void {
  if (!requestId.test(id)) throw new TypeError(`not a request id: ${JSON.stringify(id)}`);
}

export const entryKinds = ["credit", "adjustment", "usage", "storage", "refund", "payout"] as const;
export type EntryKind = (typeof entryKinds)[number];

export const refundPrefix = "refund:";
export const refundOf = (requestId: string): string => `${refundPrefix}${requestId}`;

export const statuses = ["succeeded", "failed", "cancelled"] as const;
/** The end of a call. The sweeper knows only its hold, and neither key, endpoint nor model. */
const request = {
  key: { type: String },
  endpoint: { type: String },
  /** The id of the response, unless it can be derived from the request's. */
  answerId: { type: String },
  /** Missing if no worker took the call, and in older entries, as is the next field. */
  streamed: { type: Boolean },
  /** The reason why the model stopped, in the terms of the chat format. */
  finishReason: { type: String },
  model: { type: String },
  /** The id of the batch whose line the call is. */
  batch: { type: String },
  /** The caller's id of the conversation, the caller's id of its user, and the caller's tags. */
  sessionId: { type: String },
  user: { type: String },
  tags: { type: [String], default: undefined },
  upstream: { type: String },
  /** Typed as `StoredAttempts`. */
  attempts: { type: Schema.Types.Mixed, required: true },
  status: { type: String, enum: statuses, required: true },
  /** The code of the error in the response. */
  error: { type: String },
  usage: { type: Map, of: Number, required: true },
  /** Set if the provider reported no usage. */
  estimated: { type: Boolean, required: true },
  queueMs: { type: Number },
  firstTokenMs: { type: Number },
  totalMs: { type: Number, required: true },
  /** The part of the cost above the hold. It is not charged. */
  shortfall: { type: BigInt, required: true },
  /** The operator's cost of the upstream that served the call, if the catalog contains it. */
  upstreamCost: { type: BigInt },
  /** Set if the call last ran with a provider key of the account: its id, and what the call would have cost otherwise. */
  byok: { type: { key: { type: String, required: true }, list: { type: BigInt, required: true } }, _id: false },
  /** The amount that the prompt cache took off the cost, at the prices of the time; negative if its writes cost more than its reads saved. */
  saved: { type: BigInt },
} as const;
const accrual = {
  token: { type: String, required: true },
  nanoUsd: { type: BigInt, required: true },
  batch: { type: String, default: null },
} as const;
export const entryDefinition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  kind: { type: String, enum: entryKinds, required: true },
  amount: { type: BigInt, required: true },
  createdAt: { type: Date, required: true },
  /** Random for each capture. It shows which capture made the entry, even if the response to the insert was lost. */
  decider: { type: String, required: true },
  idempotencyKey: { type: String },
  /** The lease from which the call's hold was drawn. */
  lease: { type: String },
  /**
   * Set if the response of a charged call is neither streamed nor stored: the API instance that has to deliver it, and
   * the call's number there (`undelivered.ts`).
   */
  reply: { type: { instance: { type: String, required: true }, number: { type: Number, required: true } }, _id: false },
  reason: { type: String },
  transaction: { type: String },
  /** The names under which the tags of the call are summed. Missing if they are the tags themselves. */
  countedTags: { type: [String], default: undefined },
  buyback: { type: accrual, _id: false },
  request: { type: request, _id: false },
  /** Set after the account's checkpoint has counted this entry. */
  checkpointed: { type: Boolean },
} as const;
export const accountIndex = { account: 1, createdAt: -1, _id: -1 } as const;
/** Covers all accounts, for the usage of a day and an operator's search. */
export const timeIndex = { createdAt: -1, _id: -1 } as const;
/** The calls of a key, newest first. Includes their costs, so that sums do not read entries. */
export const keyIndex = { account: 1, "request.key": 1, createdAt: -1, _id: -1, amount: 1 } as const;
export const ofKeys = { "request.key": { $exists: true } };
export const modelIndex = { account: 1, "request.model": 1, createdAt: -1, _id: -1 } as const;
export const ofModels = { "request.model": { $exists: true } };
export const sessionIndex = { account: 1, "request.sessionId": 1, createdAt: -1, _id: -1 } as const;
export const withSession = { "request.sessionId": { $exists: true } };
export const userIndex = { account: 1, "request.user": 1, createdAt: -1, _id: -1 } as const;
export const withUser = { "request.user": { $exists: true } };
export const tagIndex = { account: 1, "request.tags": 1, createdAt: -1, _id: -1 } as const;
export const withTags = { "request.tags": { $exists: true } };
/** The calls with tags of all accounts, for their usage of an hour. */
export const taggedIndex = { createdAt: -1 } as const;
export const withAnswerId = { "request.answerId": { $exists: true } };
export const answerIndex = { account: 1, "request.answerId": 1 } as const;
/** Unsuccessful calls are rare. */
export const unsuccessful = { "request.status": { $in: ["failed", "cancelled"] } };
export const statusIndex = { account: 1, "request.status": 1, createdAt: -1, _id: -1 } as const;
export const anyStatusIndex = { "request.status": 1, createdAt: -1, _id: -1 } as const;
export const withError = { "request.error": { $exists: true } };
export const errorIndex = { "request.error": 1, createdAt: -1, _id: -1 } as const;
/** Includes the costs of leases, so that sums do not read entries. */
export const leaseIndex = { lease: 1, account: 1, amount: 1 } as const;
/** The entries that no checkpoint counts. */
export const uncounted = { checkpointed: null };
export const uncountedIndex = { account: 1 } as const;

/** Checkpointed calls and uploads, which may be archived. Ids of other kinds must remain taken in the ledger. */
export const archivable = { kind: { $in: ["usage", "storage"] }, checkpointed: true };
export const archiveIndex = { createdAt: 1 } as const;

export type StoredEntry = DocumentOf<typeof entryDefinition>;
type StoredRequest = Omit<
  NonNullable<StoredEntry["request"]>,
  "attempts" | "usage" | "tags" | "shortfall" | "upstreamCost" | "byok" | "saved"
>;
/** Optional fields are missing in the database, never null. */
type Absent<Value> = null extends Value ? Exclude<Value, null> | undefined : Value;

export type RequestRecord = { readonly [Name in keyof StoredRequest]: Absent<StoredRequest[Name]> } & {
  readonly attempts: readonly Attempt[];
  readonly usage: Usage;
  readonly tags?: readonly string[] | undefined;
  readonly shortfallNanoUsd: bigint;
  readonly upstreamCostNanoUsd?: bigint | undefined;
  /** Set if the call ran with a provider key of the account. The charge is its fee. */
  readonly byok?: ByokRecord | undefined;
  readonly savedNanoUsd?: bigint | undefined;
};

export interface ByokRecord {
  /** The id of the provider key. */
  readonly key: string;
  /** The cost of the call with the operator's key. */
  readonly listNanoUsd: bigint;
}

/** One captured movement. Immutable, except for the batch of its accrual and the mark of a checkpoint. */
export type LedgerEntry = ReturnType<typeof toEntry>;

export function toEntry(stored: StoredEntry) {
  const { account, kind, amount, createdAt, idempotencyKey, reason, transaction, buyback, request } = stored;
  return {
    /**
     * The request id, `credit:<account>:<idempotency key>` or `refund:<request id>`. For an on-chain payment, the hash
     * of its message; for a payout, `payout:<account>:<signature>`; for a top-up, `topup:<signature>`.
     */
    id: stored._id,
    account,
    kind,
    /** Positive for a credit, negative for usage. */
    amountNanoUsd: amount,
    /** The cost of a call or an upload; 0 for other kinds. */
    costNanoUsd: kind === "usage" || kind === "storage" ? -amount : 0n,
    createdAt,
    ...(idempotencyKey != null && { idempotencyKey }),
    ...(reason != null && { reason }),
    /** The signature of its transaction on chain. */
    ...(transaction != null && { transaction }),
    /** The part of a charge that buys back a token. Negative in the entry of a refund. */
    ...(buyback && { buyback: { token: buyback.token, nanoUsd: buyback.nanoUsd, batch: buyback.batch ?? null } }),
    ...(request && { request: toRecord(request) }),
  };
}

function toRecord({
  attempts,
  shortfall,
  upstreamCost,
  byok,
  saved,
  ...record
}: NonNullable<StoredEntry["request"]>): RequestRecord {
  return {
    ...(record as Omit<RequestRecord, "attempts" | "shortfallNanoUsd">),
    attempts: attemptsOf(attempts as StoredAttempts, record),
    shortfallNanoUsd: shortfall,
    ...(upstreamCost != null && { upstreamCostNanoUsd: upstreamCost }),
    ...(byok && { byok: { key: byok.key, listNanoUsd: byok.list } }),
    ...(saved != null && { savedNanoUsd: saved }),
  };
}

interface Refusal {
  readonly index: number;
  readonly code: number;
  readonly errmsg?: string;
}

interface WriteAnswer {
  readonly writeErrors?: readonly Refusal[];
  readonly writeConcernError?: { readonly errmsg: string };
  /** Identifies the term of the primary. Missing in an answer of `mongos`. */
  readonly electionId?: { toHexString(): string };
}

const journaled = { w: "majority", j: true } as const;
/** The primary has the write in memory. */
const inMemory = { w: 1, j: false } as const;

/** An entry's id, and the account that determines its shard. */
export type EntryKey = Pick<StoredEntry, "_id" | "account">;

/** Prevents the planner from choosing an index that begins with the account. */
export const byId = { _id: 1 } as const;

export type Ledger = ReturnType<typeof createLedger>;

/** The collection `ledger`, which is append-only. `insert` and `collection` do not cast. */
export function createLedger({ mongo }: Uses<"mongo">) {
  const { model, collection } = openCollection<StoredEntry>(mongo, "ledger", entryDefinition);

  /** Uses a command, because the driver's `insertMany` iterates over each entry three times. */
  async function write(command: object): Promise<{ refusals: ReadonlyMap<number, Refusal>; term: string | undefined }> {
    const answer = await mongo.db.command(command, { ignoreUndefined: true });
    const { writeErrors = [], writeConcernError, electionId } = answer as WriteAnswer;
    if (writeConcernError) throw new Error(`the write concern failed: ${writeConcernError.errmsg}`);
    return {
      refusals: new Map(writeErrors.map((refusal) => [refusal.index, refusal])),
      term: electionId?.toHexString(),
    };
  }

  const insertOf = (entries: readonly StoredEntry[], writeConcern: typeof journaled | typeof inMemory) =>
    write({ insert: collection.collectionName, documents: entries, ordered: false, writeConcern });

  /**
   * Inserts as many entries as possible, and returns the refusals by index. Throws when the outcome of every entry is
   * unknown.
   */
  const insert = async (entries: readonly StoredEntry[]) => (await insertOf(entries, journaled)).refusals;

  /**
   * Like `insert`, but does not wait for the journal: a crash of the primary may lose the entries until `journal` has
   * resolved to the same term.
   */
  const insertInMemory = (entries: readonly StoredEntry[]) => insertOf(entries, inMemory);

  /**
   * Resolves once a majority has journaled everything that the primary has written so far, to the primary's term. An update
   * that matches nothing waits for the last write of the server. Behind `mongos` that is the server of the account, and its
   * term is not reported: resolves to undefined.
   */
  async function journal(account = ""): Promise<string | undefined> {
    const nothing = { q: { _id: "", account }, u: { $set: { checkpointed: true } }, hint: byId };
    const command = { update: collection.collectionName, updates: [nothing], writeConcern: journaled };
    return (await write(command)).term;
  }

  /** Matches ids of one or several accounts. Only the shards of these accounts are queried. */
  const among = (keys: readonly EntryKey[]) => ({
    account: { $in: [...new Set(keys.map(({ account }) => account))] },
    _id: { $in: keys.map(({ _id }) => _id) },
  });

  /** Reads entries by id. Returns only entries that no failover can roll back. */
  async function readCommitted(keys: readonly EntryKey[]): Promise<Map<string, StoredEntry>> {
    const found = collection.find(among(keys), { hint: byId, readConcern: { level: "majority" } });
    return new Map((await found.toArray()).map((entry) => [entry._id, entry]));
  }

  /** Reads entries by id, in a transaction. */
  const readIn = (keys: readonly EntryKey[], session: ClientSession | undefined) =>
    collection.find(among(keys), { hint: byId, ...(session && { session }) });

  /** Also sees an entry that was just committed, which a majority read may miss. */
  async function readLatest({ account, _id }: EntryKey): Promise<StoredEntry | undefined> {
    const found = collection.findOne({ account, _id }, { hint: byId, readConcern: { level: "linearizable" } });
    return (await found) ?? undefined;
  }

  async function sumLeases(leases: readonly EntryKey[], session?: ClientSession): Promise<Map<string, bigint>> {
    const account = { $in: [...new Set(leases.map((lease) => lease.account))] };
    const lease = { $in: leases.map(({ _id }) => _id) };
    const sums = collection.aggregate<{ _id: string; amount: bigint }>(
      [{ $match: { account, lease } }, { $group: { _id: "$lease", amount: { $sum: "$amount" } } }],
      { hint: leaseIndex, ...(session && { session }) },
    );
    return new Map((await sums.toArray()).map(({ _id, amount }) => [_id, -amount]));
  }

  /** Returns the entry of one call once it is captured. */
  async function entry(account: string, id: string): Promise<LedgerEntry | undefined> {
    if (!requestId.test(id)) return undefined;
    const stored = await model.findOne({ account, _id: id }).hint(byId).lean();
    return stored ? toEntry(stored) : undefined;
  }

  /** The models of calls that have ended, by request id. */
  async function modelsOf(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const projection = { "request.model": 1 } as const;
    const found = collection.find({ account, _id: { $in: [...ids] } }, { hint: byId, projection });
    return new Map(
      (await found.toArray()).flatMap(({ _id, request }) => (request?.model ? [[_id, request.model]] : [])),
    );
  }

  /** Like `entry`, but without the account, for operators. */
  async function findEntry(id: string): Promise<LedgerEntry | undefined> {
    if (!requestId.test(id)) return undefined;
    const stored = await model.findOne({ _id: id }, undefined, scatter("operator")).lean();
    return stored ? toEntry(stored) : undefined;
  }

  return {
    model,
    collection,
    insert,
    insertInMemory,
    journal,
    readCommitted,
    readIn,
    readLatest,
    sumLeases,
    entry,
    modelsOf,
    findEntry,
    list: listEntries(collection),
  };
}

/** Newest first. Throws 400 for an unknown `after`. */
export const listEntries =
  (collection: Collection<StoredEntry>) =>
  async (account: string, { kind, ...page }: Page & { readonly kind?: EntryKind | undefined }) => {
    const query = { unknown: "this account has no entry", owner: { account }, filter: { ...(kind && { kind }) } };
    return (await findPage(collection, page, query)).map(toEntry);
  };
