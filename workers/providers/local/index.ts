/**
 * Models inside the worker, without a network or a key, for building and testing clients: docs/guides/formats.md, "The local
 * models", says what they answer. Equal requests get equal answers, as fast as they can be read. Each file documents its
 * task, and its schema the fields that it reads; request.ts has the triggers.
 */
import { setImmediate } from "node:timers/promises";
import type { JsonObject } from "#json";
import { type Clock, sleep } from "#platform/clock";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import { randomBase62 } from "#platform/ids";
import { chunkJoiner } from "../../conversion/index.ts";
import type { Counting } from "../../counting/index.ts";
import { type Provider, runTask, type UpstreamCall } from "../provider.ts";
import { makeSpeech, transcribe } from "./audio.ts";
import { embed } from "./embeddings.ts";
import { makeImages } from "./images.ts";
import { hashOf } from "./inputs.ts";
import { readMedia } from "./media.ts";
import { moderate } from "./moderation.ts";
import { type Reply, replyTo } from "./reply.ts";
import {
  brokenOff,
  type ChatRequest,
  chatRequest,
  lastUserMessage,
  parseRequest,
  textOf,
  triggerOf,
} from "./request.ts";
import { rerank } from "./rerank.ts";
import { makeVideo } from "./video.ts";

const tasks = { images: makeImages, speech: makeSpeech, transcription: transcribe, video: makeVideo };

export function createLocal({ clock, counting }: { clock: Clock; counting: Counting }): Provider {
  const begin = async ({ body, signal }: UpstreamCall): Promise<Begun> => {
    const request = parseRequest(chatRequest, body);
    const { delayMs, speech, breakAfterChunks } = triggerOf(textOf(lastUserMessage(request)), "messages");
    if (delayMs) await sleep(clock, delayMs, signal);
    const media = await readMedia(request, { counting, signal });
    const reply = await replyTo(request, media, speech);
    signal.throwIfAborted();
    const common = {
      // Requests are found by the ids of their answers, so equal answers have different ids.
      id: `chatcmpl-local-${randomBase62(24)}`,
      created: Math.floor(clock.now() / 1000),
      model: request.model,
      system_fingerprint: "fp_local",
    };
    return { reply, common, fingerprint: fingerprintOf(request), breakAfterChunks };
  };

  return {
    speaks: ["chat"],
    async answer(call) {
      const begun = await begin(call);
      if (begun.breakAfterChunks !== undefined) throw brokenOff();
      const joiner = chunkJoiner();
      for await (const chunks of inTurns(begun, call.signal)) for (const chunk of chunks) joiner.add(chunk);
      return joiner.answer();
    },
    async *stream(call) {
      yield* inTurns(await begin(call), call.signal);
    },
    embed: ({ body, signal }) => embed(body, signal),
    moderate: (call) => moderate(clock, call),
    rerank: (call) => rerank(clock, call),
    generate: (call) => unlessAborted(call.signal, () => runTask(tasks, clock, call)),
    takesLinks: false,
    close: () => Promise.resolve(),
  };
}

interface Begun {
  readonly reply: Reply;
  /** Fields of every chunk. */
  readonly common: JsonObject;
  /** A part of the ids of its tool calls. */
  readonly fingerprint: string;
  /** Set if the answer is to break off. */
  readonly breakAfterChunks: number | undefined;
}

/** The event loop gets a turn after this many chunks. */
const turnChunks = 64;

async function* inTurns({ reply, common, fingerprint, breakAfterChunks }: Begun, signal: AbortSignal) {
  let together: JsonObject[] = [];
  let sent = 0;
  let broken = false;
  for (const fields of chunksOf(reply, fingerprint)) {
    broken = sent++ === breakAfterChunks;
    if (broken) break;
    together.push({ ...common, object: "chat.completion.chunk", ...fields });
    if (together.length < turnChunks) continue;
    yield together;
    together = [];
    await setImmediate();
    signal.throwIfAborted();
  }
  if (together.length > 0) yield together;
  if (broken) throw brokenOff();
}

const callId = (fingerprint: string, choice: number, call: number) => `call_${fingerprint}_${choice}_${call}`;

function* chunksOf({ choices, usage }: Reply, fingerprint: string): Generator<JsonObject, void, undefined> {
  for (const [index, { text, calls, finishReason }] of choices.entries()) {
    const chunk = (delta: object, finish: string | null = null) => ({
      choices: [{ index, delta, logprobs: null, finish_reason: finish }],
    });
    yield chunk({ role: "assistant", content: text ? "" : null, refusal: null });
    for (const piece of text ?? []) yield chunk({ content: piece });
    for (const [at, { name, pieces }] of calls.entries()) {
      const begun = {
        index: at,
        id: callId(fingerprint, index, at),
        type: "function",
        function: { name, arguments: "" },
      };
      yield chunk({ tool_calls: [begun] });
      for (const piece of pieces) yield chunk({ tool_calls: [{ index: at, function: { arguments: piece } }] });
    }
    yield chunk({}, finishReason);
  }
  yield { choices: [], usage };
}

/** Eight digits that differ between requests, so that the tool calls of a conversation get different ids. */
const fingerprintOf = (request: ChatRequest): string =>
  hashOf(
    String(request.messages.length),
    String(request.seed),
    textOf(lastUserMessage(request)).slice(0, 4_096),
  ).toString("hex", 0, 4);
