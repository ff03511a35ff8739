import type { Usage } from "#catalog";
import type { PackedText } from "#detached-calls";
import type { ErrorFields } from "#errors";
import type { ByokRecord } from "#money";
import { dayMs } from "#platform/clock";
import type { DocumentOf } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";

export const batchKinds = ["openai", "anthropic"] as const;
/** The format in which the batch was created: `/v1/batches` or `/v1/messages/batches`. */
export type BatchKind = (typeof batchKinds)[number];

export const batchStatuses = [
  "validating",
  "failed",
  "in_progress",
  "finalizing",
  "completed",
  "expired",
  "cancelling",
  "cancelled",
] as const;
export type BatchStatus = (typeof batchStatuses)[number];
/** The statuses of a batch that has lines to run or to record. */
export const runningStatuses: readonly BatchStatus[] = ["in_progress", "cancelling"];
export const openStatuses: readonly BatchStatus[] = ["validating", ...runningStatuses, "finalizing"];
export const isEnded = ({ status }: { readonly status: BatchStatus }): boolean => !openStatuses.includes(status);

/** Why a batch failed, with the number of the line, counted from 1. */
export interface LineProblem {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}

/** Why a line has no answer. `expired` and `cancelled`: it was not run. */
export type LineOutcome = "succeeded" | "failed" | "expired" | "cancelled";
export type Counts = Readonly<Record<LineOutcome, number>>;

export interface BatchUsage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

export const noCounts: Counts = { succeeded: 0, failed: 0, expired: 0, cancelled: 0 };
export const noUsage: BatchUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

/** An object in storage with results, in the order in which they were recorded. */
export interface ResultPart {
  readonly key: string;
  readonly bytes: number;
}

/** The next line that is not in flight yet. */
export interface Cursor {
  /** Counts from 0. */
  readonly line: number;
  readonly byte: number;
}

/** A request with an `Idempotency-Key`, and a hash of what it asks for. */
export interface IdempotentRequest {
  readonly key: string;
  readonly hash: string;
  readonly requestId: string;
}

export const batchDefinition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  key: { type: String, required: true },
  kind: { type: String, enum: batchKinds, required: true },
  endpoint: { type: String, required: true },
  inputFile: { type: String, required: true },
  status: { type: String, enum: batchStatuses, required: true },
  createdAt: { type: Date, required: true },
  /** Lines that have not begun by then are not run. */
  expiresAt: { type: Date, required: true },
  /** When each status began. */
  times: { type: Object, required: true },
  metadata: { type: Object, required: true },
  outputLifeSeconds: { type: Number },
  publicUrl: { type: String, required: true },
  callback: { type: String },
  /** The tags of its calls. */
  tags: { type: [String], default: undefined },
  /** The name of the model, if all lines name the same. */
  model: { type: String },
  lines: { type: Number, required: true },
  counts: { type: Object, required: true },
  usage: { type: Object, required: true },
  costNanoUsd: { type: BigInt, required: true },
  estimateNanoUsd: { type: BigInt, required: true },
  problems: { type: Array, required: true },
  cursor: { type: Object, required: true },
  /** Parts of the output file and of the error file. */
  outputs: { type: Array, required: true },
  failures: { type: Array, required: true },
  /** The lines whose results the last parts have. They are deleted after the parts were recorded. */
  recorded: { type: [Number], required: true },
  /** When a part was recorded last, or the turn of the batch came. */
  progressAt: { type: Date },
  /** How many batches of its lines at providers have ended. */
  providerEnds: { type: Number },
  outputFile: { type: String },
  errorFile: { type: String },
  /** Why no line begins at the moment: the code of the error that the next one would have. */
  paused: { type: String },
  pausedAt: { type: Date },
  /** The claim of the process that works at the batch, until `dueAt`. */
  claimedBy: { type: String },
  /** The time at which a process may claim the batch; missing once it has ended. */
  dueAt: { type: Date },
  eventDueAt: { type: Date },
  purgeAt: { type: Date },
  /** The request that created it. Its key is free after a day. */
  idempotency: { type: Object },
} as const;
export type StoredBatch = DocumentOf<
  typeof batchDefinition,
  {
    kind: BatchKind;
    status: BatchStatus;
    times: Readonly<Partial<Record<BatchStatus, Date>>>;
    metadata: Readonly<Record<string, string>>;
    counts: Counts;
    usage: BatchUsage;
    problems: readonly LineProblem[];
    cursor: Cursor;
    outputs: readonly ResultPart[];
    failures: readonly ResultPart[];
    recorded: readonly number[];
    idempotency?: IdempotentRequest;
  }
>;

