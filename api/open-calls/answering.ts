import type { ServiceError } from "#errors";
import type { Frame } from "#jobs";
import { formatUsd } from "#money";
import type { Clock } from "#platform/clock";
import { answerError, answerParts, beginStream, stalledMs } from "../http/answer.ts";
import type { OpenCall } from "./open-call.ts";

/** More than this unsent to a caller counts as a disconnect. */
const unsentLimitBytes = 1024 * 1024;

interface Deps {
  readonly clock: Clock;
  readonly end: (call: OpenCall, status: number, code?: string) => void;
}

/** The socket counts what it was given; what the kernel has not taken yet is not sent. */
const sentBytes = ({ socket }: OpenCall["res"]) => (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0);

/** What goes out to the caller: frames as they are, pings, errors in the caller's format. */
export function createAnswering({ clock, end }: Deps) {
  function writeEvents(call: OpenCall, data: string): void {
    call.begun = true;
    write(call, data);
  }

  function write(call: OpenCall, data: string): void {
    const { res } = call;
    if (call.left) return;
    if (res.writableLength > unsentLimitBytes) return void res.destroy();
    if (!res.headersSent) beginStream(res, call.codec.streamType);
    res.write(data);
    call.lastWriteAt = clock.now();
  }

  /** Once a second: what a caller does not read is not kept for it. */
  function checkProgress(call: OpenCall): void {
    const { res, sent } = call;
    const now = clock.now();
    const bytes = sentBytes(res);
    if (res.writableLength === 0 || bytes !== sent.bytes) call.sent = { bytes, at: now };
    else if (now - sent.at >= stalledMs)
      // A process that stood still itself takes note of what was taken meanwhile.
      setImmediate(() => {
        if (res.writableLength > 0 && sentBytes(res) === bytes) res.destroy();
      });
  }

  function deliver(call: OpenCall, frame: Frame): void {
    const { res, payload } = call;
    call.usedTokens = frame.outcome?.tokens ?? 0;
    if (payload.stream) {
      writeEvents(call, frame.data);
      return finish(call, 200, () => res.end());
    }
    res.set("x-xm-cost-usd", formatUsd(BigInt(frame.outcome?.cost ?? "0")));
    const parts = [...call.parts, frame.data];
    call.parts = [];
    finish(call, 200, () => answerParts(res.status(200), parts));
  }

  /** `ending`: what closes a stream that has begun, where the worker knows it. */
  function fail(call: OpenCall, error: ServiceError, ending?: string): void {
    if (call.ended) return;
    const { res, codec, payload } = call;
    finish(
      call,
      error.status,
      () => {
        if (res.headersSent) res.end(ending ?? codec.streamError(error, payload.requestId, call.begun));
        else answerError(res, error, codec.error(error, payload.requestId));
      },
      error.code,
    );
  }

  /** The last that is written: no frame and no deadline counts any more. The call ends when the caller has it all. */
  function finish(call: OpenCall, status: number, write: () => void, code?: string): void {
    if (call.left) return end(call, 499);
    call.stopExpecting();
    call.answered = { status, ...(code !== undefined && { code }) };
    write();
  }

  /** The work goes on, the caller comes again for its answer. */
  function postpone(call: OpenCall, error: ServiceError): void {
    if (!call.left) answerError(call.res, error, call.codec.error(error, call.payload.requestId));
    call.left = true;
  }

  return {
    writeEvents,
    deliver,
    fail,
    postpone,
    checkProgress,
    ping: (call: OpenCall) => write(call, call.codec.ping),
  };
}

export type Answering = ReturnType<typeof createAnswering>;
