import type { ServerResponse } from "node:http";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { ProviderAnswer } from "./mock-provider.ts";

export function sendWhole(outgoing: ServerResponse, answer: ProviderAnswer): void {
  const { status = 200, headers, body, encoding, cutAfter } = answer;
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const bytes = compress(Buffer.from(text ?? ""), encoding);
  outgoing.writeHead(status, {
    "content-type": "application/json",
    "content-length": bytes.length,
    ...(encoding && { "content-encoding": encoding }),
    ...headers,
  });
  if (cutAfter === undefined) return void outgoing.end(bytes);
  outgoing.write(bytes.subarray(0, bytes.length >> 1), () => cut(outgoing));
}

export async function sendStream(
  outgoing: ServerResponse,
  { status = 200, headers, encoding, beforeEvent, beforeEnd, cutAfter }: ProviderAnswer,
  frames: readonly Buffer[],
  onSent: () => void,
): Promise<void> {
  outgoing.writeHead(status, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    ...(encoding && { "content-encoding": encoding }),
    ...headers,
  });
  if (encoding) return void outgoing.end(compress(Buffer.concat(frames), encoding));
  outgoing.flushHeaders();
  for (const [index, frame] of frames.entries()) {
    const gate = beforeEvent?.[index];
    if (gate) await gate;
    if (outgoing.destroyed) return;
    if (index === cutAfter) return cut(outgoing);
    // The last bytes before a cut must be out before the connection goes.
    if (index + 1 === cutAfter) await new Promise<void>((sent) => outgoing.write(frame, () => sent()));
    else if (!outgoing.write(frame)) await drained(outgoing);
    onSent();
  }
  if (beforeEnd) await beforeEnd;
  outgoing.end();
}

const drained = (outgoing: ServerResponse) =>
  new Promise<void>((resolve) => {
    const done = () => {
      outgoing.off("drain", done);
      outgoing.off("close", done);
      resolve();
    };
    outgoing.once("drain", done);
    outgoing.once("close", done);
  });

const compress = (bytes: Buffer, encoding: ProviderAnswer["encoding"]) =>
  encoding === "gzip" ? gzipSync(bytes) : encoding === "br" ? brotliCompressSync(bytes) : bytes;

/** A connection that breaks: no end of the answer, a reset towards the client. */
export function cut(outgoing: ServerResponse): void {
  outgoing.destroy(new Error("cut by the script"));
  outgoing.socket?.resetAndDestroy();
}
