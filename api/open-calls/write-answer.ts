import type { ServiceError } from "#errors";
import type { Frame } from "#jobs";
import { formatUsd } from "#money";
import { answerError, answerParts, beginStream } from "../http/answer.ts";
import { hasReadNothingSince, idleMs } from "../http/connections.ts";
import { localsOf } from "../http/headers.ts";
import { isDetached, type OpenCall, type WrittenAnswer } from "./open-call.ts";

/** Fewer unsent bytes are not counted. */
const freeBytes = 64 * 1024;
/** The worker is asked to wait above this many unsent bytes. */
const pauseBytes = 256 * 1024;

/** Longer text is written at once, so that it does not pile up for a caller who does not read. */
const maxJoinedUnits = 64 * 1024;

/** Writes events of a stream as the worker wrote them. Events that came together are one write to the socket. */
export function writeEvents(call: WrittenAnswer, data: string, now: number): void {
  call.hasContent = true;
  call.lastWriteAt = now;
  call.firstEventAt ??= now;
  if (call.unwritten === "") process.nextTick(writeJoined, call);
  call.unwritten += data;
  if (call.unwritten.length > maxJoinedUnits) writeJoined(call);
}

function writeJoined(call: WrittenAnswer): void {
  const text = call.unwritten;
  call.unwritten = "";
  if (text) write(call, text);
}

export function writePing(call: WrittenAnswer, now: number): void {
  call.lastWriteAt = now;
  // A stream of bytes has no room for pings.
  if (!call.isBinary) write(call, call.codec.ping);
}

function write(call: WrittenAnswer, text: string): void {
  const { res, codec } = call;
  if (isDetached(call)) return;
  if (!hasMemory(call) && isIdle(call)) return void res.destroy();
  if (res.headersSent && !call.isBinary) writeChunk(res, text);
  else {
    if (!res.headersSent) beginStream(res, codec.streamType);
    res.write(text, call.isBinary ? "base64" : "utf8");
  }
  // The kernel gets the data of this turn of the event loop at the end of the turn.
  if (!call.isPaused && res.writableLength > pauseBytes) setImmediate(pauseIfFull, call);
}

/**
 * Writes a chunk of HTTP/1.1 as one text to the socket. `res.write` passes four pieces, which costs twice as much. The head has
 * been written, with the first text.
 */
function writeChunk(res: WrittenAnswer["res"], text: string): void {
  const { socket, chunkedEncoding } = res;
  // A response to HTTP/1.0 has no chunks, and one that waits for another on its connection has no socket.
  if (!socket || !chunkedEncoding) res.write(text);
  else socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

const hasMemory = ({ res: { writableLength }, unsent }: WrittenAnswer) =>
  unsent.resize(writableLength > freeBytes ? writableLength : 0);

const isIdle = ({ res, lastWriteAt }: WrittenAnswer) => hasReadNothingSince(res.socket, lastWriteAt - idleMs);

/** A provider may send much faster than the caller reads. */
function pauseIfFull(call: WrittenAnswer): void {
  const { res } = call;
  if (call.isPaused || call.isFollowed() || isDetached(call) || res.writableLength <= pauseBytes) return;
  call.isPaused = true;
  call.pace("pause");
  // The response itself reports only what was written through it.
  (res.socket ?? res).once("drain", () => resume(call));
}

function resume(call: WrittenAnswer): void {
  call.isPaused = false;
  call.unsent.resize(0);
  call.pace("resume");
}

/** Repeats a pause, which would end by itself, or ends it if the caller need not be waited for. Called on every tick. */
export function checkPause(call: WrittenAnswer): void {
  if (!call.isPaused) return;
  if (isDetached(call) || call.isFollowed()) resume(call);
  else call.pace("pause");
}

export function writeFinal(call: OpenCall, { data, outcome }: Frame, now: number): void {
  const { res, payload } = call;
  if (payload.stream) {
    writeEvents(call, data, now);
    return endEvents(call);
  }
  setCost(res, outcome);
  answerParts(res.status(200), takeParts(call), call.partBytes);
}

/** Ends a stream that was written with `writeEvents`. */
export function endEvents(call: WrittenAnswer): void {
  writeJoined(call);
  call.res.end();
}

/** Writes the answer with the call's own `write`. */
export async function writeOtherwise(call: OpenCall, { outcome }: Frame): Promise<void> {
  setCost(call.res, outcome);
  await call.write?.(takeParts(call).join(""));
}

const setCost = (res: OpenCall["res"], outcome: Frame["outcome"]) =>
  res.set("x-xm-cost-usd", formatUsd(BigInt(outcome?.cost ?? "0")));

function takeParts(call: OpenCall): readonly string[] {
  const { parts } = call;
  call.parts = [];
  return parts;
}

/** `ending` closes a stream that has begun, if the worker provided one. */
export function writeError(call: WrittenAnswer, error: ServiceError, ending?: string): void {
  const { res, codec, hasContent } = call;
  const { requestId } = localsOf(res);
  writeJoined(call);
  // A stream of bytes that just ended would look complete.
  if (res.headersSent && call.isBinary) res.destroy();
  else if (res.headersSent) res.end(ending ?? codec.streamError(error, requestId, hasContent));
  else answerError(res, error, codec.error(error, requestId));
}
