import type { Format } from "#formats";
import { type Answer, assemble as assembleGemini, framesOf, type Json } from "./formats-gemini-assemble.ts";
import { assemble as assembleResponses, eventsOf } from "./formats-responses-assemble.ts";
import { writtenEvents } from "./written-events.ts";

/** A client of a format: its request, and its assembly of a stream. */
interface Caller {
  readonly request: Json;
  /** Assembles a stream into the shape of a JSON response, as the provider's own client does. */
  readonly assemble: (stream: string) => Json;
  /** Removes the parts of a JSON response that a stream cannot carry. */
  readonly held: (whole: Json) => Json;
}

interface ChatCall {
  id: string;
  type: string;
  index?: number;
  function: { name: string; arguments: string };
  custom?: { name: string; input: string };
  extra_content?: unknown;
}
interface ChatMessage {
  role: string;
  content: string | null;
  refusal?: string | null;
  reasoning_content?: string;
  reasoning_details?: unknown[];
  extra_content?: unknown;
  tool_calls?: ChatCall[];
}
interface ChatChoice extends Json {
  readonly delta: ChatMessage;
  readonly logprobs?: { readonly content: readonly unknown[] } | null;
}
interface ChatAnswer extends Json {
  readonly choices: readonly {
    readonly message: ChatMessage;
    readonly finish_reason: string;
    readonly native_finish_reason?: string;
  }[];
  readonly usage: Json;
}

function joinChat(message: ChatMessage, { tool_calls = [], ...delta }: Partial<ChatMessage>): void {
  for (const field of ["content", "refusal", "reasoning_content"] as const)
    if (delta[field]) message[field] = (message[field] ?? "") + delta[field];
  if (delta.role) message.role = delta.role;
  if (delta.extra_content) message.extra_content = delta.extra_content;
  if (delta.reasoning_details)
    message.reasoning_details = [...(message.reasoning_details ?? []), ...delta.reasoning_details];
  for (const { index = 0, ...given } of tool_calls) {
    message.tool_calls ??= [];
    const call = message.tool_calls[index];
    if (!call) message.tool_calls[index] = structuredClone(given);
    else if (call.custom) call.custom.input += given.custom?.input ?? "";
    else call.function.arguments += given.function.arguments;
  }
}

const chat: Caller = {
  request: { model: "m", messages: [{ role: "user", content: "Hi" }] },
  assemble(stream) {
    const chunks = writtenEvents.chat(stream) as Json[];
    must((chunks.pop() as unknown) === "[DONE]", "the stream has no end");
    const message: ChatMessage = { role: "", content: null };
    let end: Json = {};
    const tokens: unknown[] = [];
    for (const { choices } of chunks as unknown as { choices: ChatChoice[] }[])
      for (const { delta, logprobs, ...choice } of choices) {
        joinChat(message, delta);
        tokens.push(...(logprobs?.content ?? []));
        end = choice["finish_reason"] ? choice : end;
      }
    const { id, created, model, usage } = chunks.at(-1) ?? {};
    const logprobs = tokens.length > 0 && { logprobs: { content: tokens } };
    return { id, created, model, usage, choices: [{ ...end, message, ...logprobs }] };
  },
  held(whole) {
    const { id, created, model, usage, choices } = whole as ChatAnswer;
    const [{ message, ...choice } = { message: { role: "", content: null }, finish_reason: "" }] = choices;
    const { refusal, ...said } = message;
    return { id, created, model, usage, choices: [{ ...choice, message: { ...said, ...(refusal && { refusal }) } }] };
  },
};

function must(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

interface MessagesEvent {
  readonly index: number;
  readonly content_block: Json;
  readonly delta: Readonly<Record<string, string>>;
  readonly message: Json;
  readonly usage: Json;
}

const messages: Caller = {
  request: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
  // Follow the format's documentation strictly: blocks follow one another, each complete.
  assemble(stream) {
    let message: Json = {};
    const content: Record<string, unknown>[] = [];
    let open: { index: number; json: string } | undefined;
    let isOver = false;
    for (const item of eventsOf(stream)) {
      const event = item as unknown as MessagesEvent;
      const type = item["type"];
      must(!isOver, "an event after the end");
      must((type === "message_start") === (message["type"] === undefined), "a message begins once, and first");
      const block = content[event.index];
      switch (type) {
        case "message_start":
          message = { ...event.message };
          break;
        case "content_block_start":
          must(open === undefined, "a block inside another");
          must(event.index === content.length, "a block out of order");
          open = { index: event.index, json: "" };
          content.push({ ...event.content_block });
          break;
        case "content_block_delta": {
          const { type, text, thinking, signature, partial_json } = event.delta;
          if (open?.index !== event.index || !block) throw new Error("a delta outside its block");
          if (type === "text_delta") block["text"] += text ?? "";
          if (type === "thinking_delta") block["thinking"] += thinking ?? "";
          if (type === "signature_delta") block["signature"] = signature;
          if (type === "input_json_delta") open.json += partial_json;
          break;
        }
        case "content_block_stop":
          must(event.index === open?.index, "the end of another block");
          if (block && open?.json) block["input"] = JSON.parse(open.json);
          open = undefined;
          break;
        case "message_delta":
          must(open === undefined, "the end inside a block");
          message = { ...message, ...event.delta, usage: { ...(message["usage"] as Json), ...event.usage } };
          break;
        case "ping":
          break;
        default:
          must(type === "message_stop", String(type));
          isOver = true;
      }
    }
    must(isOver, "no end");
    return { ...message, content };
  },
  held: (whole) => whole,
};

const responses: Caller = {
  request: { model: "m", input: "Hi" },
  assemble: (stream) => assembleResponses(eventsOf(stream)),
  held: (whole) => whole,
};

const gemini: Caller = {
  request: {
    contents: [{ parts: [{ text: "Hi" }] }],
    tools: [{ functionDeclarations: [{ name: "f" }] }],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
  },
  assemble: (stream) => assembleGemini(framesOf(stream)),
  held: (whole) => assembleGemini([whole as unknown as Answer]),
};

export const callers: Readonly<Record<Format, Caller>> = { chat, messages, responses, gemini };
