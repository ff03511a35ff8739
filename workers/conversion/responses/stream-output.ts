import { eventText } from "#formats";
import { byteLength, type JsonObject, text } from "#json";
import type { ResponseIdentity } from "../converter.ts";
import { encodeReasoning } from "../reasoning-state.ts";
import { callDelta, callTracker, toolCallId } from "../tool-calls.ts";
import { type CallerTools, callerTools, customInput } from "./caller-tools.ts";
import {
  callItem,
  callType,
  type ItemStatus,
  type ItemType,
  itemId,
  messageItem,
  noArguments,
  reasoningItem,
  refusalPart,
  summaryPart,
  type ToolCall,
  textPart,
} from "./output-items.ts";
import { hasState } from "./reasoning-state.ts";

type Emit = (type: string, fields: JsonObject) => string;

export function numberedEvents(first: number) {
  let next = first;
  const emit: Emit = (type, fields) => eventText({ type, sequence_number: next++, ...fields });
  return { emit, nextNumber: () => next++ };
}

type PartKind = keyof typeof partEvents;

const partEvents = {
  reasoning: { part: "reasoning_summary_part", text: "reasoning_summary_text", field: "text" },
  text: { part: "content_part", text: "output_text", field: "text" },
  refusal: { part: "content_part", text: "refusal", field: "refusal" },
} as const;

/**
 * A reasoning item or a message. A part ends when a part of another kind begins. Returned strings are the text of events.
 * `withState` makes reasoning end with its state.
 */
function openParts(emit: Emit, type: "reasoning" | "message", withState: boolean, id: string, outputIndex: number) {
  const closed: JsonObject[] = [];
  let kind: PartKind | undefined;
  let content = "";
  let logprobs: JsonObject[] = [];
  let status: ItemStatus = "in_progress";
  const details: JsonObject[] = [];
  let state = "";

  const part = (): JsonObject => {
    if (kind === "reasoning") return summaryPart(content);
    return kind === "refusal" ? refusalPart(content) : textPart(content, logprobs);
  };
  const item = (): JsonObject => {
    const parts = kind === undefined ? closed : [...closed, part()];
    return type === "reasoning" ? reasoningItem(id, parts, state) : messageItem(id, status, parts);
  };
  const emitPart = (of: PartKind, event: "part" | "text", suffix: string, fields: JsonObject): string =>
    emit(`response.${partEvents[of][event]}.${suffix}`, {
      item_id: id,
      output_index: outputIndex,
      ...(of === "reasoning" ? { summary_index: closed.length } : { content_index: closed.length }),
      ...fields,
    });
  const closePart = (): string => {
    if (kind === undefined) return "";
    const whole = part();
    const done = { [partEvents[kind].field]: content, ...(kind === "text" && { logprobs }) };
    const events = emitPart(kind, "text", "done", done) + emitPart(kind, "part", "done", { part: whole });
    closed.push(whole);
    kind = undefined;
    content = "";
    logprobs = [];
    return events;
  };

  return {
    type,
    added: emit("response.output_item.added", { output_index: outputIndex, item: item() }),
    write(newKind: PartKind, delta: string, newLogprobs: readonly JsonObject[] = []): string {
      let events = "";
      if (kind !== newKind) {
        events = closePart();
        kind = newKind;
        events += emitPart(kind, "part", "added", { part: part() });
      }
      content += delta;
      for (const each of newLogprobs) logprobs.push(each);
      return (
        events + emitPart(newKind, "text", "delta", { delta, ...(newKind === "text" && { logprobs: newLogprobs }) })
      );
    },
    addDetails: (more: readonly JsonObject[]) => details.push(...more),
    item,
    close(last: ItemStatus): string {
      const events = closePart();
      status = last;
      if (type === "reasoning" && withState) {
        const reasoning = closed.map((each) => text(each["text"])).join("");
        state = encodeReasoning({ reasoning_content: reasoning, reasoning_details: details });
      }
      return events + emit("response.output_item.done", { output_index: outputIndex, item: item() });
    },
  };
}

