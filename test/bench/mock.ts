import { createServer, type ServerResponse } from "node:http";
import { burstOf, burstPrompt, formatAt, madeStreams, pacedStream } from "./format-streams.ts";
import { jsonContent, pacedGapMs, usage } from "./workload.ts";

/**
 * A mock provider with negligible cost: a server on `PORT` whose responses are prepared in advance. It answers as
 * OpenAI does, and streams in every format. `PUT` with a `Behavior` as JSON changes its later answers, and `GET`
 * returns the number of open calls.
 */
export interface Behavior {
  /** The wait of each answer for its first byte. */
  readonly delayMs: number;
  /** Streams 100 chunks, one every 33 ms, in place of 40 as fast as possible. */
  readonly paced: boolean;
}

const envelope = { id: "chatcmpl-bench", created: 1_750_000_000, model: "gpt-4.1-mini" };
const answer = Buffer.from(
  JSON.stringify({
    ...envelope,
    object: "chat.completion",
    choices: [
      { index: 0, message: { role: "assistant", content: jsonContent }, logprobs: null, finish_reason: "stop" },
    ],
    usage,
  }),
);
const bytesOf = (pieces: readonly string[]) => pieces.map((piece) => Buffer.from(piece));
const streams = Object.fromEntries(Object.entries(madeStreams).map(([format, pieces]) => [format, bytesOf(pieces)]));
const paced = bytesOf(pacedStream);

function writeJson(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
  res.end(answer);
}

/** Returns a function that writes the next chunk and reports whether more follow. */
function startStream(res: ServerResponse, pieces: readonly Buffer[]): () => boolean {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  let next = 0;
  return () => {
    if (res.destroyed) return false;
    const piece = pieces[next++];
    const hasMore = next < pieces.length;
    if (hasMore) res.write(piece);
    else res.end(piece);
    return hasMore;
  };
}

/** Writes each chunk in its own turn of the event loop: a provider's chunks arrive one by one. */
function writeStream(res: ServerResponse, path: string): void {
  const write = startStream(res, streams[formatAt(path)] ?? []);
  const writeNext = () => {
    if (write()) setImmediate(writeNext);
  };
  writeNext();
}

function writeBurst(res: ServerResponse, path: string): void {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  res.end(burstOf(formatAt(path)));
}

/**
 * One timer for all paced streams. Each stream stays in the slot in which it began, so chunks are spread over the gap.
 */
const slots = Array.from({ length: 11 }, () => new Set<() => boolean>());
const slotMs = pacedGapMs / slots.length;
let timer: NodeJS.Timeout | undefined;
let turn = 0;
let turnAt = 0;

function writePaced(): void {
  for (; turnAt <= performance.now(); turnAt += slotMs) {
    const slot = slots[turn++ % slots.length];
    for (const write of slot ?? []) if (!write()) slot?.delete(write);
  }
  if (slots.some(({ size }) => size > 0)) return;
  clearInterval(timer);
  timer = undefined;
}

function startPaced(res: ServerResponse): void {
  const write = startStream(res, paced);
  write();
  if (!timer) {
    turnAt = performance.now() + slotMs;
    timer = setInterval(writePaced, slotMs);
  }
  // The previous slot comes last: a whole gap from now.
  slots[(turn + slots.length - 1) % slots.length]?.add(write);
}

let behavior: Behavior = { delayMs: 0, paced: false };

function complete(res: ServerResponse, path: string, { stream }: { readonly stream?: boolean }): void {
  if (!stream && !path.includes(":stream")) writeJson(res);
  else if (behavior.paced) startPaced(res);
  else writeStream(res, path);
}

let open = 0;

const server = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => parts.push(part));
  req.on("end", () => {
    const body = Buffer.concat(parts).toString();
    if (req.method === "POST") {
      open++;
      res.once("close", () => open--);
      const asked = JSON.parse(body) as { readonly stream?: boolean };
      const path = (req.url ?? "").replace(/\?.*$/, "");
      if (body.includes(burstPrompt)) writeBurst(res, path);
      else if (behavior.delayMs === 0) complete(res, path, asked);
      else setTimeout(complete, behavior.delayMs, res, path, asked);
    } else {
      if (req.method === "PUT") behavior = JSON.parse(body) as Behavior;
      res.end(String(open));
    }
  });
});
// An idle connection must not be closed just as its owner sends the next request.
server.keepAliveTimeout = 120_000;
server.listen({ host: "127.0.0.1", port: Number(process.env.PORT), backlog: 2_048 });
