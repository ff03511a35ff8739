/**
 * Prompts and answers in the shape of OpenTelemetry's conventions (`gen_ai.input.messages`, `gen_ai.output.messages`), made
 * from chat messages. Content is captured only with OTEL_CAPTURE_CONTENT.
 */

import { type JsonObject, list, object } from "#json";

/** Limit of all text of a prompt or an answer; with the JSON around it, it fits an attribute. */
const maxLength = 16_000;
const maxMessages = 64;
/** Estimated length of the JSON around one text. */
const messageLength = 40;

interface Message {
  readonly role: string;
  readonly parts: readonly JsonObject[];
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Truncates text beyond the limit. */
function createBudget() {
  let rest = maxLength;
  return {
    cut(value: string): string {
      const fitting = JSON.stringify(value).length <= rest ? value : value.slice(0, Math.floor(rest / 2));
      rest = Math.max(0, rest - JSON.stringify(fitting).length - messageLength);
      return fitting;
    },
    isSpent: () => rest === 0,
  };
}

type Budget = ReturnType<typeof createBudget>;

/** Only the kind of a file or an image is recorded. */
const partsOf = (content: unknown, budget: Budget): JsonObject[] =>
  typeof content === "string"
    ? [{ type: "text", content: budget.cut(content) }]
    : list(content).map((part) =>
        typeof part["text"] === "string"
          ? { type: "text", content: budget.cut(part["text"]) }
          : { type: text(part["type"]).slice(0, 40) || "unknown" },
      );

const toolCalls = (calls: unknown, budget: Budget): JsonObject[] =>
  list(calls).map(({ id, function: called }) => {
    const { name, arguments: given } = object(called);
    return {
      type: "tool_call",
      id: text(id).slice(0, 100),
      name: text(name).slice(0, 100),
      arguments: budget.cut(text(given)),
    };
  });

function messageOf(given: JsonObject, budget: Budget): Message {
  const { role, content, tool_calls, tool_call_id, reasoning_content } = given;
  if (role === "tool") {
    const response = partsOf(content, budget).map((part) => text(part["content"]));
    return {
      role,
      parts: [{ type: "tool_call_response", id: text(tool_call_id).slice(0, 100), response: response.join("") }],
    };
  }
  const reasoning = text(reasoning_content);
  return {
    role: text(role).slice(0, 20),
    parts: [
      ...(reasoning ? [{ type: "reasoning", content: budget.cut(reasoning) }] : []),
      ...partsOf(content, budget),
      ...toolCalls(tool_calls, budget),
    ],
  };
}

/** The last messages of a chat request that fit. */
export function inputMessages(request: JsonObject): readonly Message[] {
  const budget = createBudget();
  const messages: Message[] = [];
  for (const message of list(request["messages"]).slice(-maxMessages).toReversed()) {
    if (budget.isSpent()) break;
    messages.unshift(messageOf(message, budget));
  }
  return messages;
}

const finishReasons: Readonly<Record<string, string>> = { tool_calls: "tool_call", function_call: "tool_call" };

interface Choice {
  content: string;
  reasoning: string;
  readonly calls: { id: string; name: string; arguments: string }[];
  finishReason: string;
}

/** Collects a chat answer, or the chunks of one, within the limit. */
export function createAnswerReader({ hasContent }: { hasContent: boolean }) {
  const choices = new Map<number, Choice>();
  let id: string | undefined;
  let model: string | undefined;
  let rest = maxLength;
  const cut = (value: unknown): string => {
    const part = text(value).slice(0, rest);
    rest -= part.length;
    return part;
  };

  function addContent(choice: Choice, given: JsonObject): void {
    choice.content += cut(given["content"]);
    choice.reasoning += cut(given["reasoning_content"]);
    for (const { index, id, function: called } of list(given["tool_calls"]).slice(0, maxMessages)) {
      const { name, arguments: part } = object(called);
      const at = typeof index === "number" && index < maxMessages ? index : choice.calls.length;
      const call = (choice.calls[at] ??= { id: "", name: "", arguments: "" });
      call.id ||= text(id).slice(0, 100);
      call.name ||= text(name).slice(0, 100);
      call.arguments += cut(part);
    }
  }

  return {
    add(answer: JsonObject): void {
      id ??= text(answer["id"]).slice(0, 200) || undefined;
      model ??= text(answer["model"]).slice(0, 200) || undefined;
      for (const { index, message, delta, finish_reason } of list(answer["choices"])) {
        const at = typeof index === "number" ? index : 0;
        if (!choices.has(at) && choices.size >= maxMessages) return;
        const choice = choices.get(at) ?? { content: "", reasoning: "", calls: [], finishReason: "" };
        choices.set(at, choice);
        choice.finishReason ||= text(finish_reason).slice(0, 40);
        if (hasContent && rest > 0) addContent(choice, object(message ?? delta));
      }
    },
    facts: () => ({ id, model, finishReasons: [...choices.values()].flatMap((choice) => choice.finishReason || []) }),
    messages: (): readonly object[] =>
      [...choices.values()].map(({ content, reasoning, calls, finishReason }) => ({
        role: "assistant",
        parts: [
          ...(reasoning ? [{ type: "reasoning", content: reasoning }] : []),
          ...(content ? [{ type: "text", content }] : []),
          ...calls.filter(Boolean).map((call) => ({ type: "tool_call", ...call })),
        ],
        finish_reason: finishReasons[finishReason] ?? finishReason,
      })),
  };
}

export type AnswerReader = ReturnType<typeof createAnswerReader>;
