import { createHash } from "node:crypto";
import type { Quirks } from "#catalog";
import { ownDetails } from "#formats";
import { isSet, type JsonObject, list, object, text } from "#json";
import type { IgnoredParams } from "../converter.ts";
import { contentText, reasoningText } from "./fields.ts";

const reasoningFields = ["reasoning_content", "reasoning", "reasoning_details"] as const;
/** Fields of an assistant message that only the provider that wrote them can use. */
const stateFields: readonly string[] = [...reasoningFields, "extra_content"];
const basicFields: readonly string[] = ["role", "content", "tool_calls", "tool_call_id", ...reasoningFields];

const isAssistant = ({ role }: JsonObject): boolean => role === "assistant";
const hasCalls = ({ tool_calls }: JsonObject): boolean => Array.isArray(tool_calls) && tool_calls.length > 0;
const isSystem = ({ role }: JsonObject): boolean => role === "system" || role === "developer";

const withoutExtra = (holder: unknown): JsonObject => {
  const { extra_content: _, ...rest } = object(holder);
  return rest;
};

/** Includes the text of another provider's details, because some servers refuse a message with calls but no reasoning. */
const anyReasoning = (message: JsonObject): string =>
  reasoningText(message) ||
  list(message["reasoning_details"])
    .map((detail) => text(detail["text"]) || text(detail["summary"]))
    .join("");

/**
 * The reasoning under the field that the server accepts. Returns undefined if the message has none or the server has no such
 * field.
 */
function reasoningFor(field: Quirks["reasoning_field"], message: JsonObject): JsonObject | undefined {
  const reasoning = anyReasoning(message);
  if (field === "none" || !reasoning) return undefined;
  if (field !== "reasoning_details") return { [field]: reasoning };
  const own = ownDetails(message["reasoning_details"]);
  return { reasoning_details: own.length > 0 ? own : [{ type: "reasoning.text", text: reasoning }] };
}

const hasState = (message: JsonObject): boolean =>
  stateFields.some((field) => field in message) || list(message["tool_calls"]).some((call) => "extra_content" in call);

function withState(message: JsonObject, { reasoning_field }: Quirks): JsonObject {
  if (!hasState(message)) return message;
  const { tool_calls } = message;
  const rest = Object.entries(message).filter(([field]) => !stateFields.includes(field));
  return {
    ...Object.fromEntries(rest),
    ...reasoningFor(reasoning_field, message),
    ...(Array.isArray(tool_calls) && { tool_calls: tool_calls.map(withoutExtra) }),
  };
}

/** Official clients send a message back as they got it, with `refusal: null`, `annotations: []` and more. */
function withBasicFields(message: JsonObject, ignored: IgnoredParams): JsonObject {
  ignored.add("messages.name", message["name"]);
  const basic = Object.fromEntries(Object.entries(message).filter(([field]) => basicFields.includes(field)));
  if (!isAssistant(message)) return basic;
  const { tool_calls, ...rest } = basic;
  const content = message["content"] ?? (text(message["refusal"]) || null);
  return hasCalls(message) ? { ...rest, content, tool_calls } : { ...rest, content };
}

/** The id of a tool call in the form that Mistral requires. */
export const shortId = (id: unknown): unknown =>
  typeof id !== "string" || /^[a-zA-Z0-9]{9}$/.test(id)
    ? id
    : createHash("sha256").update(id).digest("hex").slice(0, 9);

function withShortIds(message: JsonObject): JsonObject {
  const { tool_calls, tool_call_id } = message;
  if (Array.isArray(tool_calls))
    return { ...message, tool_calls: list(tool_calls).map((call) => ({ ...call, id: shortId(call["id"]) })) };
  return isSet(tool_call_id) ? { ...message, tool_call_id: shortId(tool_call_id) } : message;
}

const withReasoning = (message: JsonObject): JsonObject =>
  isAssistant(message) && hasCalls(message) && !reasoningText(message)
    ? { ...message, reasoning_content: " " }
    : message;

function joinSystem(messages: readonly JsonObject[]): readonly JsonObject[] {
  const [first, ...others] = messages.filter(isSystem);
  if (!first || (others.length === 0 && messages[0] === first)) return messages;
  const parts = [first, ...others].flatMap(({ content }) =>
    typeof content === "string" ? [{ type: "text", text: content }] : list(content),
  );
  const isPlain = parts.every(({ type }) => type === "text");
  const content = isPlain ? parts.map((part) => text(part["text"])).join("\n\n") : parts;
  return [{ role: "system", content }, ...messages.filter((message) => !isSystem(message))];
}

/** A minimal assistant message between a tool result and the next user message. */
const bridge: JsonObject = { role: "assistant", content: "." };

const bridgeUsers = (messages: readonly JsonObject[]): readonly JsonObject[] =>
  messages.flatMap((message, m) =>
    message["role"] === "user" && messages[m - 1]?.["role"] === "tool" ? [bridge, message] : [message],
  );

function withoutEmpty(messages: readonly JsonObject[], besideCalls: "" | null): readonly JsonObject[] {
  const isEmpty = (message: JsonObject) => isAssistant(message) && contentText(message["content"]) === "";
  return messages.flatMap((message) => {
    if (!isEmpty(message)) return [message];
    return hasCalls(message) ? [{ ...message, content: besideCalls }] : [];
  });
}

/** Leaves a message unchanged unless a quirk of the server applies to it. */
export function adaptMessages(messages: readonly unknown[], quirks: Quirks, ignored: IgnoredParams): unknown {
  const { developer_role, message_fields, tool_call_ids, missing_reasoning } = quirks;
  let adapted: readonly JsonObject[] = messages.map((value) => {
    let message = withState(object(value), quirks);
    if (!developer_role && message["role"] === "developer") message = { ...message, role: "system" };
    if (message_fields === "basic") message = withBasicFields(message, ignored);
    if (tool_call_ids === "nine") message = withShortIds(message);
    if (missing_reasoning === "space") message = withReasoning(message);
    return message;
  });
  if (quirks.empty_messages !== "pass") adapted = withoutEmpty(adapted, quirks.empty_messages === "text" ? "" : null);
  if (quirks.system_messages === "first") adapted = joinSystem(adapted);
  return quirks.user_after_tool === "bridge" ? bridgeUsers(adapted) : adapted;
}

/** Tells whether a conversation with tool calls has an assistant message without reasoning. */
export function lacksReasoning(messages: unknown): boolean {
  const ofAssistant = list(messages).filter(isAssistant);
  return ofAssistant.some(hasCalls) && ofAssistant.some((message) => !anyReasoning(message));
}
