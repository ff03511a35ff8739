import { byteLength, type Loose, object } from "./loose.ts";
import { tokenUsage } from "./usage.ts";

/** The maker's usage if it can be believed, else the estimate. What is shown is what is billed: reasoning is in it. */
function usageShown(usage: unknown, estimate: { input: number; output: number }) {
  const counted = tokenUsage(usage);
  const prompt = counted
    ? counted.input + counted.cached_input + counted.cache_write + counted.audio_input
    : estimate.input;
  const completion = counted ? counted.output + counted.audio_output : estimate.output;
  return {
    ...(counted && object(usage)),
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}

/** What an answer has of us: our model id, and what stands in where the maker left it out. */
interface Ours {
  readonly model: string;
  readonly created: number;
  readonly id: string;
}

/** Makers take back no more than 40 characters as the id of a tool call. */
const toolCallId = ({ id }: Ours, choice: number, call: number) => `call_${id.slice(-24)}_${choice}_${call}`;

/** A maker's whole answer, with all that clients rely on. */
export function completeChat(response: Loose, ours: Ours, estimate: { input: number; output: number }) {
  const choices = Array.isArray(response["choices"]) ? response["choices"] : [];
  return {
    ...response,
    id: response["id"] || ours.id,
    object: "chat.completion",
    created: response["created"] ?? ours.created,
    model: ours.model,
    choices: choices.map((value: unknown, position) => {
      const given = object(value);
      const index = typeof given["index"] === "number" ? given["index"] : position;
      const message = object(given["message"]);
      const calls = message["tool_calls"];
      return {
        ...given,
        index,
        message: {
          ...message,
          role: message["role"] || "assistant",
          content: message["content"] ?? null,
          ...(Array.isArray(calls) && {
            tool_calls: calls.map((call: unknown, at) => ({
              type: "function",
              ...object(call),
              id: object(call)["id"] || toolCallId(ours, index, at),
            })),
          }),
        },
        finish_reason: given["finish_reason"] || null,
      };
    }),
    usage: usageShown(response["usage"], estimate),
  };
}

/** UTF-8 bytes of what a delta or a message says: text, reasoning, refusal and tool calls. */
export function outputBytes(delta: Loose): number {
  let bytes = byteLength(delta["content"]) + byteLength(delta["refusal"]);
  bytes += byteLength(delta["reasoning_content"] ?? delta["reasoning"]);
  if (Array.isArray(delta["tool_calls"]))
    for (const call of delta["tool_calls"]) {
      const { name, arguments: given } = object(object(call)["function"]);
      bytes += byteLength(name) + byteLength(given);
    }
  return bytes;
}

/**
 * The tool calls of one choice. Servers leave out the index, or give it to several calls: a new id or name begins a call.
 * Clients join what repeats, so only the first delta has the id and the type.
 */
function toolCalls(newId: (index: number) => string) {
  /** By the server's own index, or id where it gives none: the call that it means now. */
  const current = new Map<unknown, { readonly id: unknown; readonly index: number }>();
  let count = 0;
  let last: unknown;
  return (value: unknown) => {
    const { id, index, type, ...given } = object(value);
    const key = index ?? (id || last);
    last = key;
    const call = current.get(key);
    const name = object(given["function"] ?? given["custom"])["name"];
    const isNew = call === undefined || (name && (id ? id !== call.id : index == null));
    if (!isNew) return { index: call.index, ...given };
    const begun = { id: id || newId(count), index: count++ };
    current.set(key, begun);
    return { ...begun, type: type ?? "function", ...given };
  };
}

/**
 * Turns a maker's chunks into the events that callers read. Compatible servers are sloppy, clients are not: each chunk
 * gets `created` and `finish_reason`, the first delta its role, the first delta of a tool call its id and type.
 * Usage is held back for `end`, which writes it as the last chunk before [DONE].
 */
export function chatStream(to: Ours) {
  /** By choice, once it has begun. */
  const calls = new Map<number, ReturnType<typeof toolCalls>>();
  let usage: unknown;
  let bytes = 0;
  let { id, created } = to;

  const choice = (value: unknown, position: number) => {
    const given = object(value);
    const index = typeof given["index"] === "number" ? given["index"] : position;
    const { role, ...delta } = object(given["delta"]);
    bytes += outputBytes(delta);
    let toolCall = calls.get(index);
    const isFirst = toolCall === undefined;
    toolCall ??= toolCalls((call) => toolCallId(to, index, call));
    calls.set(index, toolCall);
    return {
      ...given,
      index,
      delta: {
        ...(isFirst && { role: role || "assistant" }),
        ...delta,
        ...(Array.isArray(delta["tool_calls"]) && { tool_calls: delta["tool_calls"].map(toolCall) }),
      },
      finish_reason: given["finish_reason"] || null,
    };
  };

  return {
    /** The event for one chunk; empty for a chunk that says nothing. */
    write(chunk: Loose): string {
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choices = chunk["choices"];
      if (!Array.isArray(choices) || choices.length === 0) return "";
      if (typeof chunk["id"] === "string" && chunk["id"]) id = chunk["id"];
      if (typeof chunk["created"] === "number") created = chunk["created"];
      const { usage: _, ...rest } = chunk;
      return `data: ${JSON.stringify({
        ...rest,
        id,
        object: "chat.completion.chunk",
        created,
        model: to.model,
        choices: choices.map(choice),
      })}\n\n`;
    },
    /** The usage as the maker gave it, if it did. */
    usage: () => usage,
    /** UTF-8 bytes of output written so far. */
    outputBytes: () => bytes,
    /** The last events of a stream that came to its end. */
    end(estimate: { input: number; output: number }): string {
      const last = {
        id,
        object: "chat.completion.chunk",
        created,
        model: to.model,
        choices: [],
        usage: usageShown(usage, estimate),
      };
      return `data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`;
    },
  };
}
