import {
  type ErrorFields,
  generationInProgress,
  internalError,
  noCapacity,
  ServiceError,
  upstreamTimeout,
} from "#errors";
import type { Files } from "#files";
import { type Frame, jobCatalog, type Queues, type ReplyReader, type WorkerRegistry } from "#jobs";
import type { Keys } from "#keys";
import type { Money } from "#money";
import type { Background } from "#platform/background";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { createAnswering } from "./answering.ts";
import { createEnding, deadlineGraceMs } from "./ending.ts";
import { isKept, isOver, type OpenCall, type Opening, openCall } from "./open-call.ts";

export interface OpenCalls {
  /**
   * A call has come in: a drain waits for it from here on. Returns how to say that it was submitted or refused.
   * Throws 503 when the drain has begun.
   */
  arrive(): () => void;
  /**
   * Puts the work on its queue; from here the call ends by a frame, its deadline, its caller or a shutdown. Nothing keeps
   * the body once it resolves.
   */
  submit(opening: Opening, body: { readonly text: string; readonly bytes: number }): Promise<void>;
  /** Redis is connected again, and may have lost jobs. */
  reconnected(): void;
  /** Lets calls finish within the grace time, then gives the others up. */
  drain(graceMs: number): Promise<void>;
}

interface Deps {
  readonly reader: ReplyReader;
  readonly queues: Queues;
  readonly registry: WorkerRegistry;
  readonly money: Money;
  readonly keys: Keys;
  readonly files: Files;
  /** What is still to be settled or given back when a call is over. */
  readonly background: Background;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pingIntervalMs: number;
}

/** Bodies over this go to object storage, not into the job. */
const inlineBodyBytes = 64 * 1024;
/** How long a worker gets to write what it has of a call whose job is lost. */
const lastFramesMs = 1_000;
/** How long a process that stops waits for a decision. */
const lastDecisionMs = 10_000;

