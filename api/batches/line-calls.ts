import { type Lines, lineIdOf, type ParsedLine, type StoredBatch, type StoredLine } from "#batches";
import { type ErrorFields, noCapacity, ServiceError, toServiceError } from "#errors";
import {
  type Frame,
  isTextPool,
  jobCatalog,
  type PaidCall,
  type QueuedJob,
  type Queues,
  type ReplyReader,
} from "#jobs";
import type { Caller, Slot } from "#keys";
import type { Leased } from "#money";
import { sleep } from "#platform/clock";
import type { Background } from "#platform/concurrency/background";
import { newRequestId } from "#platform/ids";
import { type AdmissionDeps, admit, isBudgeted } from "../admission/admit.ts";
import type { Target } from "../admission/targets.ts";
import { payloadOf } from "../call-payload.ts";
import type { PaidRoute } from "../paid-route.ts";
import type { Deferred, ProviderLines } from "./provider-lines.ts";

/** A line may wait this long for a worker. Then it is tried again. */
const queueMs = 10 * 60_000;
const slotMarginMs = 10_000;
/** A worker gets this long to write the last frame of a call whose job is lost. */
const lastFramesMs = 1_000;
const maxInlineBodyBytes = 64 * 1024;

export interface LineCallDeps extends AdmissionDeps {
  readonly queues: Queues;
  readonly reader: ReplyReader;
  readonly background: Background;
  readonly callTimeoutMs: number;
  readonly publicUrl: () => string;
  readonly lines: Pick<Lines, "storeError">;
}

/** The call of a line that this instance has admitted. */
export interface LineCall {
  readonly line: StoredLine;
  readonly slot: Slot;
  readonly leased: Leased | undefined;
  readonly payload: Omit<PaidCall, "body">;
  /** The JSON of its body, until it is on the queue. */
  text: string;
  readonly maxTokens: number;
  job: Promise<QueuedJob> | undefined;
  unsubscribe: () => void;
  isEnded: boolean;
}

/** Called once when a call has ended and its result is stored, with what the ledger says that it cost. */
type OnEnd = (costNanoUsd: bigint) => void;

/** A line as it stands in the file. */
export interface ReadLine {
  readonly line: number;
  readonly byte: number;
  readonly bytes: number;
  readonly parsed: ParsedLine;
}

/** The fields of a payload whose line runs in a provider's batch: only there, and for longer. */
const deferredFields = ({ upstream, discountBps, deadlineAt }: Deferred, batch: NonNullable<PaidCall["batch"]>) => ({
  upstreams: [upstream],
  fallbacks: undefined,
  deadlineAt,
  batch: { ...batch, upstream, discountBps },
});

/**
 * The calls of lines: the admission of every paid call, without a request. Results are stored by the worker, so the frames
 * that come here only tell that a call has ended, and what it cost.
 */
