import { byteLength, type JsonObject } from "#formats";
import type { ResponseIdentity } from "../converter.ts";
import type { Emit } from "./events.ts";
import { callType, itemId, type Status, standInCallId } from "./items.ts";
import { openCall, openMessage, openReasoning, type StreamedItem } from "./stream-items.ts";
import { type CallDelta, callDeltas } from "./tool-calls.ts";

/**
 * The output of a response while it is streamed. Items stand in the order in which they begin. Reasoning and messages
 * are done when something else begins; calls, whose deltas may come in turns, when the stream ends.
 */
export function streamedOutput(emit: Emit, ours: ResponseIdentity) {
  const items: StreamedItem[] = [];
  const calls = new Map<number, ReturnType<typeof openCall>>();
  /** What is known of calls that have no name yet. */
  const nameless = new Map<number, CallDelta>();
  const callDelta = callDeltas((call) => standInCallId(ours, call));
  let reasoning: ReturnType<typeof openReasoning> | undefined;
  let message: ReturnType<typeof openMessage> | undefined;
  let bytes = 0;

  const place = (type: Parameters<typeof itemId>[0]) => {
    const outputIndex = items.length;
    return { id: itemId(type, ours, outputIndex), outputIndex };
  };
  const closeReasoning = (): string => {
    const events = reasoning?.close() ?? "";
    reasoning = undefined;
    return events;
  };
  const closeMessage = (status: Status): string => {
    const events = message?.close(status) ?? "";
    message = undefined;
    return events;
  };

  const think = (delta: string): string => {
    bytes += byteLength(delta);
    if (reasoning) return reasoning.write(delta);
    const closed = closeMessage("completed");
    reasoning = openReasoning(emit, place("reasoning"));
    items.push(reasoning);
    return closed + reasoning.begun + reasoning.write(delta);
  };

  const speak = (delta: string, write: (to: NonNullable<typeof message>) => string): string => {
    bytes += byteLength(delta);
    if (message) return write(message);
    const closed = closeReasoning();
    message = openMessage(emit, place("message"));
    items.push(message);
    return closed + message.begun + write(message);
  };

  const begin = ({ call, callId, isCustom, name, input }: CallDelta): string => {
    const closed = closeReasoning() + closeMessage("completed");
    const item = openCall(emit, place(callType(isCustom)), { callId, isCustom, name });
    items.push(item);
    calls.set(call, item);
    nameless.delete(call);
    bytes += byteLength(name);
    return closed + item.begun + item.write(input);
  };

  const callTool = (value: unknown): string => {
    const delta = callDelta(value);
    bytes += byteLength(delta.input);
    const known = calls.get(delta.call);
    if (known) return known.write(delta.input);
    const whole = { ...delta, input: (nameless.get(delta.call)?.input ?? "") + delta.input };
    if (delta.name) return begin(whole);
    nameless.set(delta.call, whole);
    return "";
  };

  return {
    think,
    say: (delta: string, logprobs: readonly JsonObject[]) => speak(delta, (to) => to.say(delta, logprobs)),
    refuse: (delta: string) => speak(delta, (to) => to.refuse(delta)),
    callTool,
    /** Ends what is open; only the last item can have been cut short. */
    close(status: Status): string {
      const begun = [...nameless.values()].map(begin).join("");
      const last = items.at(-1);
      const closed = closeReasoning() + closeMessage(status);
      return (
        begun + closed + [...calls.values()].map((item) => item.close(item === last ? status : "completed")).join("")
      );
    },
    items: (): JsonObject[] => items.map((each) => each.item()),
    bytes: () => bytes,
  };
}
