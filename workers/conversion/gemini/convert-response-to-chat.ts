import { given, type JsonObject, list, number, object, text } from "#formats";
import { stringifyArguments } from "../tool-calls.ts";
import { convertUsageToChat } from "./convert-usage.ts";
import { mapFinishReasonToChat } from "./map-finish-reason.ts";
import { toolCallId } from "./prepare-tools.ts";
import { signatureField } from "./reasoning.ts";

/** The fields of a chat message, or of a delta, that a candidate or a piece of one stands for; only those that are set. */
export interface ChoiceContent {
  readonly fields: JsonObject;
  readonly calls: readonly JsonObject[];
  readonly finishReason: string | null;
}

/** `firstCall`: how many calls the candidate had before this piece of it. */
export function convertCandidate(
  candidate: JsonObject,
  responseId: unknown,
  index: number,
  firstCall = 0,
): ChoiceContent {
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
    calls.push({
      id: text(id) || toolCallId(responseId, index, firstCall + calls.length),
      type: "function",
      function: { name: text(name), arguments: stringifyArguments(args) },
      ...signatureField(thoughtSignature),
    });
  }
  const finishReason = mapFinishReasonToChat(candidate["finishReason"], firstCall + calls.length > 0);
  const refusal = finishReason === "content_filter" ? text(candidate["finishMessage"]) : "";
  return {
    fields: {
      ...(reasoning && { reasoning_content: reasoning }),
      ...(content && { content }),
      ...(refusal && { refusal }),
      ...signatureField(signature),
    },
    calls,
    finishReason,
  };
}

/** Why the provider blocked a prompt; undefined where it answered. */
export function blockedRefusal(response: JsonObject): string | undefined {
  const { blockReason, blockReasonMessage } = object(response["promptFeedback"]);
  const reason = text(blockReason);
  if (!reason || reason === "BLOCKED_REASON_UNSPECIFIED" || list(response["candidates"]).length > 0) return undefined;
  return text(blockReasonMessage) || `The prompt was blocked: ${reason}.`;
}

export function logprobsToChat(logprobsResult: unknown): { logprobs?: JsonObject } {
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

/** The index of a candidate or a choice, which servers may leave out. */
export const indexOf = ({ index }: JsonObject, position: number): number => number(index) ?? position;

export function convertResponseToChat(response: JsonObject): JsonObject {
  const { responseId } = response;
  const blocked = blockedRefusal(response);
  const choices = list(response["candidates"]).map((candidate, position) => {
    const index = indexOf(candidate, position);
    const { fields, calls, finishReason } = convertCandidate(candidate, responseId, index);
    const toolCalls = calls.length > 0 && { tool_calls: calls };
    const message = { role: "assistant", content: null, refusal: null, ...fields, ...toolCalls };
    return { index, message, ...logprobsToChat(candidate["logprobsResult"]), finish_reason: finishReason };
  });
  const blockedMessage = { role: "assistant", content: null, refusal: blocked };
  return given({
    id: text(responseId) || undefined,
    object: "chat.completion",
    model: response["modelVersion"],
    choices: blocked === undefined ? choices : [{ index: 0, message: blockedMessage, finish_reason: "content_filter" }],
    usage: convertUsageToChat(response["usageMetadata"]),
  });
}
