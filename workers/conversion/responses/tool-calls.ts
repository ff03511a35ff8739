import { object, text } from "#formats";
import { callTracker } from "../tool-calls.ts";
import { type Call, readCall } from "./items.ts";

export interface CallDelta extends Call {
  /** Which call of the answer it belongs to, from 0. */
  readonly call: number;
}

/** The tool calls of a chat stream. */
export function callDeltas(standIn: (call: number) => string) {
  const tracker = callTracker(standIn);
  /** By call: deltas after the first say their type by the field that they come in, or not at all. */
  const customs: boolean[] = [];
  return (value: unknown): CallDelta => {
    const delta = object(value);
    const { isCustom, name, input } = readCall(delta);
    const { call, isNew } = tracker.of({ id: text(delta["id"]), index: delta["index"], name });
    if (isNew) customs.push(isCustom);
    return { call: call.call, callId: text(call.id), isCustom: customs[call.call] === true, name, input };
  };
}
