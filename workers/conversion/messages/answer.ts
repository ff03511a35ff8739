import { given, type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity } from "../converter.ts";
import { argumentsObject, stringifyArguments } from "../tool-calls.ts";
import { finishOf, stopOf } from "./map-stop-reason.ts";
import { blocksOf, detailsOf, thinkingBlock } from "./reasoning.ts";
import { chatUsage, messagesUsage } from "./usage.ts";

/** Ids of the format begin so; what follows is the request's own. */
const messageId = ({ id }: ResponseIdentity): string =>
  id.startsWith("msg_") ? id : `msg_${id.replace(/^.*[-_]/, "")}`;

/** An answer that has said nothing yet, with all that the client's types name. */
export const blankMessage = (ours: ResponseIdentity): JsonObject => ({
  id: messageId(ours),
  type: "message",
  role: "assistant",
  model: ours.model,
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

/** Of a call whose server gave it none; as `completeChat` makes them. */
export const newCallId = ({ id }: ResponseIdentity, call: number): string => `call_${id.slice(-24)}_0_${call}`;

function contentOf(
  message: JsonObject,
  ours: ResponseIdentity,
): { content: JsonObject[]; calls: boolean; refusal: boolean } {
  const own = blocksOf(message["reasoning_details"]);
  const reasoning = reasoningText(message);
  const refusal = text(message["refusal"]);
  const calls = list(message["tool_calls"]).map((call, at) => {
    const { name, arguments: args } = object(call["function"]);
    return toolBlock(text(call["id"]) || newCallId(ours, at), text(name), argumentsObject(args));
  });
  const said = contentText(message["content"]) + refusal;
  return {
    content: [
      ...(own.length === 0 && reasoning ? [thinkingBlock(reasoning, "")] : own),
      ...(said ? [textBlock(said)] : []),
      ...calls,
    ],
    calls: calls.length > 0,
    refusal: refusal !== "",
  };
}

/** A completed chat answer as a Messages answer. */
export function fromChat(answer: JsonObject, ours: ResponseIdentity, request: JsonObject): JsonObject {
  const choice = firstChoice(answer["choices"]) ?? {};
  const { content, ...has } = contentOf(object(choice["message"]), ours);
  return {
    ...blankMessage(ours),
    content,
    ...stopOf(choice, has, request),
    usage: messagesUsage(answer["usage"], { input: 0, output: 0 }),
  };
}

/** Why a choice ended, with the stop sequence where the provider names it. */
export function endOf(stop: JsonObject): JsonObject {
  const sequence = text(stop["stop_sequence"]);
  return { finish_reason: finishOf(stop["stop_reason"]), ...(sequence && { stop_reason: sequence }) };
}

/** What the provider says of why it refused. */
export const explanationOf = (stop: JsonObject): string => text(object(stop["stop_details"])["explanation"]);

/** A Messages answer as a chat answer. */
export function toChatAnswer(answer: JsonObject): JsonObject {
  const blocks = list(answer["content"]);
  const join = (type: string, field: string) =>
    blocks
      .filter((block) => block["type"] === type)
      .map((block) => text(block[field]))
      .join("");
  const calls = blocks.filter((block) => block["type"] === "tool_use");
  const details = detailsOf(blocks);
  return given({
    id: answer["id"],
    object: "chat.completion",
    model: answer["model"],
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: join("text", "text") || null,
          refusal: explanationOf(answer) || null,
          ...given({ reasoning_content: join("thinking", "thinking") || undefined }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(calls.length > 0 && {
            tool_calls: calls.map((call) => ({
              id: text(call["id"]),
              type: "function",
              function: { name: text(call["name"]), arguments: stringifyArguments(call["input"]) },
            })),
          }),
        },
        ...endOf(answer),
      },
    ],
    usage: chatUsage(answer["usage"]),
  });
}
