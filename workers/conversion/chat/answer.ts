import { type JsonObject, object, outputBytes } from "#formats";
import type { ResponseIdentity, StreamWriter, TokenEstimate } from "../converter.ts";
import { callTracker } from "../tool-calls.ts";
import { completionTokens, promptTokens, tokenUsage } from "../usage.ts";

/** The provider's usage if it can be believed, else the estimate. What is shown is what is billed: reasoning is in it. */
function usageShown(usage: unknown, estimate: TokenEstimate) {
  const counted = tokenUsage(usage);
  const prompt = counted ? promptTokens(counted) : estimate.input;
  const completion = counted ? completionTokens(counted) : estimate.output;
  return {
    ...(counted && object(usage)),
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}

/** Providers take back no more than 40 characters as the id of a tool call. */
const toolCallId = ({ id }: ResponseIdentity, choice: number, call: number) =>
  `call_${id.slice(-24)}_${choice}_${call}`;

/** A provider's whole answer, with all that clients rely on. */
export function completeChat(response: JsonObject, ours: ResponseIdentity, estimate: TokenEstimate): JsonObject {
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

/** The tool calls of one choice. Clients join what repeats, so only the first delta has the id and the type. */
function toolCalls(newId: (call: number) => string) {
  const tracker = callTracker(newId);
  return (value: unknown) => {
    const { id, index, type, ...given } = object(value);
    const { name } = object(given["function"] ?? given["custom"]);
    const { call, isNew } = tracker.of({ id, index, name });
    return isNew
      ? { id: call.id, index: call.call, type: type ?? "function", ...given }
      : { index: call.call, ...given };
  };
}

/**
 * Turns a provider's chunks into the events that callers read. Compatible servers are sloppy, clients are not: each chunk
 * gets `created` and `finish_reason`, the first delta its role, the first delta of a tool call its id and type.
 * Usage is held back for `end`, which writes it as the last chunk before [DONE].
 */
export function chatStream(to: ResponseIdentity): StreamWriter {
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
    write(chunk: JsonObject): string {
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
    /** The usage as the provider gave it, if it did. */
    usage: () => usage,
    /** UTF-8 bytes of output written so far. */
    outputBytes: () => bytes,
    /** The last events of a stream that came to its end. */
    end(estimate): string {
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
