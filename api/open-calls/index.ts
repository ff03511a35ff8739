/**
 * The paid calls that this process answers, from the job on its queue to the last byte for the caller. A call ends with a
 * frame from its worker, at its deadline, on a disconnect, or at a shutdown.
 *
 * An error is answered only once a cost of zero has been captured, or the captured cost has been refunded.
 */

import type { JobView, NewJob } from "#detached-calls";
import { type ErrorFields, generationInProgress, noCapacity, ServiceError, toServiceError } from "#errors";
import type { Frame } from "#jobs";
import { sleep } from "#platform/clock";
import { createCallRegistry, shuttingDown } from "./call-registry.ts";
import { frameLost, jobLost, noMemory, outOfTime, paused, runTwice } from "./failures.ts";
import {
  isDelivered,
  isDetached,
  isFinished,
  isStored,
  keepPart,
  lastFrameAt,
  type OpenCall,
  type OpenCallDeps,
  openCall,
  poolOf,
  type Submission,
  startOrContinueAttempt,
} from "./open-call.ts";
import { createReleaseHold } from "./release-hold.ts";
import { checkPause, writeError, writeEvents, writeFinal, writeOtherwise, writePing } from "./write-answer.ts";

/** Larger bodies go to object storage, not into the job. */
const maxInlineBodyBytes = 64 * 1024;
/** A worker gets this long to write the last frames of a call whose job is lost. */
const lastFramesMs = 1_000;
/** At a shutdown, a caller who has had this long to read an answer has disconnected. */
const readMs = 2_000;
/** A stopping process waits this long for the holds of its calls to be released. */
const lastReleasesMs = 10_000;

export { shuttingDown } from "./call-registry.ts";
export { createDeliveries } from "./deliveries.ts";
export { type EndedCall, type Recording, type WrittenAnswer, writtenAnswer } from "./open-call.ts";
export { checkPause, endEvents, writeError, writeEvents, writePing } from "./write-answer.ts";

