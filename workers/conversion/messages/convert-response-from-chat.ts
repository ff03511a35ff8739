import { count, type JsonObject, list, object, text } from "#json";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity } from "../converter.ts";
import { failureOf } from "../failed-choice.ts";
import { opaqueDetails } from "../reasoning-state.ts";
import { argumentsObject, toolCallId } from "../tool-calls.ts";
import { tokenUsage } from "../usage.ts";
import { detailsToBlocks, foreignBlocks } from "./reasoning.ts";

const messageId = ({ id }: ResponseIdentity): string =>
  id.startsWith("msg_") ? id : `msg_${id.replace(/^.*[-_]/, "")}`;

/**
 * Maps the end of a chat choice to Messages fields. Chat does not name the stop sequence; some servers put it into the
 * choice's `stop_reason`. Some servers also end an answer that has tool calls with `stop`. A failed answer becomes a
 * refusal, the only reason that clients do not treat as success.
 */
export function mapFinishReason(
  choice: JsonObject,
  has: { readonly calls: boolean; readonly refusal: boolean },
  { stop_sequences }: JsonObject,
): JsonObject {
  const failure = failureOf(choice);
  if (failure !== undefined)
    return {
      stop_reason: "refusal",
      stop_sequence: null,
      stop_details: { type: "refusal", category: null, explanation: failure },
    };
  const { finish_reason, stop_reason } = choice;
  const isSequence = finish_reason === "stop" && Array.isArray(stop_sequences) && stop_sequences.includes(stop_reason);
  const reason = (): string => {
    if (finish_reason === "length") return "max_tokens";
    if (finish_reason === "content_filter" || has.refusal) return "refusal";
    if (isSequence) return "stop_sequence";
    return has.calls ? "tool_use" : "end_turn";
  };
  return { stop_reason: reason(), stop_sequence: isSequence ? stop_reason : null, stop_details: null };
}

/** Includes the fields that the client's types require and chat has no value for. */
export const noUsage: JsonObject = {
  cache_creation: null,
  inference_geo: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
};

export function convertUsageFromChat(usage: unknown, estimate: { input: number; output: number }): JsonObject {
  const counted = tokenUsage(usage);
  if (!counted) return { ...noUsage, input_tokens: estimate.input, output_tokens: estimate.output };
  const { prompt_tokens, prompt_tokens_details, completion_tokens_details } = object(usage);
  const { cache_write_tokens } = object(prompt_tokens_details);
  const uncached = count(prompt_tokens) - counted.cached_input;
  const written = Math.min(uncached, count(cache_write_tokens));
  const thinking = count(object(completion_tokens_details)["reasoning_tokens"]);
  return {
    ...noUsage,
    input_tokens: uncached - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: counted.cached_input,
    output_tokens: counted.output + counted.audio_output,
    output_tokens_details: thinking > 0 ? { thinking_tokens: thinking } : null,
  };
}

/** An answer without content, with all fields that the client's types require. */
export const emptyMessage = (identity: ResponseIdentity): JsonObject => ({
  id: messageId(identity),
  type: "message",
  role: "assistant",
  model: identity.model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  container: null,
  diagnostics: null,
});

export const textBlock = (value: string): JsonObject => ({ type: "text", text: value });
export const toolBlock = (id: string, name: string, input: JsonObject): JsonObject => ({
  type: "tool_use",
  id,
  name,
  input,
});

export function convertResponseFromChat(
  answer: JsonObject,
  identity: ResponseIdentity,
  request: JsonObject,
): JsonObject {
  const choice = firstChoice(answer["choices"]) ?? {};
  const message = object(choice["message"]);
  const details = detailsToBlocks(message["reasoning_details"]);
  const reasoning = reasoningText(message);
  const refusal = text(message["refusal"]);
  const answerText = contentText(message["content"]) + refusal;
  const calls = list(message["tool_calls"]).map((call, at) => {
    const { name, arguments: args } = object(call["function"]);
    return toolBlock(text(call["id"]) || toolCallId(identity.id, 0, at), text(name), argumentsObject(args));
  });
  return {
    ...emptyMessage(identity),
    content: [
      ...(details.length > 0 ? details : foreignBlocks(reasoning, opaqueDetails(message["reasoning_details"]))),
      ...(answerText ? [textBlock(answerText)] : []),
      ...calls,
    ],
    ...mapFinishReason(choice, { calls: calls.length > 0, refusal: refusal !== "" }, request),
    usage: convertUsageFromChat(answer["usage"], { input: 0, output: 0 }),
  };
}
