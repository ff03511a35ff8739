import { outputBytes } from "#formats";
import { type JsonObject, object } from "#json";
import type { ResponseIdentity, StreamWriter, TokenEstimate } from "../converter.ts";
import { callTracker, toolCallId } from "../tool-calls.ts";
import { completionTokens, promptTokens, tokenUsage } from "../usage.ts";
import { indexOf } from "./fields.ts";
import { jsonAround, putBetween, RepeatedChunk } from "./repeated-chunk.ts";

/** The provider's usage if it is plausible, else the estimate. It equals what is billed, so it includes reasoning. */
export function completeUsage(usage: unknown, estimate: TokenEstimate) {
  const counted = tokenUsage(usage);
  const prompt = counted ? promptTokens(counted) : estimate.input;
  const completion = counted ? completionTokens(counted) : estimate.output;
  return {
    ...(counted && object(usage)),
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(estimate.costUsd !== undefined && { cost_usd: estimate.costUsd }),
    ...(estimate.isByok && { is_byok: true }),
  };
}

/** A provider's answer with all fields that clients rely on. */
export function completeChat(response: JsonObject, identity: ResponseIdentity, estimate: TokenEstimate): JsonObject {
  const choices = Array.isArray(response["choices"]) ? response["choices"] : [];
  return {
    ...response,
    id: response["id"] || identity.id,
    object: "chat.completion",
    created: response["created"] ?? identity.created,
    model: identity.model,
    choices: choices.map((value: unknown, position) => {
      const choice = object(value);
      const index = indexOf(choice, position);
      const message = object(choice["message"]);
      const calls = message["tool_calls"];
      return {
        ...choice,
        index,
        message: {
          ...message,
          role: message["role"] || "assistant",
          content: message["content"] ?? null,
          ...(Array.isArray(calls) && {
            tool_calls: calls.map((call: unknown, at) => ({
              type: "function",
              ...object(call),
              id: object(call)["id"] || toolCallId(identity.id, index, at),
            })),
          }),
        },
        finish_reason: choice["finish_reason"] || null,
      };
    }),
    usage: completeUsage(response["usage"], estimate),
  };
}

/** Completes the tool calls of one choice. Clients concatenate repeated fields, so only the first delta has id and type. */
function toolCalls(newId: (call: number) => string) {
  const trackCall = callTracker(newId);
  return (value: unknown) => {
    const { id, index, type, ...fields } = object(value);
    const { name } = object(fields["function"] ?? fields["custom"]);
    const { isNew, ...call } = trackCall({ id, index, name });
    return isNew
      ? { id: call.id, index: call.call, type: type ?? "function", ...fields }
      : { index: call.call, ...fields };
  };
}

/**
 * Writes a provider's chunks and adds what compatible servers omit and clients require: `created` and `finish_reason` of
 * each chunk, the role of the first delta, the id and type of a tool call. `end` writes the usage as the last chunk.
 */
export function chatStream(identity: ResponseIdentity): StreamWriter {
  /** The choices that have begun, keyed by index. */
  const calls = new Map<number, ReturnType<typeof toolCalls>>();
  let usage: unknown;
  let bytes = 0;
  let { id, created } = identity;
  /** The last event written, if later events may differ from it only in their text. */
  let written: { like: JsonObject; around: readonly string[]; otherBytes: number } | undefined;

  const completeChoice = (value: unknown, position: number) => {
    const choice = object(value);
    const index = indexOf(choice, position);
    const { role, ...delta } = object(choice["delta"]);
    bytes += outputBytes(delta);
    let toolCall = calls.get(index);
    const isFirst = toolCall === undefined;
    toolCall ??= toolCalls((call) => toolCallId(identity.id, index, call));
    calls.set(index, toolCall);
    return {
      ...choice,
      index,
      delta: {
        ...(isFirst && { role: role || "assistant" }),
        ...delta,
        ...(Array.isArray(delta["tool_calls"]) && { tool_calls: delta["tool_calls"].map(toolCall) }),
      },
      finish_reason: choice["finish_reason"] || null,
    };
  };

  return {
    write(item: JsonObject): string {
      const repeated = item instanceof RepeatedChunk ? item : undefined;
      if (repeated && repeated.like === written?.like) {
        bytes += written.otherBytes + repeated.textBytes;
        return putBetween(written.around, repeated.values);
      }
      const chunk = repeated ? repeated.toChunk() : item;
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choices = chunk["choices"];
      if (!Array.isArray(choices) || choices.length === 0) return "";
      if (typeof chunk["id"] === "string" && chunk["id"]) id = chunk["id"];
      if (typeof chunk["created"] === "number") created = chunk["created"];
      const { usage: _, ...rest } = chunk;
      const bytesBefore = bytes;
      const text = `data: ${JSON.stringify({
        ...rest,
        id,
        object: "chat.completion.chunk",
        created,
        model: identity.model,
        choices: choices.map(completeChoice),
      })}\n\n`;
      const around = repeated && jsonAround(text, repeated.strings);
      written = around && { like: repeated.like, around, otherBytes: bytes - bytesBefore - repeated.textBytes };
      return text;
    },
    usage: () => usage,
    outputBytes: () => bytes,
    end(estimate): string {
      const last = {
        id,
        object: "chat.completion.chunk",
        created,
        model: identity.model,
        choices: [],
        usage: completeUsage(usage, estimate),
      };
      return `data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`;
    },
  };
}