export function createLineCalls(deps: LineCallDeps) {
  const { keys, queues, reader, money, files, background, clock, instance, callTimeoutMs } = deps;

  /** The calls that are on a queue, or about to be, by request id. */
  const open = new Map<string, { readonly batch: StoredBatch; readonly call: LineCall; readonly onEnd: OnEnd }>();

  /** Ends what the call took. Does nothing for one that has ended. */
  function end(call: LineCall, costNanoUsd: bigint, usedTokens = 0): void {
    if (call.isEnded) return;
    call.isEnded = true;
    open.delete(call.payload.requestId);
    call.unsubscribe();
    call.leased?.end(costNanoUsd);
    background.run(
      "the slot of a key could not be released",
      keys.release(call.slot, { usedTokens: Math.min(usedTokens, call.maxTokens), costNanoUsd }),
    );
  }

  /**
   * Throws what a caller of the endpoint would be answered. Takes nothing then. With `providerLines`, the line may be put into
   * a provider's batch, for which nothing is held yet.
   */
  async function admitLine(
    route: PaidRoute,
    batch: StoredBatch,
    caller: Caller,
    { parsed, ...place }: ReadLine,
    providerLines?: ProviderLines,
  ): Promise<LineCall> {
    const { call, customId, text } = parsed;
    const requestId = newRequestId();
    const acceptedAt = clock.now();
    const queuedUntil = acceptedAt + queueMs;
    const deadlineAt = queuedUntil + callTimeoutMs;
    const slot = await keys.takeSlot(caller, { requestId, ttlMs: deadlineAt - acceptedAt + slotMarginMs });
    try {
      const isLeased = isTextPool(jobCatalog[route.job].pool) && !isBudgeted(caller);
      let deferred: Deferred | undefined;
      const leaseFor = (target: Target) => {
        deferred = providerLines?.place(target, call);
        return deferred?.leases;
      };
      const asked = { requestId, slot, call, route, deadlineAt, isLeased, isInBatch: true, leaseFor };
      const admitted = await admit(deps, asked);
      const id = lineIdOf(batch._id, place.line);
      const inBatch = { id: batch._id, line: id, queuedUntil, runMs: callTimeoutMs };
      const payload = {
        ...payloadOf(deps, route, [], slot, batch.tags ? { ...call, tags: batch.tags } : call, admitted),
        acceptedAt,
        deadlineAt,
        batch: inBatch,
        ...(deferred && deferredFields(deferred, inBatch)),
      };
      const { leased, heldNanoUsd, maxTokens } = admitted;
      const line: StoredLine = {
        ...place,
        _id: id,
        account: batch.account,
        batch: batch._id,
        customId,
        requestId,
        model: payload.model,
        tries: 1,
        instance,
        deadlineAt: new Date(payload.deadlineAt),
        held: heldNanoUsd,
        ...(leased && { lease: leased.lease }),
        ...(deferred && { providerBatch: deferred.providerBatch, payload: JSON.stringify(payload) }),
      };
      return { line, slot, leased, payload, text, maxTokens, job: undefined, unsubscribe: () => {}, isEnded: false };
    } catch (error) {
      await keys.release(slot, { refusedBy: toServiceError(error), costNanoUsd: 0n });
      throw error;
    }
  }

  /** Puts a call on its queue. */
  async function submit(batch: StoredBatch, route: PaidRoute, call: LineCall, onEnd: OnEnd): Promise<void> {
    const { payload, text, line } = call;
    const { requestId } = payload;
    open.set(requestId, { batch, call, onEnd });
    call.unsubscribe = reader.expect(requestId, (frame) => onFrame(batch, call, frame, onEnd));
    const bytes = Buffer.byteLength(text);
    const isStored = bytes > maxInlineBodyBytes;
    try {
      if (isStored) await files.putBody(requestId, text);
      const body = isStored ? { stored: true as const, bytes } : { json: text };
      call.job = queues.enqueueLine(route.job, { ...payload, body });
      await call.job;
      call.text = "";
    } catch (cause) {
      onEnd(await giveUp(batch, line, noCapacity("The queue is unavailable.", 5, cause), call));
    }
  }

  function onFrame(batch: StoredBatch, call: LineCall, { kind, data, outcome }: Frame, onEnd: OnEnd): void {
    if (kind === "chunk" || call.isEnded) return;
    if (outcome?.undecided) {
      const error = new ServiceError(JSON.parse(data) as ErrorFields);
      background.run("an invalid line could not be ended", giveUp(batch, call.line, error, call).then(onEnd));
      return;
    }
    const costNanoUsd = BigInt(outcome?.cost ?? "0");
    end(call, costNanoUsd, outcome?.tokens ?? 0);
    onEnd(costNanoUsd);
  }

  /**
   * Ends the current try of a line that no worker will end: captures zero, and stores the error. If a worker was faster, its
   * result stands. Resolves with the cost that the ledger has.
   */
  async function giveUp(
    { key, endpoint, tags }: StoredBatch,
    { _id, account, requestId, model, held, lease }: StoredLine,
    error: ServiceError,
    call?: LineCall,
  ): Promise<bigint> {
    let costNanoUsd = 0n;
    if (held > 0n) {
      const hold = { account, requestId, key, endpoint, model, heldNanoUsd: held, lease, tags, totalMs: 0 };
      const { entry } = await money.release(hold, { status: "failed", error: error.code });
      costNanoUsd = entry.costNanoUsd;
    }
    if (costNanoUsd === 0n) await deps.lines.storeError({ account, line: _id, requestId }, error.fields());
    if (call) end(call, costNanoUsd, 0);
    return costNanoUsd;
  }

  /** Gives up the calls whose jobs Redis has lost, once the frames that their workers had written are read. */
  async function giveUpLost(): Promise<void> {
    const lost: string[] = [];
    for (const [requestId, { call }] of open) {
      const job = await call.job?.catch(() => undefined);
      if (job && !(await queues.isPending(job.pool, job.id))) lost.push(requestId);
    }
    if (lost.length === 0) return;
    await sleep(clock, lastFramesMs);
    await reader.caughtUp();
    for (const { batch, call, onEnd } of lost.flatMap((requestId) => open.get(requestId) ?? []))
      onEnd(await giveUp(batch, call.line, noCapacity("The queue lost this call."), call));
  }

  return {
    admitLine,
    submit,
    end,
    giveUp,
    /** Finds the calls whose jobs Redis has lost. */
    findLost: () => background.run("lost lines of batches could not be ended", giveUpLost()),
    /** Gives back what a call took that is not submitted. Only a hold of its own needs an entry of the ledger for that. */
    async withdraw(batch: StoredBatch, call: LineCall): Promise<void> {
      if (call.leased || call.line.held === 0n) end(call, 0n);
      else await giveUp(batch, call.line, noCapacity("The line has to wait."), call);
    },
    isOpen: (requestId: string): boolean => open.has(requestId),
  };
}

export type LineCalls = ReturnType<typeof createLineCalls>;