/** Only a function's arguments are written as they arrive; the input of other calls is written when it is complete. */
function openCall(emit: Emit, { callId, tool }: Omit<ToolCall, "args">, id: string, outputIndex: number) {
  const isFunction = tool.type === "function";
  const position = { item_id: id, output_index: outputIndex };
  let args = "";
  let status: ItemStatus = "in_progress";
  const item = () => callItem(id, status, { callId, tool, args: isFunction || status !== "in_progress" ? args : "" });
  const write = (delta: string): string => {
    if (delta === "") return "";
    args += delta;
    return isFunction ? emit("response.function_call_arguments.delta", { ...position, delta }) : "";
  };
  const finish = (): string => {
    if (isFunction) {
      const filled = args === "" ? write(noArguments) : "";
      return filled + emit("response.function_call_arguments.done", { ...position, name: tool.name, arguments: args });
    }
    if (tool.type === "tool_search") return "";
    const event = "response.custom_tool_call_input";
    const input = customInput(args);
    const delta = input === "" ? "" : emit(`${event}.delta`, { ...position, delta: input });
    return delta + emit(`${event}.done`, { ...position, input });
  };
  return {
    added: emit("response.output_item.added", { output_index: outputIndex, item: item() }),
    write,
    item,
    close(last: ItemStatus): string {
      const events = finish();
      status = last;
      return events + emit("response.output_item.done", { output_index: outputIndex, item: item() });
    },
  };
}

/**
 * The output of a response while it is streamed. Items are in the order in which they begin. Reasoning and messages end when
 * another item begins; calls, whose deltas may be interleaved, end when the stream ends.
 */
export function streamOutput(emit: Emit, identity: ResponseIdentity, request: JsonObject) {
  const items: (ReturnType<typeof openParts> | ReturnType<typeof openCall>)[] = [];
  const calls = new Map<number, ReturnType<typeof openCall>>();
  /** Calls whose name has not arrived yet. */
  const unnamed = new Map<number, Omit<ToolCall, "tool">>();
  let tools: CallerTools | undefined;
  const withState = hasState(request);
  const trackCall = callTracker((call) => toolCallId(identity.id, 0, call));
  let open: ReturnType<typeof openParts> | undefined;
  let bytes = 0;

  const closeOpen = (status: ItemStatus): string => {
    const events = open?.close(status) ?? "";
    open = undefined;
    return events;
  };
  const position = (type: ItemType) => [itemId(type, identity, items.length), items.length] as const;

  const beginCall = (call: number, name: string, { callId, args }: Omit<ToolCall, "tool">): string => {
    const closed = closeOpen("completed");
    tools ??= callerTools(request);
    const tool = tools.byChatName(name);
    const item = openCall(emit, { callId, tool }, ...position(callType(tool)));
    items.push(item);
    calls.set(call, item);
    unnamed.delete(call);
    bytes += byteLength(name);
    return closed + item.added + item.write(args);
  };

  const beginParts = (type: "reasoning" | "message") => {
    const closed = closeOpen("completed");
    const begun = openParts(emit, type, withState, ...position(type));
    open = begun;
    items.push(begun);
    return { begun, events: closed + begun.added };
  };

  return {
    writePart(kind: PartKind, delta: string, logprobs?: readonly JsonObject[]): string {
      bytes += byteLength(delta);
      const type = kind === "reasoning" ? "reasoning" : "message";
      if (open?.type === type) return open.write(kind, delta, logprobs);
      const { begun, events } = beginParts(type);
      return events + begun.write(kind, delta, logprobs);
    },
    /** Entries of `reasoning_details` that only their provider can read. */
    writeState(details: readonly JsonObject[]): string {
      if (!withState || details.length === 0) return "";
      if (open?.type === "reasoning") {
        open.addDetails(details);
        return "";
      }
      const { begun, events } = beginParts("reasoning");
      begun.addDetails(details);
      return events;
    },
    writeCall(delta: JsonObject): string {
      const { name, args, ...read } = callDelta(delta);
      const { id, call } = trackCall({ ...read, name });
      bytes += byteLength(args);
      const item = calls.get(call);
      if (item) return item.write(args);
      const begun = { callId: text(id), args: (unnamed.get(call)?.args ?? "") + args };
      if (name) return beginCall(call, name, begun);
      unnamed.set(call, begun);
      return "";
    },
    /** Only the last item can be cut short. */
    close(status: ItemStatus): string {
      const begun = [...unnamed].map(([call, read]) => beginCall(call, "", read)).join("");
      const closed = closeOpen(status);
      const last = items.at(-1);
      const ended = [...calls.values()].map((item) => item.close(item === last ? status : "completed"));
      return begun + closed + ended.join("");
    },
    items: (): JsonObject[] => items.map((each) => each.item()),
    bytes: () => bytes,
  };
}
