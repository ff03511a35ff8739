import { formedRequest } from "#formats";
import { byteLength, count, isSet, type JsonObject, list, number, object, omitNullish, text } from "#json";
import { contentText, indexOf, reasoningText } from "../chat/fields.ts";
import { asChunk } from "../chat/whole-answers.ts";
import type { ResponseIdentity, StreamWriter, TokenEstimate } from "../converter.ts";
import { failureOf } from "../failed-choice.ts";
import { encodeReasoning, opaqueDetails } from "../reasoning-state.ts";
import { argumentsOf, callDelta, callTracker, toolCallId } from "../tool-calls.ts";
import { tokenUsage } from "../usage.ts";
import type { StreamFraming } from "./native.ts";
import { signatureOf } from "./reasoning.ts";

interface ToolCall {
  readonly id: string;
  name: string;
  args: string;
  signature: string;
}

/** A signature that carries the reasoning of an answer into the next turn; only models that call tools require it. */
const reasoningSignature = (reasoning: string, details: readonly JsonObject[]): string =>
  reasoning || details.length > 0 ? encodeReasoning({ reasoning_content: reasoning, reasoning_details: details }) : "";

/** Signs the part that Google's models sign: the first call, else the last text. */
function signParts(parts: readonly JsonObject[], signature: string): readonly JsonObject[] {
  if (!signature || parts.some(({ thoughtSignature }) => thoughtSignature)) return parts;
  const call = parts.findIndex(({ functionCall }) => functionCall !== undefined);
  const at = call >= 0 ? call : parts.findLastIndex(({ thought }) => thought !== true);
  if (at < 0) return [...parts, { text: "", thoughtSignature: signature }];
  return parts.map((part, p) => (p === at ? { ...part, thoughtSignature: signature } : part));
}

/** The parts of a message or a delta, except its calls. */
function textParts(message: JsonObject, withThoughts: boolean): JsonObject[] {
  const thought = withThoughts ? reasoningText(message) : "";
  const content = contentText(message["content"]) + text(message["refusal"]);
  const signature = signatureOf(message);
  return [
    ...(thought ? [{ text: thought, thought: true }] : []),
    ...(content || signature ? [{ text: content, ...(signature && { thoughtSignature: signature }) }] : []),
  ];
}

/** Clients reject candidates without parts. */
const contentOf = (parts: readonly JsonObject[]): JsonObject => ({
  parts: parts.length > 0 ? parts : [{ text: "" }],
  role: "model",
});

/** A candidate's content and end. Calls whose arguments are not an object can only be reported in the finish message. */
function candidateOf(parts: readonly JsonObject[], { calls, end, hasRefusal, reasoning, details }: Candidate) {
  const callParts: JsonObject[] = [];
  const malformed: string[] = [];
  for (const { id, name, args: input, signature } of calls) {
    const args = argumentsOf(input);
    if (args)
      callParts.push(omitNullish({ functionCall: { id, name, args }, thoughtSignature: signature || undefined }));
    else malformed.push(`${name}(${input})`);
  }
  const content = contentOf(signParts([...parts, ...callParts], reasoningSignature(reasoning, details)));
  const failure = failureOf(end);
  if (failure !== undefined) return { content, finishReason: "OTHER", finishMessage: failure };
  if (end["finish_reason"] === "length") return { content, finishReason: "MAX_TOKENS" };
  if (end["finish_reason"] === "content_filter" || hasRefusal) return { content, finishReason: "SAFETY" };
  if (malformed.length === 0) return { content, finishReason: "STOP" };
  const finishMessage = `Malformed function call: ${malformed.join(" ")}`;
  return { content, finishReason: "MALFORMED_FUNCTION_CALL", finishMessage };
}

function convertUsageFromChat(usage: unknown, estimate: TokenEstimate): JsonObject {
  const counted = tokenUsage(usage);
  const { prompt_tokens, completion_tokens_details } = object(usage);
  const prompt = counted ? count(prompt_tokens) : estimate.input;
  const completion = counted ? counted.output + counted.audio_output : estimate.output;
  const thoughts = counted ? Math.min(completion, count(object(completion_tokens_details)["reasoning_tokens"])) : 0;
  const cached = counted?.cached_input ?? 0;
  const audio = counted?.audio_input ?? 0;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion - thoughts,
    totalTokenCount: prompt + completion,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(audio > 0 && {
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: prompt - audio },
        { modality: "AUDIO", tokenCount: audio },
      ],
    }),
  };
}

/** Tells whether the caller requested thoughts; without `includeThoughts` an answer has none. */
function includesThoughts(request: JsonObject): boolean {
  const { generationConfig } = object(formedRequest(request));
  return object(object(generationConfig)["thinkingConfig"])["includeThoughts"] === true;
}

const hasTools = (request: JsonObject): boolean => isSet(object(formedRequest(request))["tools"]);