export function createOpenCalls(deps: OpenCallDeps) {
  const { reader, queues, registry, deliveries, money, files, clock, log } = deps;
  const releaseHold = createReleaseHold(deps);

  const background = (what: string, call: OpenCall, work: Promise<unknown>) =>
    deps.background.run(what, work, { requestId: call.payload.requestId, ...call.trace?.span.ids });

  const open = createCallRegistry(deps, background);
  const stopTicking = clock.every(Math.min(1_000, deps.pingIntervalMs / 2), tick);

  function onFrame(call: OpenCall, frame: Frame): void {
    if (isFinished(call)) return;
    if (frame.seq >= 0) {
      if (!startOrContinueAttempt(call, frame))
        return background("a call with a second attempt could not be ended", call, fail(call, runTwice()));
      if (frame.seq < call.nextSeq) return; // The frame was repeated after a reconnect.
      if (frame.seq > call.nextSeq)
        return background("a call with a missing frame could not be ended", call, fail(call, frameLost()));
      call.nextSeq++;
    }
    const { data, outcome } = frame;
    if (!call.payload.stream && frame.kind !== "error") keepPart(call, data);
    if (frame.kind === "final" && !hasMemory(call))
      return background("a call without memory for its response could not be ended", call, fail(call, noMemory()));
    call.providerMs = outcome?.providerMs ?? call.providerMs;
    if (outcome?.cost !== undefined) {
      call.costNanoUsd = BigInt(outcome.cost);
      call.leased?.end(call.costNanoUsd);
    }
    if (outcome?.headers && !call.res.headersSent) call.res.set(outcome.headers);
    if (outcome?.headers) call.recording?.announce(outcome.headers);
    switch (frame.kind) {
      case "chunk":
        if (!call.payload.stream) return;
        call.recording?.append(data);
        return writeEvents(call, data, clock.now());
      case "final":
        call.usedTokens = outcome?.tokens ?? 0;
        call.recording?.complete(call.payload.stream ? [data] : call.parts, outcome);
        return finish(call, { status: 200 }, () => {
          if (call.write) background("a response could not be written", call, writeOrRefund(call, frame));
          else writeFinal(call, frame, clock.now());
        });
      case "error": {
        const error = new ServiceError(JSON.parse(data) as ErrorFields);
        if (outcome?.undecided) return background("an invalid call could not be ended", call, fail(call, error));
        call.usedTokens = outcome?.tokens ?? 0;
        if (outcome?.answerLost)
          return background("a call with a lost response could not be refunded", call, refundAndFinish(call, error));
        return finishWithError(call, error, outcome?.ending);
      }
    }
  }

  /** A stream waits for its caller instead. */
  const hasMemory = ({ res, payload, parts, partBytes }: OpenCall): boolean =>
    payload.stream || deps.unread.keep(res, payload.account, parts, partBytes);

  /** Writes the end of the answer. The call ends when the caller has all of it. */
  function finish(call: OpenCall, end: { status: number; code?: string }, write: () => void): void {
    if (isFinished(call)) return;
    if (isDetached(call)) return open.end(call, 499);
    call.unsubscribe();
    call.state = { kind: "answered", at: clock.now(), ...end };
    write();
    // The kernel has all of it, so the delivery is recorded in this turn of the event loop, before anything else happens.
    if (isDelivered(call)) onClose(call);
  }

  /**
   * Refunds an answer that cannot be written, because that is our failure. If part of it was sent, the connection is cut.
   */
  async function writeOrRefund(call: OpenCall, frame: Frame): Promise<void> {
    try {
      await writeOtherwise(call, frame);
    } catch (thrown) {
      const error = toServiceError(thrown);
      const { account, requestId } = call.payload;
      if (!isStored(call)) await money.refund(account, requestId);
      if (call.state.kind === "answered") call.state = { ...call.state, status: error.status, code: error.code };
      call.res.removeHeader("x-xm-cost-usd");
      if (call.res.headersSent) call.res.destroy();
      else writeError(call, error);
    }
  }

  function finishWithError(call: OpenCall, error: ServiceError, ending?: string): void {
    call.recording?.end();
    finish(call, { status: error.status, code: error.code }, () => {
      const { isFree, requestId, account, keyId: key, endpoint } = call.payload;
      if (!isFree) deps.refusals.noteFailure({ requestId, account, key, endpoint }, error);
      writeError(call, error, ending);
    });
  }

  /** Ignores all further frames, so that a refunded answer is not delivered as well. */
  async function refundAndFinish(call: OpenCall, error: ServiceError): Promise<void> {
    call.unsubscribe();
    // The charge of a stored answer stands: the caller can fetch it, or repeat the call.
    if (call.storedJob) return acceptAsItIs(call, call.storedJob);
    if (isStored(call)) return finishWithError(call, generationInProgress());
    const { account, requestId, stream } = call.payload;
    // A caller who disconnected from a stream has received a part of it, and pays for that.
    const isDelivered = stream && isDetached(call);
    if (!isDelivered) await money.refund(account, requestId);
    finishWithError(call, error);
  }

  /**
   * Ends a call that no frame has ended: releases its hold, then answers the error. If a cost has been captured already, a
   * worker wrote the answer: the call keeps waiting for it if it `mayBeAnswered`, else the cost is refunded.
   */
  async function fail(
    call: OpenCall,
    error: ServiceError,
    { mayBeAnswered = false, signal }: { mayBeAnswered?: boolean; signal?: AbortSignal } = {},
  ): Promise<void> {
    if (isFinished(call) || call.state.kind === "releasing") return;
    call.state = { kind: "releasing" };
    const costNanoUsd = await releaseHold(call, { status: "failed", error: error.code }, signal);
    if (isFinished(call)) return;
    const isCharged = costNanoUsd > 0n;
    if (isCharged && mayBeAnswered) {
      call.state = { kind: "queued" };
      return;
    }
    if (call.queuedJob) background("a call could not be cancelled", call, notifyWorkers("cancelled", call));
    if (isCharged) await refundAndFinish(call, error);
    else finishWithError(call, error);
  }

  const notifyWorkers = (notice: "cancelled" | "disconnected", call: OpenCall): Promise<void> =>
    reader.notify(notice, call.payload.requestId, lastFrameAt(call) - clock.now());

  async function handleDisconnect(call: OpenCall): Promise<void> {
    if (call.state.kind === "queued") call.state = { kind: "disconnected" };
    try {
      if (await call.recording?.isAwaited()) {
        // The next tick looks again.
        if (call.state.kind === "disconnected") call.state = { kind: "queued" };
        return;
      }
      // The answer may have gaps from here on.
      call.recording?.end();
      const job = await call.queuedJob;
      // A worker that has the job, or takes it later for other calls of its group, captures the cost of this call.
      if (!job || !(await queues.remove(job))) return await notifyWorkers("disconnected", call);
      // If the job has just ended, its captured cost stands.
      await releaseHold(call, { status: "cancelled" });
      open.end(call, 499);
    } catch (error) {
      // A store is unavailable; the next tick tries again.
      if (call.state.kind === "disconnected") call.state = { kind: "queued" };
      throw error;
    }
  }

  function onClose(call: OpenCall): void {
    const { state } = call;
    if (state.kind === "answered")
      return isDelivered(call) ? open.end(call, state.status, { code: state.code }) : open.end(call, 499);
    if (state.kind !== "ended" && call.queuedJob && !isStored(call))
      background("a disconnect could not be handled", call, handleDisconnect(call));
  }

  /**
   * Answers an error while the work continues, and waits for its end. The result can be fetched later. The caller of a job
   * gets the job, and nothing waits.
   */
  function postpone(call: OpenCall, error: ServiceError): void {
    if (call.storedJob) return background("a job could not be answered", call, acceptAsItIs(call, call.storedJob));
    if (!isDetached(call)) writeError(call, error);
  }

  /** Another process may have started or ended the job since it was stored. */
  async function acceptAsItIs(call: OpenCall, stored: JobView): Promise<void> {
    const { account, requestId } = call.payload;
    const current = await deps.detachedCalls.find(account, requestId).catch(() => undefined);
    if (!isFinished(call)) accept(call, current ?? stored);
  }

  /** Answers that the call runs. From here on only the job's document knows of it. */
  function accept(call: OpenCall, job: JobView): void {
    const isHere = !isDetached(call);
    if (isHere) call.accept?.(job);
    open.end(call, isHere ? call.res.statusCode : 202, { workContinues: true });
  }

  /**
   * Handles stalled callers, deadlines, disconnects that the workers do not know of, and pings in silent streams. Runs at
   * least once a second.
   */
  function tick(): void {
    const now = clock.now();
    for (const call of open.values()) {
      checkPause(call);
      const { state, payload } = call;
      if (state.kind === "answered") continue;
      if (now > lastFrameAt(call))
        background("a call could not be ended at its deadline", call, fail(call, outOfTime()));
      else if (isStored(call)) {
        if (call.queuedJob && call.answerBy !== undefined && now >= call.answerBy)
          postpone(call, generationInProgress());
      } else if (isDetached(call)) {
        if (state.kind === "queued") background("a disconnect could not be handled", call, handleDisconnect(call));
      } else if (payload.stream && now - call.lastWriteAt >= deps.pingIntervalMs) writePing(call, now);
    }
  }

  /** Stores a job, then enqueues it. From the first of the two on it runs, even if this process dies. */
  async function submitJob(call: OpenCall, job: NewJob, inFlight: number): Promise<void> {
    try {
      call.storedJob = await deps.detachedCalls.create(job);
    } catch (cause) {
      return fail(call, noCapacity("The job could not be stored; nothing was charged.", 1, cause));
    }
    call.state = { kind: "queued" };
    call.queuedJob = queues.enqueueDetached(call.job, job.payload, inFlight);
    registry.addedDetached(poolOf(call));
    const { requestId } = call.payload;
    await call.queuedJob.catch((error: Error) =>
      log.warn({ err: error.message, requestId }, "a job could not be enqueued; maintenance will"),
    );
    if (call.state.kind === "queued" && clock.now() >= (call.answerBy ?? 0)) accept(call, call.storedJob);
  }

  /** Ends the calls that are refunded because this instance has counted as dead. None of them gets another frame. */
  function endRefunded(): void {
    for (const call of open.values()) {
      if (!deliveries.isOpen(call.payload.requestId)) continue;
      call.unsubscribe();
      if (call.state.kind === "answered") background("a call that was cut could not be refunded", call, cut(call));
      else background("a call of a paused process could not be ended", call, fail(call, paused()));
    }
  }

  /** Disconnects a caller who has not read the whole answer, and refunds it. */
  async function cut(call: OpenCall): Promise<void> {
    const { account, requestId } = call.payload;
    call.res.destroy();
    if (call.costNanoUsd !== 0n) await money.refund(account, requestId);
  }

  /** Fails the calls whose jobs are gone, once the frames that their workers had written are read. */
  async function failLostCalls(): Promise<void> {
    const queued = open.values().filter((call) => call.queuedJob && !call.detached && !isFinished(call));
    const byJob = Map.groupBy(queued, ({ queuedJob }) => queuedJob);
    const lostByJob = await Promise.all(
      [...byJob].map(async ([queuedJob, calls]) => {
        // `submit` fails the calls of a job that could not be added.
        const job = await queuedJob?.catch(() => undefined);
        return job && !(await queues.isPending(job.pool, job.id)) ? calls : [];
      }),
    );
    const lost = lostByJob.flat();
    if (lost.length === 0) return;
    // A worker may hold its last frames back until this instance has renewed its reply stream.
    await sleep(clock, lastFramesMs);
    await reader.caughtUp();
    for (const call of lost) background("a call with a lost job could not be ended", call, fail(call, jobLost()));
  }

  return {
    arrive: open.arrive,
    count: open.count,
    values: open.values,

    /** Puts the work on its queue, and answers the caller when it is done. The body can be released once this resolves. */
    async submit(submission: Submission, body: { readonly text: string; readonly bytes: number }): Promise<void> {
      const call = openCall(submission, deps.memory, clock.now());
      const { payload } = call;
      open.add(call);
      const replyNumber = deliveries.begin(payload);
      call.unsubscribe = reader.expect(payload.requestId, (frame) => onFrame(call, frame));
      // A lost message is repeated, or the pause ends by itself.
      call.isFollowed = () => call.recording?.isFollowed() ?? false;
      call.pace = (pace) => void reader.pace(payload.requestId, pace).catch(() => {});
      call.res.on("close", () => onClose(call));
      try {
        if (body.bytes > maxInlineBodyBytes) {
          await files.putBody(payload.requestId, body.text);
          call.bodyStored = true;
        }
      } catch (cause) {
        const error = noCapacity("Storage for large requests is unavailable; nothing was charged.", 5, cause);
        return fail(call, error);
      }
      // A deadline or a shutdown has failed the call meanwhile.
      if (call.state.kind !== "preparing") return files.deleteBody(payload.requestId);
      if (isDetached(call) && !isStored(call)) {
        await releaseHold(call, { status: "cancelled" });
        return open.end(call, 499);
      }
      const whole = {
        ...payload,
        ...(replyNumber !== undefined && { replyNumber }),
        body: call.bodyStored ? { stored: true as const, bytes: body.bytes } : { json: body.text },
      };
      // Calls in flight: those of the account in this instance, or those of the key in all instances.
      const inFlight = Math.max(open.others(call), call.slot.inFlight);
      if (call.detached) return submitJob(call, { ...call.detached, job: call.job, payload: whole }, inFlight);
      call.state = { kind: "queued" };
      call.queuedJob = queues.enqueue(call.job, whole, inFlight);
      registry.added(poolOf(call));
      try {
        await call.queuedJob;
      } catch (cause) {
        const error = noCapacity("The queue is unavailable; nothing was charged.", 1, cause);
        return fail(call, error, { mayBeAnswered: true });
      }
    },

    /** Fails the calls whose jobs Redis has lost. */
    findLost(): void {
      failLostCalls().catch((error: Error) => log.warn({ err: error.message }, "could not look for lost jobs"));
    },

    endRefunded,

    idle: open.idle,

    /** Refuses further calls, and fails those that are open. */
    async abort(): Promise<void> {
      open.close();
      const signal = AbortSignal.timeout(lastReleasesMs);
      const ending = open.values().map(async (call) => {
        const error = shuttingDown();
        if (call.state.kind === "answered") return open.end(call, 499, { isCut: clock.now() - call.state.at < readMs });
        if (isStored(call) && call.queuedJob) {
          postpone(call, error);
          return open.end(call, error.status, { code: error.code, workContinues: true });
        }
        // If the release fails, the hold stays until it expires and the sweeper settles it.
        await fail(call, error, { signal }).catch(() => finishWithError(call, error));
      });
      await Promise.all(ending);
      stopTicking();
    },
  };
}

export type OpenCalls = ReturnType<typeof createOpenCalls>;
