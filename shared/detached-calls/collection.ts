import type { Usage } from "#catalog";
import type { ErrorFields } from "#errors";
import type { PaidCall, PaidJobName } from "#jobs";
import type { ByokRecord } from "#money";
import { dayMs } from "#platform/clock";
import type { DocumentOf } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { openJobsIndex } from "./open-jobs.ts";
import type { PackedText } from "./packed-text.ts";

export const callStatuses = ["queued", "in_progress", "completed", "failed", "cancelled", "expired"] as const;
export type CallStatus = (typeof callStatuses)[number];
export const openStatuses: readonly CallStatus[] = ["queued", "in_progress"];
export const isEnded = ({ status }: { readonly status: CallStatus }): boolean => !openStatuses.includes(status);

export interface StoredAnswer {
  readonly text: string;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly costNanoUsd: bigint;
  /** Set if a provider key of the account served the call. */
  readonly byok?: ByokRecord;
  /** The model that served the call, if there was a choice. */
  readonly model?: string;
  /** The status that a response of the Responses format has at its end. */
  readonly responseStatus?: string;
  /** Headers of the response, such as `x-ignored-params`. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type PackedAnswer = Omit<StoredAnswer, "text"> & PackedText;

/** Why a call failed. `status` is that of the call if the ledger does not have a successful entry for it. */
export interface StoredError {
  readonly fields: ErrorFields;
  readonly status: Extract<CallStatus, "failed" | "cancelled" | "expired">;
}

/** A response in the background (docs/api/background.md). */
export interface BackgroundResponse {
  /** JSON of the response as it was accepted. */
  readonly response: string;
  /** Its events are kept, so that its stream can be read more than once. */
  readonly keepsEvents: boolean;
  /** How long everything is kept after the end. Then all of it is deleted. Defaults to 24 hours. */
  readonly keptMs?: number;
}

/** A job as it is submitted. */
export interface NewJob {
  readonly job: PaidJobName;
  readonly payload: PaidCall;
  readonly metadata: Readonly<Record<string, string>>;
  /** The format of the answer that the request asked for, for routes that convert what is stored. */
  readonly answerFormat?: string | undefined;
  readonly background?: BackgroundResponse | undefined;
  /** Unix milliseconds until which the call may wait for a worker. */
  readonly queuedUntil: number;
  /** The base address of the service, for the links in the job. */
  readonly publicUrl: string;
  /** Who receives the event of its end, in addition to the endpoints that subscribe to it (`x-xm-webhook`). */
  readonly callback?: string | undefined;
}

export const definition = {
  /** The request id. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  status: { type: String, enum: callStatuses, required: true },
  createdAt: { type: Date, required: true },
  /** The answer and the error are available until then. */
  expiresAt: { type: Date, required: true },
  answer: { type: Object },
  error: { type: Object },
  /** The following fields are those of jobs. */
  key: { type: String },
  endpoint: { type: String },
  model: { type: String },
  job: { type: String },
  payload: { type: Object },
  metadata: { type: Object },
  answerFormat: { type: String },
  background: { type: Object },
  /** The output of a response in the background that failed or was cancelled. */
  output: { type: Object },
  /** The events of a response in the background, and the number of the last one. */
  events: { type: Object },
  /** Everything is deleted then. */
  purgeAt: { type: Date },
  queuedUntil: { type: Date },
  deadlineAt: { type: Date },
  startedAt: { type: Date },
  /** The delivery that started the call. */
  startedBy: { type: String },
  /** Percent, as far as the provider has told. It is here because every poll reads the document anyway. */
  progress: { type: Number },
  endedAt: { type: Date },
  costNanoUsd: { type: BigInt },
  /** The time at which maintenance next looks at a job that has not ended. */
  dueAt: { type: Date },
  publicUrl: { type: String },
  callback: { type: String },
  /** Set with the end of a job until its event is recorded; maintenance does that from this time on. */
  eventDueAt: { type: Date },
} as const;
export type Stored = DocumentOf<
  typeof definition,
  {
    answer?: PackedAnswer;
    background?: BackgroundResponse;
    output?: PackedText;
    events?: PackedText & { readonly last: number };
    error?: StoredError;
    payload?: PaidCall;
    metadata?: Readonly<Record<string, string>>;
    job?: PaidJobName;
    status: CallStatus;
  }
>;

const daySeconds = dayMs / 1_000;

export const detachedCallsSchema = {
  module: "detached-calls",
  shardKeys: { detachedCalls: "account" },
  scatter: {
    "jobs that are due": "scheduled: jobs that should have ended, by a sparse index",
    "open jobs by account": "operators: a bounded number of keys of a partial index",
    "jobs with an event that is due": "scheduled: jobs whose process died after their end, by a sparse index",
  },
  migrations: [
    createCollections("detachedCalls", [
      {
        collection: "detachedCalls",
        indexes: [
          { key: { account: 1, createdAt: -1, _id: -1 } },
          { key: { account: 1, dueAt: 1 }, sparse: true },
          { key: { dueAt: 1 }, sparse: true },
          { key: { eventDueAt: 1 }, sparse: true },
          { key: openJobsIndex, partialFilterExpression: { status: { $in: [...openStatuses] } } },
          // A day longer than the result, so that a late caller learns that it has expired.
          { key: { expiresAt: 1 }, expireAfterSeconds: daySeconds },
          { key: { purgeAt: 1 }, expireAfterSeconds: 0, sparse: true },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;
