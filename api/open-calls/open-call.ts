import type { Response } from "express";
import type { DetachedCalls, JobView, NewJob } from "#detached-calls";
import type { Files } from "#files";
import type { Codec } from "#formats";
import {
  type Frame,
  jobCatalog,
  type Outcome,
  type Pace,
  type PaidCall,
  type PaidJobName,
  type Pool,
  type QueuedJob,
  type Queues,
  type ReplyReader,
  type WorkerRegistry,
} from "#jobs";
import type { Keys, Slot } from "#keys";
import type { Leased, Money } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import type { Background } from "#platform/concurrency/background";
import type { Uses } from "#platform/uses";
import type { Refusals } from "#refusals";
import type { CallTrace } from "../call-trace.ts";
import type { Unread } from "../http/unread.ts";
import type { Deliveries } from "./deliveries.ts";

/** The end of a call, or the refusal of a request. */
export interface EndedCall {
  readonly endpoint: string;
  /** Set for an admitted call. */
  readonly admitted?: {
    readonly model: string;
    readonly totalMs: number;
    readonly firstEventMs: number | undefined;
    /** Missing if no worker reported it. */
    readonly providerMs: number | undefined;
  };
  readonly status: number;
  readonly code: string | undefined;
}

export interface OpenCallDeps extends Uses<"clock" | "log"> {
  readonly reader: ReplyReader;
  readonly queues: Queues;
  readonly registry: WorkerRegistry;
  readonly deliveries: Deliveries;
  readonly money: Money;
  readonly keys: Keys;
  readonly files: Files;
  readonly detachedCalls: DetachedCalls;
  readonly background: Background;
  readonly pingIntervalMs: number;
  /** Budget for the stream data that callers have not read yet. */
  readonly memory: ByteBudget;
  readonly unread: Unread;
  readonly observeCall: (call: EndedCall) => void;
  readonly refusals: Pick<Refusals, "noteFailure">;
}

/** An admitted call, before its job is on the queue. */
export interface Submission {
  readonly job: PaidJobName;
  readonly payload: Omit<PaidCall, "body">;
  /** The key's slot, and the tokens that were counted against its limit. */
  readonly slot: Slot;
  /** Set if the hold comes out of a lease. */
  readonly leased?: Leased;
  /** Upper limit of the tokens counted for the call, whatever the provider reports. */
  readonly maxTokens: number;
  /**
   * Unix milliseconds. A caller with an `Idempotency-Key` is answered 503 at this time, and can fetch the result later; the
   * caller of a job is answered 202.
   */
  readonly answerBy?: number;
  /** Set for a job: what is stored with it. */
  readonly detached?: Omit<NewJob, "job" | "payload">;
  /** Answers 202 with the job, or 200 with a response in the background. */
  readonly accept?: (job: JobView) => void;
  /**
   * A model that may answer bills reasoning that its stream does not show, so the worker reads on after the deadline for the
   * usage.
   */
  readonly hidesReasoning: boolean;
  readonly codec: Codec;
  readonly res: Response;
  /** The stream consists of bytes, which its frames carry in base64. */
  readonly isBinary?: true;
  /** Writes the job's answer if it is not the text itself. Rejects, before the head is sent, with the error to answer. */
  readonly write?: (text: string) => Promise<void>;
  /** Set if tracing is on. */
  readonly trace?: CallTrace;
  /** Deletes the files that the job read. */
  readonly cleanUp?: () => Promise<void>;
  /** Set if the answer goes to the response cache. */
  readonly recording?: Recording;
}

/** Takes what a call answers, for requests that want the same answer. */
export interface Recording {
  /** The headers that came with the first frame. */
  announce(headers: Readonly<Record<string, string>>): void;
  /** Whole events of a stream. */
  append(events: string): void;
  /** The end of the answer: of a stream its last events, else the parts of the whole text. */
  complete(parts: readonly string[], outcome: Outcome | undefined): void;
  /** Called when the call has ended, however it did. */
  end(): void;
  /** True if others waited for the answer a second ago. */
  isFollowed(): boolean;
  /** Resolves to true if others wait for the answer, so that the work must go on without the caller. */
  isAwaited(): Promise<boolean>;
}

type CallState =
  /** There is no job yet: its body may be on the way to object storage. */
  | { readonly kind: "preparing" }
  /** The job was added, or may have been. */
  | { readonly kind: "queued" }
  /** The caller disconnected. The job is removed, or the workers are notified. */
  | { readonly kind: "disconnected" }
  /** The hold is being released here; a frame may still come first. */
  | { readonly kind: "releasing" }
  /** The end of the answer is written. The call is over once the caller has received it or disconnects. */
  | { readonly kind: "answered"; readonly at: number; readonly status: number; readonly code?: string | undefined }
  | { readonly kind: "ended" };