export interface LineAnswer extends PackedText {
  readonly usage: Usage;
  readonly costNanoUsd: bigint;
  /** Set if a provider key of the account served the line. */
  readonly byok?: ByokRecord;
}

export const lineDefinition = {
  /** The id of the batch and the number of the line. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  batch: { type: String, required: true },
  line: { type: Number, required: true },
  customId: { type: String, required: true },
  /** Its place in the input file. */
  byte: { type: Number, required: true },
  bytes: { type: Number, required: true },
  /** The call of the current try. Each try has an id of its own. */
  requestId: { type: String, required: true },
  /** The first model that the call names. */
  model: { type: String, required: true },
  tries: { type: Number, required: true },
  /** The API instance that submitted the current try. */
  instance: { type: String, required: true },
  /** The current try has ended by then, or no worker knows it. */
  deadlineAt: { type: Date, required: true },
  /** The hold of the current try: its amount in nano-USD, and the lease from which it was drawn. */
  held: { type: BigInt, required: true },
  lease: { type: String },
  /** The next try begins then. There is no current one. */
  retryAt: { type: Date },
  /** The provider's batch in which the current try runs, and the JSON of its payload, without the body. */
  providerBatch: { type: String },
  payload: { type: String },
  answer: { type: Object },
  error: { type: Object },
} as const;
export type StoredLine = DocumentOf<typeof lineDefinition, { answer?: LineAnswer; error?: ErrorFields }>;

export const providerBatchStatuses = ["collecting", "ready", "submitting", "submitted", "ended"] as const;

/** Lines of one batch that run as a batch of an upstream's provider. */
export const providerBatchDefinition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  batch: { type: String, required: true },
  upstream: { type: String, required: true },
  /** The catalog's model. */
  model: { type: String, required: true },
  job: { type: String, required: true },
  status: { type: String, enum: providerBatchStatuses, required: true },
  createdAt: { type: Date, required: true },
  /** The provider's batch is cancelled then, so that the batch has time left for its lines. */
  giveUpAt: { type: Date, required: true },
  submittingAt: { type: Date },
  /** How often it was submitted. */
  tries: { type: Number, required: true },
  /** The provider's id for it. */
  providerId: { type: String },
  cancelledAt: { type: Date },
  claimedBy: { type: String },
  /** The time at which a process may claim it; missing once it has ended. */
  dueAt: { type: Date },
  purgeAt: { type: Date },
} as const;
export type StoredProviderBatch = DocumentOf<
  typeof providerBatchDefinition,
  { status: (typeof providerBatchStatuses)[number]; job: "chat" | "embeddings" }
>;

/** Batches stay listed this long after their end. */
export const keptMs = 30 * dayMs;

/** Batches that have not ended, by status, oldest first. */
export const openIndex = { status: 1, createdAt: 1, _id: 1 } as const;

export const batchesSchema = {
  module: "batches",
  shardKeys: { batches: "account", batchLines: "account", providerBatches: "account" },
  scatter: {
    "batches that are due": "scheduled: batches that no process works at, by a sparse index",
    "provider batches that are due": "scheduled: batches at providers to look at, by a sparse index",
    "provider batch of a lease": "scheduled: one id, for a lease that has expired",
    "batches that are worked at":
      "each instance, every two seconds while it has batches: 40 an instance, by a sparse index",
    "batches with an event that is due":
      "scheduled: batches whose process died after their end or pause, by a sparse index",
    "open batches": "scheduled, or an operator's: a bounded number of keys of a partial index and of a sparse one",
    "a batch of any account": "an operator's: one batch by its id",
  },
  migrations: [
    createCollections("batches and their lines", [
      {
        collection: "batches",
        indexes: [
          { key: { account: 1, createdAt: -1, _id: -1 } },
          { key: { account: 1, dueAt: 1 }, sparse: true },
          { key: { dueAt: 1 }, sparse: true },
          { key: openIndex, partialFilterExpression: { dueAt: { $exists: true } } },
          { key: { eventDueAt: 1 }, sparse: true },
          {
            key: { account: 1, "idempotency.key": 1 },
            unique: true,
            partialFilterExpression: { "idempotency.key": { $exists: true } },
          },
          { key: { purgeAt: 1 }, expireAfterSeconds: 0, sparse: true },
        ],
      },
      { collection: "batchLines", indexes: [{ key: { account: 1, batch: 1, line: 1 } }] },
    ]),
    createCollections("batches of lines at providers", [
      {
        collection: "providerBatches",
        indexes: [
          { key: { account: 1, batch: 1 } },
          { key: { dueAt: 1 }, sparse: true },
          { key: { purgeAt: 1 }, expireAfterSeconds: 0, sparse: true },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;
