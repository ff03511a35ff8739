import { formedRequest, given, type JsonObject, list, object, text } from "#formats";
import { contentText, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity } from "../converter.ts";
import { stringifyArguments } from "../tool-calls.ts";
import { callParts, newCallId } from "./calls.ts";
import { chatLogprobs, geminiLogprobs } from "./logprobs.ts";
import { blocked, chatFinish, geminiFinish, withheld } from "./map-finish-reason.ts";
import { signatureOf, signed } from "./signature.ts";
import { chatUsage, geminiUsage } from "./usage.ts";

/** Thoughts are in an answer only if the caller asked for them. */
export function showsThoughts(request: JsonObject): boolean {
  const { generationConfig } = object(formedRequest(request));
  return object(object(generationConfig)["thinkingConfig"])["includeThoughts"] === true;
}

/** What an answer, or a piece of one, says besides its calls. */
export function wordParts(message: JsonObject, thoughts: boolean): JsonObject[] {
  const thought = thoughts ? reasoningText(message) : "";
  const said = contentText(message["content"]) + text(message["refusal"]);
  const signature = signatureOf(message);
  return [
    ...(thought ? [{ text: thought, thought: true }] : []),
    ...(said || signature ? [{ text: said, ...(signature && { thoughtSignature: signature }) }] : []),
  ];
}

/** Clients hold what has no part for broken. */
export const contentOf = (parts: readonly JsonObject[]): JsonObject => ({
  parts: parts.length > 0 ? parts : [{ text: "" }],
  role: "model",
});

/** Where each choice of a chat answer or chunk stands. */
export const indexOf = ({ index }: JsonObject, position: number): number =>
  typeof index === "number" ? index : position;

/** A completed chat answer as a generateContent answer. */
export function fromChat(answer: JsonObject, ours: ResponseIdentity, request: JsonObject): JsonObject {
  const thoughts = showsThoughts(request);
  const candidates = list(answer["choices"]).map((choice, position) => {
    const index = indexOf(choice, position);
    const message = object(choice["message"]);
    const { parts, malformed } = callParts(
      list(message["tool_calls"]).map((call, at) => {
        const { name, arguments: args } = object(call["function"]);
        const id = text(call["id"]) || newCallId(ours.id, index, at);
        return { id, name: text(name), args, signature: signatureOf(call) };
      }),
    );
    return {
      content: contentOf([...wordParts(message, thoughts), ...parts]),
      ...geminiFinish(choice["finish_reason"], { refusal: text(message["refusal"]) !== "", malformed }),
      index,
      ...geminiLogprobs(choice["logprobs"]),
    };
  });
  return {
    candidates,
    usageMetadata: geminiUsage(answer["usage"], { input: 0, output: 0 }),
    modelVersion: ours.model,
    responseId: ours.id,
  };
}

export interface Said {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: JsonObject[];
  /** The last that does not belong to a call. */
  readonly signature: string;
}

/** What the parts of a candidate say. `firstCall`: how many calls came before them. */
export function saidOf(parts: unknown, answerId: unknown, choice: number, firstCall = 0): Said {
  let content = "";
  let reasoning = "";
  let signature = "";
  const calls: JsonObject[] = [];
  for (const part of list(parts)) {
    if (part["thought"] === true) reasoning += text(part["text"]);
    else content += text(part["text"]);
    const { functionCall, thoughtSignature } = part;
    if (typeof functionCall !== "object" || functionCall === null) {
      signature = text(thoughtSignature) || signature;
      continue;
    }
    const { id, name, args } = object(functionCall);
    calls.push({
      id: text(id) || newCallId(answerId, choice, firstCall + calls.length),
      type: "function",
      function: { name: text(name), arguments: stringifyArguments(args) },
      ...signed(thoughtSignature),
    });
  }
  return { content, reasoning, calls, signature };
}

function messageOf(
  candidate: JsonObject,
  answerId: unknown,
  index: number,
): { message: JsonObject; finish: string | null } {
  const { content, reasoning, calls, signature } = saidOf(object(candidate["content"])["parts"], answerId, index);
  const finish = chatFinish(candidate["finishReason"], calls.length > 0);
  const message = {
    role: "assistant",
    content: content || null,
    refusal: withheld(finish, candidate["finishMessage"]),
    ...(reasoning && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...signed(signature),
  };
  return { message, finish };
}

/** Why the provider gave no answer to a prompt; undefined where it did. */
export function blockOf(answer: JsonObject): string | undefined {
  const { blockReason, blockReasonMessage } = object(answer["promptFeedback"]);
  const reason = text(blockReason);
  if (!reason || reason === "BLOCKED_REASON_UNSPECIFIED" || list(answer["candidates"]).length > 0) return undefined;
  return blocked(reason, blockReasonMessage);
}

/** A generateContent answer as a chat answer. */
export function toChatAnswer(answer: JsonObject): JsonObject {
  const { responseId } = answer;
  const refusal = blockOf(answer);
  const choices = list(answer["candidates"]).map((candidate, position) => {
    const index = indexOf(candidate, position);
    const { message, finish } = messageOf(candidate, responseId, index);
    return { index, message, ...chatLogprobs(candidate["logprobsResult"]), finish_reason: finish };
  });
  const none = { index: 0, message: { role: "assistant", content: null, refusal }, finish_reason: "content_filter" };
  return given({
    id: text(responseId) || undefined,
    object: "chat.completion",
    model: answer["modelVersion"],
    choices: refusal === undefined ? choices : [none],
    usage: chatUsage(answer["usageMetadata"]),
  });
}
