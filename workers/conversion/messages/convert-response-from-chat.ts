import { type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity } from "../converter.ts";
import { argumentsObject } from "../tool-calls.ts";
import { convertUsageFromChat } from "./convert-usage.ts";
import { mapFinishReason } from "./map-finish-reason.ts";
import { detailsToBlocks, thinkingBlock } from "./reasoning.ts";

const messageId = ({ id }: ResponseIdentity): string =>
  id.startsWith("msg_") ? id : `msg_${id.replace(/^.*[-_]/, "")}`;

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

/** The id of a call whose server sent none, as `completeChat` makes it. */
export const newCallId = ({ id }: ResponseIdentity, call: number): string => `call_${id.slice(-24)}_0_${call}`;

/** A completed chat answer as a Messages answer. */
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
    return toolBlock(text(call["id"]) || newCallId(identity, at), text(name), argumentsObject(args));
  });
  return {
    ...emptyMessage(identity),
    content: [
      ...(details.length === 0 && reasoning ? [thinkingBlock(reasoning, "")] : details),
      ...(answerText ? [textBlock(answerText)] : []),
      ...calls,
    ],
    ...mapFinishReason(choice, { calls: calls.length > 0, refusal: refusal !== "" }, request),
    usage: convertUsageFromChat(answer["usage"], { input: 0, output: 0 }),
  };
}