export function createOpenCalls(deps: Deps): OpenCalls {
  const { reader, queues, registry, money, keys, files, clock, log } = deps;
  const open = new Map<string, OpenCall>();
  const inFlight = new Map<string, number>();
  let arriving = 0;
  let draining = false;
  let onEmpty: (() => void) | undefined;
  let stopPulse: (() => void) | undefined;

  const background = (what: string, call: OpenCall, work: Promise<unknown>) =>
    deps.background.run(what, work, { requestId: call.payload.requestId });

  const answering = createAnswering({ clock, end });
  const ending = createEnding({ reader, queues, money, clock, answering, end, background });

  function begin(opening: Opening): OpenCall {
    const call = openCall(opening, clock.now());
    const { requestId, account } = call.payload;
    open.set(requestId, call);
    inFlight.set(account, (inFlight.get(account) ?? 0) + 1);
    call.stopExpecting = reader.expect(requestId, (frame) => onFrame(call, frame));
    call.res.on("close", () => onClose(call));
    stopPulse ??= clock.every(Math.min(1_000, deps.pingIntervalMs / 2), pulse);
    return call;
  }

  /** The call is over here: whatever it took is given back. Unless it goes on elsewhere its money is decided by now. */
  function end(call: OpenCall, status: number, code?: string, goesOn = false): void {
    if (call.ended) return;
    call.ended = true;
    const { requestId, account, keyId, endpoint, model, stream, acceptedAt } = call.payload;
    call.stopExpecting();
    open.delete(requestId);
    const others = (inFlight.get(account) ?? 1) - 1;
    if (others > 0) inFlight.set(account, others);
    else inFlight.delete(account);
    const { takenTokens } = call;
    const usedTokens = Math.min(call.usedTokens, call.mostTokens);
    background("limits", call, keys.release(call.caller, requestId, { takenTokens, usedTokens }));
    if (call.enqueued) registry.ended(jobCatalog[call.job].pool);
    if (call.stored && !goesOn) background("dropping the body", call, files.deleteBody(requestId));
    const totalMs = clock.now() - acceptedAt;
    log.info(
      { requestId, account, key: keyId, endpoint, model, stream, status, code, left: call.left, totalMs },
      "call",
    );
    if (open.size > 0) return;
    stopPulse?.();
    stopPulse = undefined;
    if (isEmpty()) onEmpty?.();
  }

  const isEmpty = () => open.size === 0 && arriving === 0;

  function onFrame(call: OpenCall, frame: Frame): void {
    if (isOver(call)) return;
    if (frame.seq >= 0) {
      if (!isFirstAttempt(call, frame))
        return background("second attempt", call, ending.giveUp(call, ranTwice(), { mayWait: false }));
      if (frame.seq < call.nextSeq) return; // Written twice across a reconnect.
      if (frame.seq > call.nextSeq)
        return background("gap", call, ending.giveUp(call, internalError("a frame was lost"), { mayWait: false }));
      call.nextSeq++;
    }
    if (frame.outcome?.headers && !call.res.headersSent) call.res.set(frame.outcome.headers);
    switch (frame.kind) {
      case "chunk":
        return call.payload.stream ? answering.writeEvents(call, frame.data) : void call.parts.push(frame.data);
      case "final":
        return answering.deliver(call, frame);
      case "error": {
        const error = new ServiceError(JSON.parse(frame.data) as ErrorFields);
        call.usedTokens = frame.outcome?.tokens ?? 0;
        if (!frame.outcome?.answerLost) return answering.fail(call, error, frame.outcome?.ending);
        return background("refund", call, ending.refundAndFail(call, error));
      }
    }
  }

  /**
   * The frames of one attempt make an answer. An answer that is stored under a key is told again from its beginning by the
   * delivery that finds it.
   */
  function isFirstAttempt(call: OpenCall, { attempt, seq }: Frame): boolean {
    if (attempt === undefined || attempt === call.attempt) return true;
    if (call.attempt !== undefined && !(isKept(call) && seq === 0)) return false;
    call.attempt = attempt;
    call.nextSeq = 0;
    call.parts = [];
    return true;
  }

  /** A call without a job gets no other end than what its worker has written before the job ended. */
  async function endLostCalls(): Promise<void> {
    const queued = [...open.values()].filter((call) => call.enqueued && !isOver(call));
    const pending = await Promise.all(
      queued.map(({ job, payload }) => queues.isPending(jobCatalog[job].pool, payload.requestId)),
    );
    const lost = queued.filter((_, at) => !pending[at]);
    if (lost.length === 0) return;
    // A worker may have waited with its last frames for this instance to renew its stream.
    await sleep(clock, lastFramesMs);
    await reader.caughtUp();
    const error = () => noCapacity("The queue lost this call; nothing was charged. Repeat it.", 1);
    for (const call of lost) background("lost job", call, ending.giveUp(call, error(), { mayWait: false }));
  }

  function onClose(call: OpenCall): void {
    if (call.ended || call.left) return;
    const { answered } = call;
    if (answered) return call.res.writableFinished ? end(call, answered.status, answered.code) : end(call, 499);
    call.left = true;
    if (call.enqueued && !isKept(call)) background("leaving", call, ending.leave(call));
  }

  /** Once a second: deadlines, leavers that the workers do not know of yet, and pings where a stream was silent. */
  function pulse(): void {
    const now = clock.now();
    for (const call of open.values()) {
      answering.checkProgress(call);
      if (call.answered) continue;
      if (now > call.payload.deadlineAt + deadlineGraceMs(call))
        background("deadline", call, ending.giveUp(call, outOfTime(), { mayWait: false }));
      else if (isKept(call)) {
        if (call.enqueued && now >= (call.answerBy ?? Number.POSITIVE_INFINITY))
          answering.postpone(call, generationInProgress());
      } else if (call.left) {
        if (call.enqueued) background("leaving", call, ending.leave(call));
      } else if (call.payload.stream && now - call.lastWriteAt >= deps.pingIntervalMs) answering.ping(call);
    }
  }

  const ranTwice = () => noCapacity("The call was run twice; nothing was charged. Repeat it.", 1);
  const outOfTime = () => upstreamTimeout("The call ran out of time.", { shouldRetry: false });
  const stopping = () => noCapacity("This instance is shutting down; repeat the call.", 1);

  return {
    arrive() {
      if (draining) throw stopping();
      arriving++;
      return () => {
        arriving--;
        if (isEmpty()) onEmpty?.();
      };
    },

    async submit(opening, body) {
      const call = begin(opening);
      const { payload } = call;
      const pool = jobCatalog[call.job].pool;
      try {
        if (body.bytes > inlineBodyBytes) {
          await files.putBody(payload.requestId, body.text);
          call.stored = true;
        }
      } catch (cause) {
        const error = noCapacity("Storage for large requests is away; nothing was charged.", 5, cause);
        return ending.giveUp(call, error, { mayWait: true });
      }
      // Given up meanwhile, by a deadline or a shutdown.
      if (call.ended) return files.deleteBody(payload.requestId);
      if (call.left && !isKept(call)) {
        await ending.settleNothing(call, "cancelled");
        return end(call, 499);
      }
      try {
        call.enqueued = true;
        registry.added(pool);
        const others = (inFlight.get(payload.account) ?? 1) - 1;
        await queues.enqueue(
          call.job,
          { ...payload, body: call.stored ? { stored: true, bytes: body.bytes } : { json: body.text } },
          others,
        );
      } catch (cause) {
        return ending.giveUp(call, noCapacity("The queue is away; nothing was charged.", 1, cause), { mayWait: true });
      }
      // Who left while the job was being added found nothing to take back.
      if (call.left && !isKept(call)) {
        call.leaving = false;
        await ending.leave(call);
      }
    },

    reconnected() {
      endLostCalls().catch((error: Error) => log.warn({ err: error.message }, "asking for jobs after a reconnect"));
    },

    async drain(graceMs) {
      draining = true;
      if (isEmpty()) return;
      await new Promise<void>((resolve) => {
        const cancel = clock.after(graceMs, resolve);
        onEmpty = () => {
          cancel();
          resolve();
        };
      });
      const signal = AbortSignal.timeout(lastDecisionMs);
      const givenUp = [...open.values()].map(async (call) => {
        const error = stopping();
        if (call.answered) return end(call, 499);
        if (isKept(call) && call.enqueued) {
          answering.postpone(call, error);
          return end(call, error.status, error.code, true);
        }
        // Without a decision the hold stays, dated, and the sweeper finds it.
        await ending.giveUp(call, error, { mayWait: false, signal }).catch(() => answering.fail(call, error));
      });
      await Promise.all(givenUp);
    },
  };
}