/** An answer while it is written to its caller. */
export const writtenAnswer = (
  target: Pick<Submission, "codec" | "res" | "isBinary">,
  memory: ByteBudget,
  account: string,
  now: number,
) => ({
  ...target,
  /** Memory for bytes that the caller has not read yet. */
  unsent: memory.share(account),
  /** The worker was asked to wait until the caller has caught up. */
  isPaused: false,
  pace: (() => {}) as (pace: Pace) => void,
  /** Others get the answer too, so it does not wait for this caller. */
  isFollowed: () => false,
  /** A stream has carried something other than pings. */
  hasContent: false,
  /** Events of a stream that go to the socket together, at the end of the tick. */
  unwritten: "",
  lastWriteAt: now,
  /** Unix milliseconds; set for streams. */
  firstEventAt: undefined as number | undefined,
});

export type WrittenAnswer = ReturnType<typeof writtenAnswer>;

/** One paid call from its admission to its last byte. */
export const openCall = (submission: Submission, memory: ByteBudget, now: number) => ({
  ...submission,
  ...writtenAnswer(submission, memory, submission.payload.account, now),
  state: { kind: "preparing" } as CallState,
  unsubscribe: () => {},
  /** The attempt whose frames are being delivered. */
  attempt: undefined as string | undefined,
  nextSeq: 0,
  /** Pieces of a JSON answer that came in several frames, and their length as UTF-8, which is counted as they come. */
  parts: [] as string[],
  partBytes: 0,
  bodyStored: false,
  /** The job as it was stored. Maintenance enqueues it if this process does not. */
  storedJob: undefined as JobView | undefined,
  /** The job that carries the call. Once this is set, the registry counts the call, and a worker may have it. */
  queuedJob: undefined as Promise<QueuedJob> | undefined,
  usedTokens: 0,
  /** Unknown until a frame or an entry of the ledger gives it. */
  costNanoUsd: undefined as bigint | undefined,
  providerMs: undefined as number | undefined,
});

export type OpenCall = ReturnType<typeof openCall>;

export const poolOf = ({ job }: OpenCall): Pool => jobCatalog[job].pool;

/** The answer is stored, under an `Idempotency-Key` or as a job: a disconnect ends nothing, and the cost stands. */
export const isStored = ({ payload }: OpenCall): boolean =>
  payload.idempotencyKeyId !== undefined || payload.detached !== undefined;

/** No caller waits for the answer: the caller disconnected, or was answered that the result can be fetched later. */
export const isDetached = ({ res }: Pick<OpenCall, "res">): boolean => res.closed || res.writableEnded;

/** The kernel has taken all bytes of the answer. Node says so only in a later tick. */
export const isDelivered = ({ res }: Pick<OpenCall, "res">): boolean =>
  res.writableFinished || (res.writableEnded && res.writableLength === 0 && res.socket?.writable === true);

/** Keeps a piece of a JSON answer. */
export function keepPart(call: OpenCall, part: string): void {
  call.parts.push(part);
  call.partBytes += Buffer.byteLength(part);
}

/** Nothing that comes now changes how the call ends. */
export const isFinished = ({ state }: OpenCall): boolean => state.kind === "answered" || state.kind === "ended";

/**
 * The worker ends a call at its deadline; the API does so only if no frame has come by this time. The delivered part of a
 * stream is charged with its input, which the provider may take 10 s to count. If a model hides its reasoning, the worker
 * first reads on for the usage.
 */
export function lastFrameAt({ payload, hidesReasoning, hasContent }: OpenCall): number {
  if (!payload.stream) return payload.deadlineAt + 2_000;
  if (hidesReasoning) return payload.deadlineAt + 40_000;
  return payload.deadlineAt + (hasContent ? 12_000 : 4_000);
}

/**
 * Returns true if the frame belongs to the attempt that is being delivered. A later delivery that finds an answer stored
 * under a key sends it again from its beginning.
 */
export function startOrContinueAttempt(call: OpenCall, { attempt, seq }: Frame): boolean {
  if (attempt === undefined || attempt === call.attempt) return true;
  if (call.attempt !== undefined && !(isStored(call) && seq === 0)) return false;
  call.attempt = attempt;
  call.nextSeq = 0;
  call.parts = [];
  call.partBytes = 0;
  return true;
}
