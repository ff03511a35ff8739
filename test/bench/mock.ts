import { setTimeout as wait } from "node:timers/promises";
import { type MockRequest, startMockProvider, type Usual } from "../support/mock-provider.ts";
import { burstOf, burstPrompt, formatAt, madeStreams, pacedStream, type StreamFormat } from "./format-streams.ts";
import { jsonContent, pacedGapMs, usage } from "./workload.ts";

/**
 * A mock provider with negligible cost: a server on `PORT` whose responses are prepared in advance. It answers as
 * OpenAI does, and streams in every format. `PUT` with a `Behavior` as JSON changes its later answers, and `GET`
 * returns a `MockState`.
 */
export interface Behavior {
  /** The wait of each answer for its first byte. */
  readonly delayMs: number;
  /** Streams 100 chunks, one every 33 ms, in place of 40 as fast as possible. */
  readonly paced: boolean;
}

export interface MockState {
  /** The calls that run now, and all calls so far. */
  readonly open: number;
  readonly calls: number;
}

const bytesOf = (pieces: readonly string[]) => pieces.map((piece) => Buffer.from(piece));
const message = { role: "assistant", content: jsonContent };
const whole = {
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_750_000_000,
  model: "gpt-4.1-mini",
  choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
  usage,
};
const json = { body: Buffer.from(JSON.stringify(whole)) };
const streams = Object.fromEntries(Object.entries(madeStreams).map(([format, pieces]) => [format, bytesOf(pieces)]));
const paced = bytesOf(pacedStream);
/** Answers 256 texts with 16 MB. */
const embeddings = (): Usual => {
  const numbers = JSON.stringify(Array.from({ length: 3_072 }, (_, at) => Math.sin(at)));
  const items = Array.from({ length: 256 }, (_, index) => `{"index":${index},"embedding":${numbers}}`);
  const tokens = `"usage":{"prompt_tokens":256,"total_tokens":256}`;
  return { body: Buffer.from(`{"object":"list","data":[${items.join()}],${tokens}}`) };
};
let madeEmbeddings: Usual | undefined;
const bursts = new Map<StreamFormat, Usual>();

/** Each chunk comes when `later` says. A generator would cost more. */
function stream(pieces: readonly Buffer[], later: (send: () => void, index: number) => unknown): AsyncIterable<Buffer> {
  let at = 0;
  const next = () =>
    new Promise<IteratorResult<Buffer>>((resolve) => {
      const value = pieces[at];
      if (value) later(() => resolve({ done: false, value }), at++);
      else resolve({ done: true, value });
    });
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Each in its own turn of the event loop: a provider's chunks arrive one by one. */
const oneByOne = (pieces: readonly Buffer[]) =>
  stream(pieces, (send, index) => (index === 0 ? send() : setImmediate(send)));

/** One timer for all paced streams. Each stays in the slot in which it began, so chunks are spread over the gap. */
const slots = Array.from({ length: 11 }, (): (() => void)[] => []);
const slotMs = pacedGapMs / slots.length;
let turn = 0;
let turnAt = performance.now();

function sendDue(): void {
  if (turnAt > performance.now()) return;
  turnAt += slotMs;
  for (const send of slots[turn++ % slots.length]?.splice(0) ?? []) send();
  // A stream takes its next turn in a later one of the event loop.
  setImmediate(sendDue);
}
setInterval(sendDue, slotMs);

function inPace(): AsyncIterable<Buffer> {
  const slot = slots[(turn + slots.length - 1) % slots.length];
  return stream(paced, (send, index) => (index === 0 ? send() : slot?.push(send)));
}

function burst(format: StreamFormat): Usual {
  const made = bursts.get(format) ?? { events: bytesOf(burstOf(format)) };
  bursts.set(format, made);
  return made;
}

let behavior: Behavior = { delayMs: 0, paced: false };
let calls = 0;

function answerTo({ path, body, bytes }: MockRequest): Usual {
  if (path.endsWith("/embeddings")) return (madeEmbeddings ??= embeddings());
  const format = formatAt(path.replace(/\?.*$/, ""));
  if (bytes.includes(burstPrompt)) return burst(format);
  if (body["stream"] !== true && !path.includes(":stream")) return json;
  return { events: behavior.paced ? inPace() : oneByOne(streams[format] ?? []) };
}

const mock = await startMockProvider(
  { usual: answerTo, frame: String },
  { port: Number(process.env.PORT), record: false },
);
mock.always(({ method, bytes }) => {
  if (method === "POST") {
    calls++;
    return behavior.delayMs > 0 ? { beforeHeaders: wait(behavior.delayMs) } : {};
  }
  if (method === "PUT") behavior = JSON.parse(bytes.toString()) as Behavior;
  return { body: JSON.stringify({ open: mock.inFlight(), calls } satisfies MockState) };
});
