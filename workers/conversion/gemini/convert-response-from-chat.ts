import { formedRequest } from "#formats";
import { byteLength, count, isSet, type JsonObject, list, number, object, omitNullish, text } from "#json";
import { contentText, indexOf, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity, StreamWriter, TokenEstimate } from "../converter.ts";
import { failureOf } from "../failed-choice.ts";
import { encodeReasoning, opaqueDetails } from "../reasoning-state.ts";
import { argumentsOf, callDelta, callTracker, toolCallId } from "../tool-calls.ts";
import { tokenUsage } from "../usage.ts";
import type { StreamFraming } from "./native.ts";
import { signatureOf } from "./reasoning.ts";

interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  readonly signature: string;
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
function candidateOf(
  parts: readonly JsonObject[],
  calls: readonly ToolCall[],
  end: JsonObject,
  hasRefusal: boolean,
  signature: string,
): JsonObject {
  const callParts: JsonObject[] = [];
  const malformed: string[] = [];
  for (const { id, name, args: input, signature } of calls) {
    const args = argumentsOf(input);
    if (args)
      callParts.push(omitNullish({ functionCall: { id, name, args }, thoughtSignature: signature || undefined }));
    else malformed.push(`${name}(${text(input)})`);
  }
  const content = contentOf(signParts([...parts, ...callParts], signature));
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

export function convertResponseFromChat(
  response: JsonObject,
  identity: ResponseIdentity,
  request: JsonObject,
): JsonObject {
  const withThoughts = includesThoughts(request);
  const withState = hasTools(request);
  const candidates = list(response["choices"]).map((choice, position) => {
    const index = indexOf(choice, position);
    const message = object(choice["message"]);
    const calls = list(message["tool_calls"]).map((call, c): ToolCall => {
      const { name, arguments: args } = object(call["function"]);
      const id = text(call["id"]) || toolCallId(identity.id, index, c);
      return { id, name: text(name), args, signature: signatureOf(call) };
    });
    const parts = textParts(message, withThoughts);
    const details = opaqueDetails(message["reasoning_details"]);
    const signature = withState ? reasoningSignature(reasoningText(message), details) : "";
    return {
      ...candidateOf(parts, calls, choice, text(message["refusal"]) !== "", signature),
      index,
      ...logprobsFromChat(choice["logprobs"]),
    };
  });
  return {
    candidates,
    usageMetadata: convertUsageFromChat(response["usage"], { input: 0, output: 0 }),
    modelVersion: identity.model,
    responseId: identity.id,
  };
}

interface Candidate {
  readonly calls: (ToolCall & { name: string; args: string; signature: string })[];
  readonly trackCall: ReturnType<typeof callTracker>;
  /** The choice that ended it. */
  end: JsonObject;
  hasRefusal: boolean;
  /** Collected only if the request has tools. */
  reasoning: string;
  readonly details: JsonObject[];
}

/**
 * Text is written as it arrives. Tool calls, which the format cannot split, and finish reasons are written with the last
 * event.
 */
export const convertStreamFromChat =
  (framing: StreamFraming) =>
  (identity: ResponseIdentity, request: JsonObject): StreamWriter => {
    const { frame, end } = framing();
    const withThoughts = includesThoughts(request);
    const withState = hasTools(request);
    const candidates = new Map<number, Candidate>();
    let usage: unknown;
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

    const event = (fields: JsonObject): string =>
      frame({ ...fields, modelVersion: identity.model, responseId: identity.id });

    const addChoice = (choice: JsonObject, position: number): JsonObject[] => {
      const index = indexOf(choice, position);
      const candidate = candidateAt(index);
      const delta = object(choice["delta"]);
      for (const call of list(delta["tool_calls"])) addCall(candidate, call);
      candidate.hasRefusal ||= text(delta["refusal"]) !== "";
      if (choice["finish_reason"]) candidate.end = choice;
      if (withState) {
        candidate.reasoning += reasoningText(delta);
        candidate.details.push(...opaqueDetails(delta["reasoning_details"]));
      }
      const parts = textParts(delta, withThoughts);
      if (parts.length === 0) return [];
      bytes += parts.reduce((sum, part) => sum + byteLength(part["text"]), 0);
      return [{ content: contentOf(parts), index, ...logprobsFromChat(choice["logprobs"]) }];
    };

    return {
      write(chunk) {
        if (chunk["usage"] != null) usage = chunk["usage"];
        const pieces = list(chunk["choices"]).flatMap(addChoice);
        return pieces.length > 0 ? event({ candidates: pieces }) : "";
      },
      usage: () => usage,
      outputBytes: () => bytes,
      end(estimate) {
        if (candidates.size === 0) candidateAt(0);
        const last = [...candidates].map(([index, { calls, end: last, hasRefusal, reasoning, details }]) => ({
          ...candidateOf([], calls, last, hasRefusal, reasoningSignature(reasoning, details)),
          index,
        }));
        return event({ candidates: last, usageMetadata: convertUsageFromChat(usage, estimate) }) + end();
      },
    };
  };
