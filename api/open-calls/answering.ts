import type { ServiceError } from "#errors";
import type { Frame } from "#jobs";
import { formatUsd } from "#money";
import type { Clock } from "#platform/clock";
import { answerError, answerJson, beginStream } from "../http/answer.ts";
import type { OpenCall } from "./open-call.ts";

/** More than this unsent to a caller counts as the caller leaving. */
const unsentLimitBytes = 1024 * 1024;

interface Deps {
  readonly clock: Clock;
  readonly end: (call: OpenCall, status: number, code?: string) => void;
  /** In the background, until it is done. */
  readonly refund: (call: OpenCall) => void;
}

/** What goes out to the caller: frames as they are, pings, errors in the caller's format. */
export function createAnswering({ clock, end, refund }: Deps) {
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

  function deliver(call: OpenCall, frame: Frame): void {
    const { res, payload } = call;
    call.usedTokens = frame.outcome?.tokens ?? 0;
    const cost = BigInt(frame.outcome?.cost ?? "0");
    if (payload.stream) {
      writeEvents(call, frame.data);
      if (!call.left) res.end();
      return end(call, 200);
    }
    if (call.left) {
      if (cost > 0n) refund(call);
      return end(call, 499);
    }
    // Handed to the socket is not delivered: a caller who is gone by now pays nothing for a JSON answer.
    res.once("close", () => {
      if (!res.writableFinished && cost > 0n) refund(call);
    });
    res.set("x-xm-cost-usd", formatUsd(cost));
    call.parts.push(frame.data);
    answerJson(res.status(200), call.parts.join(""));
    end(call, 200);
  }

  /** `ending`: what closes a stream that has begun, where the worker knows it. */
  function fail(call: OpenCall, error: ServiceError, ending?: string): void {
    if (call.ended) return;
    const { res, codec, payload } = call;
    if (!call.left) {
      if (res.headersSent) res.end(ending ?? codec.streamError(error, payload.requestId, call.begun));
      else answerError(res, error, codec.error(error, payload.requestId));
    }
    if (call.left) end(call, 499);
    else end(call, error.status, error.code);
  }

  /** The work goes on, the caller comes again for its answer. */
  function postpone(call: OpenCall, error: ServiceError): void {
    if (!call.left) answerError(call.res, error, call.codec.error(error, call.payload.requestId));
    call.left = true;
  }

  return { writeEvents, deliver, fail, postpone, ping: (call: OpenCall) => write(call, call.codec.ping) };
}

export type Answering = ReturnType<typeof createAnswering>;
