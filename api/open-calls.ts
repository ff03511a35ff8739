import type { Response } from "express";
import {
  type ErrorFields,
  generationInProgress,
  internalError,
  noCapacity,
  ServiceError,
  upstreamTimeout,
} from "#errors";
import type { Files } from "#files";
import type { Codec } from "#formats";
import {
  type Frame,
  jobCatalog,
  type PaidCall,
  type PaidJobName,
  type Picture,
  type Queues,
  type ReplyReader,
} from "#jobs";
import type { Caller, Keys } from "#keys";
import { formatUsd, type Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { answerError, answerJson, beginStream } from "./http/answer.ts";

/** One paid call from its admission to its last byte. */
export interface Opening {
  readonly job: PaidJobName;
  readonly payload: Omit<PaidCall, "body">;
  readonly body: { readonly text: string; readonly bytes: number };
  readonly caller: Caller;
  readonly takenTokens: number;
  /** When a caller who came with an `Idempotency-Key` is told to come again: unix milliseconds. */
  readonly answerBy?: number;
  readonly codec: Codec;
  readonly res: Response;
}

interface OpenCall extends Opening {
  stopExpecting(): void;
  nextSeq: number;
  /** Pieces of a JSON answer that came in several frames. */
  parts: string[];
  lastWriteAt: number;
  stored: boolean;
  enqueued: boolean;
  left: boolean;
  /** Being told that the caller left, or told: `leave` is tried until the workers know. */
  leaving: boolean;
  /** An end is being decided here; frames may still win. */
  givingUp: boolean;
  ended: boolean;
  usedTokens: number;
}

export interface OpenCalls {
  /**
   * A call has come in: a drain waits for it from here on. Returns how to say that it was submitted or refused.
   * Throws 503 when the drain has begun.
   */
  arrive(): () => void;
  /** Puts the work on its queue; from here the call ends by a frame, its deadline, its caller or a shutdown. */
  submit(opening: Opening): Promise<void>;
  /** Lets calls finish within the grace time, then gives the others up. */
  drain(graceMs: number): Promise<void>;
}

interface Deps {
  readonly reader: ReplyReader;
  readonly queues: Queues;
  readonly picture: Picture;
  readonly money: Money;
  readonly keys: Keys;
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pingIntervalMs: number;
}

/** Bodies over this go to object storage, not into the job. */
const inlineBodyBytes = 64 * 1024;
/** More than this unsent to a caller counts as the caller leaving. */
const unsentLimitBytes = 1024 * 1024;
/** The worker ends a call at its deadline; the API only if nothing was heard by then. */
const deadlineGraceMs = 2_000;
/** How long a process that stops waits for a decision. */
const lastDecisionMs = 10_000;

export function createOpenCalls(deps: Deps): OpenCalls {
  const { reader, queues, picture, money, keys, files, clock, log } = deps;
  const open = new Map<string, OpenCall>();
  const inFlight = new Map<string, number>();
  let arriving = 0;
  let draining = false;
  let onEmpty: (() => void) | undefined;
  let stopPulse: (() => void) | undefined;

  const background = (what: string, call: OpenCall, work: Promise<unknown>): void => {
    work.catch((error: Error) => log.error({ err: error, requestId: call.payload.requestId }, what));
  };

  /** Its answer is kept under an `Idempotency-Key`: leaving it ends nothing, and what it cost stands. */
  const isKept = ({ payload }: OpenCall) => payload.replay !== undefined;

  function begin(opening: Opening): OpenCall {
    const call: OpenCall = {
      ...opening,
      stopExpecting: () => {},
      nextSeq: 0,
      parts: [],
      lastWriteAt: clock.now(),
      stored: false,
      enqueued: false,
      left: opening.res.closed,
      leaving: false,
      givingUp: false,
      ended: false,
      usedTokens: 0,
    };
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
    const { takenTokens, usedTokens } = call;
    background("limits", call, keys.release(call.caller, requestId, { takenTokens, usedTokens }));
    if (call.enqueued) picture.ended(jobCatalog[call.job].pool);
    if (call.stored && !goesOn) background("dropping the body", call, files.dropBody(requestId));
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
    if (call.ended) return;
    if (frame.seq >= 0) {
      if (frame.seq < call.nextSeq) return; // Written twice across a reconnect.
      if (frame.seq > call.nextSeq)
        return background("gap", call, giveUp(call, internalError("a frame was lost"), { mayWait: false }));
      call.nextSeq++;
    }
    switch (frame.kind) {
      case "chunk":
        return call.payload.stream ? writeChunk(call, frame.data) : void call.parts.push(frame.data);
      case "final":
        return deliver(call, frame);
      case "error": {
        const error = new ServiceError(JSON.parse(frame.data) as ErrorFields);
        call.usedTokens = frame.outcome?.tokens ?? 0;
        if (!frame.outcome?.answerLost) return fail(call, error);
        return background("refund", call, refundAndFail(call, error));
      }
    }
  }

  function writeChunk(call: OpenCall, data: string): void {
    const { res } = call;
    if (call.left) return;
    if (res.writableLength > unsentLimitBytes) return void res.destroy();
    if (!res.headersSent) beginStream(res);
    res.write(data);
    call.lastWriteAt = clock.now();
  }

  function deliver(call: OpenCall, frame: Frame): void {
    const { res, payload } = call;
    call.usedTokens = frame.outcome?.tokens ?? 0;
    const cost = BigInt(frame.outcome?.cost ?? "0");
    if (payload.stream) {
      writeChunk(call, frame.data);
      if (!call.left) res.end();
      return end(call, 200);
    }
    if (call.left) {
      if (cost > 0n) background("refund", call, refund(call));
      return end(call, 499);
    }
    // Handed to the socket is not delivered: a caller who is gone by now pays nothing for a JSON answer.
    res.once("close", () => {
      if (!res.writableFinished && cost > 0n) background("refund", call, refund(call));
    });
    res.set("x-xm-cost-usd", formatUsd(cost));
    call.parts.push(frame.data);
    answerJson(res.status(200), call.parts.join(""));
    end(call, 200);
  }

  function fail(call: OpenCall, error: ServiceError): void {
    if (call.ended) return;
    const { res, codec, payload } = call;
    if (!call.left) {
      if (res.headersSent) res.end(codec.streamError(error, payload.requestId));
      else answerError(res, error, codec.error(error, payload.requestId));
    }
    if (call.left) end(call, 499);
    else end(call, error.status, error.code);
  }

  /** Tries until it is done. */
  const refund = async (call: OpenCall) => {
    if (!isKept(call)) await money.refund(call.payload.account, call.payload.requestId);
  };

  /** From here on no frame is taken: what is refunded is not delivered as well. */
  async function refundAndFail(call: OpenCall, error: ServiceError): Promise<void> {
    call.stopExpecting();
    // Who left a stream has had what was written, and pays for it.
    if (!(call.left && call.payload.stream)) await refund(call);
    fail(call, error);
  }

  const settleNothing = (call: OpenCall, status: "failed" | "cancelled", error?: string, signal?: AbortSignal) =>
    money.settle({
      account: call.payload.account,
      requestId: call.payload.requestId,
      key: call.payload.keyId,
      endpoint: call.payload.endpoint,
      model: call.payload.model,
      heldNanoUsd: BigInt(call.payload.held),
      costNanoUsd: 0n,
      status,
      ...(error !== undefined && { error }),
      attempts: 0,
      usage: {},
      estimated: false,
      totalMs: clock.now() - call.payload.acceptedAt,
      signal,
    });

  /**
   * An error is a decision too: it is answered once nothing was charged for good. If a cost stands already the answer
   * is on its way: with `mayWait` it gets until the deadline, else it is refunded.
   */
  async function giveUp(call: OpenCall, error: ServiceError, how: { mayWait: boolean; signal?: AbortSignal }) {
    if (call.ended || call.givingUp) return;
    call.givingUp = true;
    const { entry } = await settleNothing(call, "failed", error.code, how.signal);
    if (call.ended) return;
    if (entry.costNanoUsd > 0n && how.mayWait) {
      call.givingUp = false;
      return;
    }
    if (call.enqueued) background("cancel", call, cancel(call));
    if (entry.costNanoUsd > 0n) await refundAndFail(call, error);
    else fail(call, error);
  }

  const cancel = (call: OpenCall) =>
    reader.cancel(call.payload.requestId, call.payload.deadlineAt + deadlineGraceMs - clock.now());

  function onClose(call: OpenCall): void {
    if (call.ended || call.left) return;
    call.left = true;
    if (call.enqueued && !isKept(call)) background("leaving", call, leave(call));
  }

  /** The work goes on, the caller comes again for its answer. */
  function postpone(call: OpenCall, error: ServiceError): void {
    if (!call.left) answerError(call.res, error, call.codec.error(error, call.payload.requestId));
    call.left = true;
  }

  /** The caller is gone. A job that waits is taken back; one that runs is aborted and decided by its worker. */
  async function leave(call: OpenCall): Promise<void> {
    if (call.leaving) return;
    call.leaving = true;
    const { requestId } = call.payload;
    try {
      const removed = await queues.remove(jobCatalog[call.job].pool, requestId);
      if (!removed) return await cancel(call);
    } catch (error) {
      // Redis did not take it: the next pulse asks again.
      call.leaving = false;
      throw error;
    }
    // What was taken back may also be a job that had just ended: then its answer finds nobody.
    const { entry } = await settleNothing(call, "cancelled");
    if (entry.costNanoUsd > 0n && !call.payload.stream) await refund(call);
    end(call, 499);
  }

  /** Once a second: deadlines, leavers that the workers do not know of yet, and pings where a stream was silent. */
  function pulse(): void {
    const now = clock.now();
    for (const call of open.values()) {
      if (now > call.payload.deadlineAt + deadlineGraceMs)
        background("deadline", call, giveUp(call, outOfTime(), { mayWait: false }));
      else if (isKept(call)) {
        if (call.enqueued && now >= (call.answerBy ?? Number.POSITIVE_INFINITY)) postpone(call, generationInProgress());
      } else if (call.left) {
        if (call.enqueued) background("leaving", call, leave(call));
      } else if (call.payload.stream && now - call.lastWriteAt >= deps.pingIntervalMs)
        writeChunk(call, call.codec.ping);
    }
  }

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

    async submit(opening) {
      const call = begin(opening);
      const { body, payload } = call;
      const pool = jobCatalog[call.job].pool;
      try {
        if (body.bytes > inlineBodyBytes) {
          await files.putBody(payload.requestId, body.text);
          call.stored = true;
        }
      } catch (cause) {
        const error = noCapacity("Storage for large requests is away; nothing was charged.", 5, cause);
        return giveUp(call, error, { mayWait: true });
      }
      // Given up meanwhile, by a deadline or a shutdown.
      if (call.ended) return files.dropBody(payload.requestId);
      if (call.left && !isKept(call)) {
        await settleNothing(call, "cancelled");
        return end(call, 499);
      }
      try {
        call.enqueued = true;
        picture.added(pool);
        const others = (inFlight.get(payload.account) ?? 1) - 1;
        await queues.enqueue(
          call.job,
          { ...payload, body: call.stored ? { stored: true } : { json: body.text } },
          others,
        );
      } catch (cause) {
        return giveUp(call, noCapacity("The queue is away; nothing was charged.", 1, cause), { mayWait: true });
      }
      // Who left while the job was being added found nothing to take back.
      if (call.left && !isKept(call)) {
        call.leaving = false;
        await leave(call);
      }
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
        if (isKept(call) && call.enqueued) {
          postpone(call, error);
          return end(call, error.status, error.code, true);
        }
        // Without a decision the hold stays, dated, and the sweeper finds it.
        await giveUp(call, error, { mayWait: false, signal }).catch(() => fail(call, error));
      });
      await Promise.all(givenUp);
    },
  };
}
