/**
 * Models inside the worker, without network and without a key, for building and testing a client. The same request gets
 * the same answer, as fast as it can be read.
 *
 * Chat quotes the last user message, or the results of tools that stand at the end; it says the kind, size and bytes of
 * images that came as data addresses. It calls functions that the last user message names (tools.ts) with arguments made
 * for their schema, and answers `response_format` with an object or a value that satisfies the schema (schema.ts). `stop`,
 * `n`, `seed` and the output cap work. Tokens are counted exactly, by a rule of its own (tokens.ts): 3 a message, 256 an
 * image, and the text of messages, tools and schema.
 *
 * A user message that consists of one of these triggers an event:
 *   error:400 error:429 error:502 error:503 error:504   the call fails with that status
 *   slow:<ms>            the first token comes after so many milliseconds
 *   tokens:<n>           an answer of n tokens, unless the cap cuts it
 *   stream-error:<n>     the stream breaks after n chunks (a JSON answer fails)
 *
 * Embeddings are hashed words and trigrams (embeddings.ts), 256 dimensions unless `dimensions` asks for 1 to 3072.
 *
 * Files are made by task (media/), from these fields of the input:
 *   images         prompt, n (1 to 4), size (WxH, 16 to 2048 each; 512x512), image (an upload or several, which the answer
 *                  describes): PNG files, each a gradient whose colors follow from the input
 *   speech         text (up to 4096 characters), voice (any name: another name, another pitch), format (wav): a WAV file,
 *                  16 bits, mono, 24 kHz, a tone for each letter; 15 characters a second and at least 0.3 s
 *   transcription  file (an upload, up to 25 MB), prompt (for triggers): its kind, length and bytes; no file
 *   video          prompt, duration (1 to 20, whole seconds), resolution (320x240, 640x360, 1280x720), image (an upload): an
 *                  MP4 file that repeats a recorded second, H.264 Constrained Baseline, 24 frames a second, no sound. It runs
 *                  as a job that another worker can continue
 *
 * A prompt (or text) that consists of one of these triggers an event:
 *   error:<status>       as above
 *   slow:<ms>            the work takes so long
 *   deliver:<n>          at most n images, or seconds of the video, are generated and charged
 */
import { setImmediate } from "node:timers/promises";
import { type Clock, sleep } from "#platform/clock";
import type { JsonObject, Provider, UpstreamCall } from "../provider.ts";
import { embed } from "./embeddings.ts";
import { generate } from "./media/index.ts";
import { type Choice, lastUserMessage, type Reply, replyTo } from "./reply.ts";
import { type ChatRequest, parseChat, textOf } from "./request.ts";
import { brokenOff, triggerOf } from "./triggers.ts";

/** The event loop gets a turn after so many chunks. */
const turnChunks = 64;

export function createLocal({ clock }: { clock: Clock }): Provider {
  const begin = async ({ body, signal }: UpstreamCall) => {
    const request = parseChat(body);
    const { delayMs, speech, breakAfterChunks } = triggerOf(textOf(lastUserMessage(request)), "messages");
    if (delayMs) await sleep(clock, delayMs, signal);
    const reply = await replyTo(request, speech);
    signal.throwIfAborted();
    const common = {
      id: `chatcmpl-local-${fingerprint(request)}`,
      created: Math.floor(clock.now() / 1000),
      model: request.model,
      system_fingerprint: "fp_local",
    };
    return { reply, common, breakAfterChunks };
  };

  return {
    speaks: ["chat"],
    async answer(call) {
      const { reply, common, breakAfterChunks } = await begin(call);
      if (breakAfterChunks !== undefined) throw brokenOff();
      const choices = reply.choices.map((choice, index) => ({
        index,
        message: messageOf(choice, index, common.id),
        logprobs: null,
        finish_reason: choice.finishReason,
      }));
      return { ...common, object: "chat.completion", choices, usage: reply.usage };
    },
    async *stream(call) {
      const { reply, common, breakAfterChunks } = await begin(call);
      let together: JsonObject[] = [];
      let sent = 0;
      let broken = false;
      for (const fields of chunksOf(reply, common.id)) {
        broken = sent++ === breakAfterChunks;
        if (broken) break;
        together.push({ ...common, object: "chat.completion.chunk", ...fields });
        if (together.length < turnChunks) continue;
        yield together;
        together = [];
        await setImmediate();
        call.signal.throwIfAborted();
      }
      if (together.length > 0) yield together;
      if (broken) throw brokenOff();
    },
    embed: ({ body, signal }) => embed(body, signal),
    generate: (call) => generate(call, clock),
    takesLinks: false,
    close: () => Promise.resolve(),
  };
}

const callId = (id: string, choice: number, call: number) => `call_${id.slice(-8)}_${choice}_${call}`;

function messageOf({ text, calls }: Choice, index: number, id: string) {
  const toolCalls = calls.map(({ name, pieces }, call) => ({
    id: callId(id, index, call),
    type: "function",
    function: { name, arguments: pieces.join("") },
  }));
  return {
    role: "assistant",
    content: text?.join("") ?? null,
    refusal: null,
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  };
}

function* chunksOf({ choices, usage }: Reply, id: string): Generator<JsonObject, void, undefined> {
  for (const [index, { text, calls, finishReason }] of choices.entries()) {
    const chunk = (delta: object, finish: string | null = null) => ({
      choices: [{ index, delta, logprobs: null, finish_reason: finish }],
    });
    yield chunk({ role: "assistant", content: text ? "" : null, refusal: null });
    for (const piece of text ?? []) yield chunk({ content: piece });
    for (const [at, { name, pieces }] of calls.entries()) {
      const begun = { index: at, id: callId(id, index, at), type: "function", function: { name, arguments: "" } };
      yield chunk({ tool_calls: [begun] });
      for (const piece of pieces) yield chunk({ tool_calls: [{ index: at, function: { arguments: piece } }] });
    }
    yield chunk({}, finishReason);
  }
  yield { choices: [], usage };
}

/** Eight digits that differ between requests, so that the tool calls of a conversation get different ids. */
function fingerprint(request: ChatRequest): string {
  const seen = `${request.messages.length}${request.seed ?? ""}${textOf(lastUserMessage(request)).slice(0, 4_096)}`;
  let hash = 0x811c9dc5;
  for (let at = 0; at < seen.length; at++) hash = Math.imul(hash ^ seen.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
