import type { ServiceError } from "#errors";
import type { Frame } from "#jobs";
import { formatUsd } from "#money";
import { answerError, answerParts, beginStream, stalledMs } from "../http/answer.ts";
import { isDetached, type OpenCall } from "./open-call.ts";

/** A caller with more unsent bytes than this counts as disconnected. */
const maxUnsentBytes = 1024 * 1024;

/** Bytes that the kernel took: `bytesWritten` also counts those that the socket still buffers. */
const sentBytes = ({ socket }: OpenCall["res"]) => (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0);

/** Events of a stream, as the worker wrote them. */
export function writeEvents(call: OpenCall, data: string, now: number): void {
  call.hasContent = true;
  write(call, data, now);
}

export const writePing = (call: OpenCall, now: number): void => write(call, call.codec.ping, now);

function write(call: OpenCall, data: string, now: number): void {
  const { res } = call;
  if (isDetached(call)) return;
  if (res.writableLength > maxUnsentBytes) return void res.destroy();
  if (!res.headersSent) beginStream(res, call.codec.streamType);
  res.write(data);
  call.lastWriteAt = now;
}

/** Once a second: cuts the connection of a caller who has read nothing for `stalledMs`. */
export function checkProgress(call: OpenCall, now: number): void {
  const { res, sent } = call;
  const bytes = sentBytes(res);
  if (res.writableLength === 0 || bytes !== sent.bytes) call.sent = { bytes, at: now };
  else if (now - sent.at >= stalledMs)
    // If this process itself was stalled, it first learns what was sent meanwhile.
    setImmediate(() => {
      if (res.writableLength > 0 && sentBytes(res) === bytes) res.destroy();
    });
}

export function writeFinal(call: OpenCall, { data, outcome }: Frame, now: number): void {
  const { res, payload } = call;
  if (payload.stream) {
    writeEvents(call, data, now);
    return void res.end();
  }
  res.set("x-xm-cost-usd", formatUsd(BigInt(outcome?.cost ?? "0")));
  const parts = [...call.parts, data];
  call.parts = [];
  answerParts(res.status(200), parts);
}

/** `ending` closes a stream that has begun, where the worker knows how. */
export function writeError({ res, codec, payload, hasContent }: OpenCall, error: ServiceError, ending?: string): void {
  if (res.headersSent) res.end(ending ?? codec.streamError(error, payload.requestId, hasContent));
  else answerError(res, error, codec.error(error, payload.requestId));
}
