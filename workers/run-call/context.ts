import type { Batches } from "#batches";
import type { Catalog, Model, Usage } from "#catalog";
import type { DetachedCalls } from "#detached-calls";
import type { ServiceError } from "#errors";
import type { Files, ProviderJob } from "#files";
import type { Cancellations, PaidCall, Replies, Reply } from "#jobs";
import type { JsonObject } from "#json";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { EventLogs, StoredResponses } from "#stored-responses";
import type { Counting } from "../counting/index.ts";
import { Aborted, type Running } from "../running.ts";
import type { DeliveryTrace, WorkTrace } from "../tracing/call-trace.ts";
import type { AttemptRecord, Target, Upstreams } from "../upstreams/index.ts";

export interface RunCallDeps {
  readonly catalog: Catalog;
  /** The fee of calls with own provider keys, in basis points of the list price. */
  readonly byokFeeBps: number;
  readonly upstreams: Upstreams;
  readonly money: Money;
  readonly files: Files;
  readonly detachedCalls: DetachedCalls;
  readonly batches: Batches;
  readonly responses: StoredResponses;
  readonly eventLogs: EventLogs;
  readonly replies: Replies;
  readonly cancellations: Cancellations;
  readonly running: Running;
  readonly counting: Counting;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One delivery of a job that carries a call. */
export interface Delivery {
  /** Counts from 1. A later delivery means that the worker of the previous one died or handed the call over. */
  readonly count: number;
  /** The job also carries other calls, so it was not removed if this call was withdrawn while it waited. */
  readonly isShared: boolean;
  /** Omitted if nothing is traced. */
  readonly trace?: DeliveryTrace | undefined;
}

/** One delivery of a call, as the work of a job sees it. */
export interface CallContext
  extends Pick<
    RunCallDeps,
    "catalog" | "upstreams" | "files" | "detachedCalls" | "responses" | "counting" | "clock" | "log"
  > {
  readonly payload: PaidCall;
  readonly account: string;
  /** The model of the first target. */
  readonly model: Model;
  /** The models that may serve the call, in the order in which they are tried. */
  readonly targets: readonly Target[];
  readonly request: Readonly<Record<string, unknown>>;
  /** Aborts when the work must stop. */
  readonly signal: AbortSignal;
  /** Aborts when the caller disconnects while a provider works. Work that finishes is still charged. */
  readonly disconnected: AbortSignal;
  readonly reply: Reply;
  /** Counts memory that the call takes until it ends. Throws 503 if there is no memory for it now. */
  readonly reserveMemory: (bytes: number) => void;
  readonly record: AttemptRecord;
  /** The provider job of an earlier delivery whose worker did not see it end. */
  readonly job: ProviderJob | undefined;
  /** Nano-USD that the ledger will charge for this usage, at the prices of the model that answered. */
  readonly chargeOf: (counted: CountedUsage) => bigint;
  /** Omitted if the call is not traced. */
  readonly trace?: WorkTrace | undefined;
}

/** Answers a call. Throws any error, or a `FailedWork` to report more than the error. */
export type CallHandler = (call: CallContext) => Promise<Answer>;
/** The work of a job, which counts the memory of its call itself. */
export type Work = (call: Omit<CallContext, "reserveMemory">) => Promise<Answer>;

export interface CountedUsage {
  readonly usage: Usage;
  /** The provider reported no usage. */
  readonly estimated: boolean;
}

export interface Answer extends CountedUsage {
  /** Input parameters, for models whose price depends on them. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** The whole body, in parts if it is long, or the last events of a stream, in the caller's format. */
  readonly text: string | readonly string[];
  /** Response headers, which are stored with a whole body under an `Idempotency-Key`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The final status of a response in the background, whose whole body this is. */
  readonly responseStatus?: string;
  /** A provider job is stored: another delivery could continue it. */
  readonly isResumable?: boolean;
}

interface FailureDetails {
  /** The usage to charge for a stream that ended early. */
  readonly counted?: CountedUsage | undefined;
  /** The events that close a stream in the caller's format, if it needs more than the error itself. */
  readonly closing?: (error: ServiceError) => string | undefined;
  /** The output so far of a response in the background. */
  readonly output?: readonly JsonObject[] | undefined;
  readonly isResumable?: boolean;
}

/** The reason why a call failed: the abort that ended it, else the error. */
export const failureReason = (signal: AbortSignal, error: unknown): unknown =>
  signal.reason instanceof Aborted ? signal.reason : error;

/** Carries details of failed work alongside its `cause`. */
export class FailedWork extends Error {
  override readonly name = "FailedWork";
  readonly details: FailureDetails;
  constructor(cause: unknown, details: FailureDetails = {}) {
    super("the work of a call failed", { cause });
    this.details = details;
  }
}
