import { count, isCount, type JsonObject, list, number, object, text } from "#json";
import { indexOf } from "../chat/fields.ts";
import { joinConverted } from "../chat/whole-answers.ts";
import { failedChoice } from "../failed-choice.ts";
import { chatToolCall, stringifyArguments, toolCallId } from "../tool-calls.ts";
import { signatureField } from "./reasoning.ts";

const contentFilterReasons =
  /^(SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII|MODEL_ARMOR|IMAGE_(SAFETY|PROHIBITED_CONTENT|RECITATION))$/;

const maxReasonCharacters = 100;

/**
 * The end of a candidate as fields of a chat choice; `finish_reason` is null until it has ended. The provider also says STOP
 * for tool calls. All reasons without a meaning in chat (MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, OTHER, ...) are
 * failures.
 */
export function mapFinishReasonToChat({ finishReason, finishMessage }: JsonObject, hasCalls: boolean): JsonObject {
  const reason = text(finishReason).slice(0, maxReasonCharacters);
  if (!reason || reason === "FINISH_REASON_UNSPECIFIED") return { finish_reason: null };
  const native_finish_reason = reason;
  if (reason === "STOP") return { finish_reason: hasCalls ? "tool_calls" : "stop", native_finish_reason };
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return { finish_reason: "length", native_finish_reason };
  if (contentFilterReasons.test(reason)) return { finish_reason: "content_filter", native_finish_reason };
  return { ...failedChoice(text(finishMessage) || `The model's answer ended with ${reason}.`), native_finish_reason };
}

const audioTokens = (details: unknown): number =>
  list(details).reduce((sum, { modality, tokenCount }) => sum + (modality === "AUDIO" ? count(tokenCount) : 0), 0);

/**
 * The provider's `usageMetadata` in chat shape. Returns undefined if it is missing or invalid. `promptTokenCount` includes
 * cached tokens but not the prompts of the provider's tools; `candidatesTokenCount` does not include thoughts.
 */
export function convertUsageToChat(usage: unknown): JsonObject | undefined {
  const metadata = object(usage);
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = metadata;
  if (![promptTokenCount, candidatesTokenCount ?? 0, thoughtsTokenCount ?? 0].every(isCount)) return undefined;
  const prompt = count(promptTokenCount) + count(metadata["toolUsePromptTokenCount"]);
  const thoughts = count(thoughtsTokenCount);
  const completion = count(candidatesTokenCount) + thoughts;
  const audioInput = audioTokens(metadata["promptTokensDetails"]) - audioTokens(metadata["cacheTokensDetails"]);
  const audioOutput = audioTokens(metadata["candidatesTokensDetails"]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count(metadata["cachedContentTokenCount"]),
      audio_tokens: Math.max(0, audioInput),
    },
    completion_tokens_details: { reasoning_tokens: thoughts, ...(audioOutput > 0 && { audio_tokens: audioOutput }) },
  };
}

/**
 * Converts a candidate, or a piece of one. `fields` are the fields of a chat message or delta that are set. `firstCall` is
 * the number of calls that the candidate had before this piece.
 */
function convertCandidate(candidate: JsonObject, responseId: unknown, index: number, firstCall = 0) {
  let content = "";
  let reasoning = "";
  let signature = "";
  const calls: JsonObject[] = [];
  for (const part of list(object(candidate["content"])["parts"])) {
    if (part["thought"] === true) reasoning += text(part["text"]);
    else content += text(part["text"]);
    const { functionCall, thoughtSignature } = part;
    if (typeof functionCall !== "object" || functionCall === null) {
      signature = text(thoughtSignature) || signature;
      continue;
    }
    const { id, name, args } = object(functionCall);
    const callId = text(id) || toolCallId(responseId, index, firstCall + calls.length);
    calls.push({ ...chatToolCall(callId, name, stringifyArguments(args)), ...signatureField(thoughtSignature) });
  }
  const end = mapFinishReasonToChat(candidate, firstCall + calls.length > 0);
  const refusal = end["finish_reason"] === "content_filter" ? text(candidate["finishMessage"]) : "";
  return {
    fields: {
      ...(reasoning && { reasoning_content: reasoning }),
      ...(content && { content }),
      ...(refusal && { refusal }),
      ...signatureField(signature),
    },
    calls,
    end,
  };
}

/** The reason why the provider blocked a prompt. Returns undefined if it answered. */
function blockedRefusal(response: JsonObject): string | undefined {
  const { blockReason, blockReasonMessage } = object(response["promptFeedback"]);
  const reason = text(blockReason);
  if (!reason || reason === "BLOCKED_REASON_UNSPECIFIED" || list(response["candidates"]).length > 0) return undefined;
  return text(blockReasonMessage) || `The prompt was blocked: ${reason}.`;
}

function logprobsToChat(logprobsResult: unknown): { logprobs?: JsonObject } {
  const { chosenCandidates, topCandidates } = object(logprobsResult);
  const chosen = list(chosenCandidates);
  if (chosen.length === 0) return {};
  const alternatives = list(topCandidates);
  const token = (candidate: JsonObject): JsonObject => ({
    token: text(candidate["token"]),
    logprob: number(candidate["logProbability"]) ?? 0,
    bytes: null,
  });
  const content = chosen.map((candidate, i) => ({
    ...token(candidate),
    top_logprobs: list(alternatives[i]?.["candidates"]).map(token),
  }));
  return { logprobs: { content, refusal: null } };
}

/**
 * The provider reports usage with every event. Chunks carry it only at the end of an answer, because earlier counts may
 * not include all output.
 */
export function convertStreamToChat() {
  /** Keyed by the candidate's index. */
  const callCounts = new Map<number, number>();
  let id: unknown;
  let usage: unknown;

  function choiceOf(candidate: JsonObject, position: number): JsonObject {
    const index = indexOf(candidate, position);
    const firstCall = callCounts.get(index) ?? 0;
    const { fields, calls, end } = convertCandidate(candidate, id, index, firstCall);
    callCounts.set(index, firstCall + calls.length);
    const toolCalls = calls.length > 0 && { tool_calls: calls.map((call, c) => ({ index: firstCall + c, ...call })) };
    const delta = { ...fields, ...toolCalls };
    return { index, delta, ...logprobsToChat(candidate["logprobsResult"]), ...end };
  }

  return {
    write(event: JsonObject): readonly JsonObject[] {
      id ??= text(event["responseId"]) || undefined;
      if (event["usageMetadata"] != null) usage = event["usageMetadata"];
      const refusal = blockedRefusal(event);
      const choices =
        refusal === undefined
          ? list(event["candidates"]).map(choiceOf)
          : [{ index: 0, delta: { refusal }, finish_reason: "content_filter" }];
      const isEnd = choices.length === 0 || choices.some((choice) => choice["finish_reason"] !== null);
      const counted = isEnd ? convertUsageToChat(usage) : undefined;
      if (choices.length === 0 && !counted) return [];
      return [{ id, object: "chat.completion.chunk", choices, usage: counted }];
    },
    /** The provider's last count. */
    usage: (): unknown => convertUsageToChat(usage),
  };
}

/** An answer has the shape of an event. */
export const convertResponseToChat = (response: JsonObject): JsonObject => ({
  ...joinConverted(convertStreamToChat(), [response]),
  model: response["modelVersion"],
  usage: convertUsageToChat(response["usageMetadata"]),
});