function logprobsFromChat(logprobs: unknown): JsonObject {
  const tokens = list(object(logprobs)["content"]);
  if (tokens.length === 0) return {};
  const candidate = (token: JsonObject): JsonObject =>
    omitNullish({ token: text(token["token"]), logProbability: number(token["logprob"]) });
  return {
    logprobsResult: {
      chosenCandidates: tokens.map(candidate),
      topCandidates: tokens.map((token) => ({ candidates: list(token["top_logprobs"]).map(candidate) })),
    },
  };
}

interface Candidate {
  readonly calls: ToolCall[];
  readonly trackCall: ReturnType<typeof callTracker>;
  /** The choice that ended it. */
  end: JsonObject;
  hasRefusal: boolean;
  /** Collected only if the request has tools. */
  reasoning: string;
  readonly details: JsonObject[];
}

/** Reads the candidates of an answer from chat chunks. */
function candidateReader(identity: ResponseIdentity, request: JsonObject) {
  const withThoughts = includesThoughts(request);
  const withState = hasTools(request);
  const candidates = new Map<number, Candidate>();
  let bytes = 0;

  const candidateAt = (index: number): Candidate => {
    const existing = candidates.get(index);
    if (existing) return existing;
    const trackCall = callTracker((call) => toolCallId(identity.id, index, call));
    const candidate: Candidate = { calls: [], trackCall, end: {}, hasRefusal: false, reasoning: "", details: [] };
    candidates.set(index, candidate);
    return candidate;
  };

  const addCall = ({ calls, trackCall }: Candidate, delta: JsonObject): void => {
    const { args, ...marks } = callDelta(delta);
    const tracked = trackCall(marks);
    const call = (calls[tracked.call] ??= { id: text(tracked.id), name: "", args: "", signature: "" });
    if (call.name === "") {
      call.name = marks.name;
      bytes += byteLength(call.name);
    }
    call.args += args;
    call.signature ||= signatureOf(delta);
    bytes += byteLength(args);
  };

  return {
    /** The parts that a choice of a chunk adds to its candidate, except calls. */
    read(choice: JsonObject, position: number) {
      const index = indexOf(choice, position);
      const candidate = candidateAt(index);
      const delta = object(choice["delta"]);
      for (const call of list(delta["tool_calls"])) addCall(candidate, call);
      candidate.hasRefusal ||= text(delta["refusal"]) !== "";
      if (choice["finish_reason"]) candidate.end = choice;
      if (withState) {
        candidate.reasoning += reasoningText(delta);
        for (const detail of opaqueDetails(delta["reasoning_details"])) candidate.details.push(detail);
      }
      const parts = textParts(delta, withThoughts);
      bytes += parts.reduce((sum, part) => sum + byteLength(part["text"]), 0);
      return { index, parts, logprobs: logprobsFromChat(choice["logprobs"]) };
    },
    /** The candidate with its calls and its end; `parts` are those that were not written yet. */
    end: (index: number, parts: readonly JsonObject[] = []) => ({ ...candidateOf(parts, candidateAt(index)), index }),
    indexes: () => (candidates.size > 0 ? [...candidates.keys()] : [0]),
    bytes: () => bytes,
  };
}

export function convertResponseFromChat(
  response: JsonObject,
  identity: ResponseIdentity,
  request: JsonObject,
): JsonObject {
  const { choices, usage } = asChunk(response);
  const reader = candidateReader(identity, request);
  return {
    candidates: choices.map((choice, position) => {
      const { index, parts, logprobs } = reader.read(choice, position);
      return { ...reader.end(index, parts), ...logprobs };
    }),
    usageMetadata: convertUsageFromChat(usage, { input: 0, output: 0 }),
    modelVersion: identity.model,
    responseId: identity.id,
  };
}

/**
 * Text is written as it arrives. Tool calls, which the format cannot split, and finish reasons are written with the last
 * event.
 */
export const convertStreamFromChat =
  (framing: StreamFraming) =>
  (identity: ResponseIdentity, request: JsonObject): StreamWriter => {
    const { frame, end } = framing();
    const reader = candidateReader(identity, request);
    let usage: unknown;
    const event = (fields: JsonObject): string =>
      frame({ ...fields, modelVersion: identity.model, responseId: identity.id });

    return {
      write(chunk) {
        if (chunk["usage"] != null) usage = chunk["usage"];
        const pieces = list(chunk["choices"])
          .map((choice, position) => reader.read(choice, position))
          .filter(({ parts }) => parts.length > 0)
          .map(({ index, parts, logprobs }) => ({ content: contentOf(parts), index, ...logprobs }));
        return pieces.length > 0 ? event({ candidates: pieces }) : "";
      },
      usage: () => usage,
      outputBytes: reader.bytes,
      end(estimate) {
        const candidates = reader.indexes().map((index) => reader.end(index));
        return event({ candidates, usageMetadata: convertUsageFromChat(usage, estimate) }) + end();
      },
    };
  };
