import type { Catalog, Model, Usage } from "#catalog";
import type { ServiceError } from "#errors";
import type { Files, ProviderJob } from "#files";
import type { IdempotencyStore } from "#idempotency";
import type { Cancellations, PaidCall, Replies, Reply } from "#jobs";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { StoredResponses } from "#stored-responses";
import type { Counting } from "../counting/index.ts";
import { Aborted, type Running } from "../running.ts";
import type { DeliveryTrace, WorkTrace } from "../tracing/call-trace.ts";
import type { AttemptRecord, Target, Upstreams } from "../upstreams/index.ts";

export interface RunCallDeps {
  readonly catalog: Catalog;
  readonly upstreams: Upstreams;
  readonly money: Money;
  readonly files: Files;
  readonly idempotency: IdempotencyStore;
  readonly responses: StoredResponses;
  readonly replies: Replies;
  readonly cancellations: Cancellations;
  readonly running: Running;
  readonly counting: Counting;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One delivery of a job that carries a call. */
export interface Delivery {
  /** From 1. In a later one, the worker of the one before died. */
  readonly count: number;
  /** The job carries other calls too: it was not removed if this call was withdrawn while it waited. */
  readonly isShared: boolean;
  /** Absent where nothing is traced. */
  readonly trace?: DeliveryTrace | undefined;
}

/** One delivery of a call, as the work of a job sees it. */
export interface CallContext
  extends Pick<RunCallDeps, "catalog" | "upstreams" | "files" | "responses" | "counting" | "clock" | "log"> {
  readonly payload: PaidCall;
  readonly account: string;
  /** The model of the first target. */
  readonly model: Model;
  /** The models that may serve the call, in the order in which they are tried. */
  readonly targets: readonly Target[];
  readonly request: Readonly<Record<string, unknown>>;
  /** Aborts when the work is to stop. */
  readonly signal: AbortSignal;
  /** Aborts when the caller has disconnected while a provider works. What finishes is charged all the same. */
  readonly disconnected: AbortSignal;
  readonly reply: Reply;
  readonly record: AttemptRecord;
  /** Submitted by an earlier delivery whose worker did not see its end. */
  readonly job: ProviderJob | undefined;
  /** Nano-USD that the call is charged for this, by the model that answered: what the ledger will say. */
  readonly chargeOf: (counted: CountedUsage) => bigint;
  /** Absent where the call is not traced. */
  readonly trace?: WorkTrace | undefined;
}

/** The work of a job. Throws any error, or a `FailedWork` where more than the error is to be known. */
export type Work = (call: CallContext) => Promise<Answer>;

export interface CountedUsage {
  readonly usage: Usage;
  /** The provider reported no usage. */
  readonly estimated: boolean;
}

export interface Answer extends CountedUsage {
  /** For models whose price depends on their own parameters. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** The whole body, or the last events of a stream, in the caller's format. */
  readonly text: string;
  /** Stored with a whole body under an `Idempotency-Key`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A provider job is stored: another delivery could go on with it. */
  readonly isResumable?: boolean;
}

interface FailureDetails {
  /** What a stream that ended early is charged for. */
  readonly counted?: CountedUsage | undefined;
  /** What closes a stream in the caller's format, where that is more than the error itself. */
  readonly closing?: (error: ServiceError) => string | undefined;
  readonly isResumable?: boolean;
}

/** Why a call failed: the abort that ended it, else the error. */
export const failureReason = (signal: AbortSignal, error: unknown): unknown =>
  signal.reason instanceof Aborted ? signal.reason : error;

/** What is to be known of failed work beside its `cause`. */
export class FailedWork extends Error {
  override readonly name = "FailedWork";
  readonly details: FailureDetails;
  constructor(cause: unknown, details: FailureDetails = {}) {
    super("the work of a call failed", { cause });
    this.details = details;
  }
}
