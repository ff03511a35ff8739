import { object } from "../loose.ts";
import { type Call, readCall } from "./items.ts";
import { text } from "./read.ts";

export interface CallDelta extends Call {
  /** Which call of the answer it belongs to, from 0. */
  readonly call: number;
}

/**
 * The tool calls of a chat stream. Servers leave out the index, or give it to several calls: a new id or name begins a
 * call, as in a chat stream's own writer.
 */
export function callDeltas(standIn: (call: number) => string) {
  interface Begun {
    readonly given: unknown;
    readonly callId: string;
    readonly isCustom: boolean;
    readonly call: number;
  }
  /** By the server's own index, or id where it gives none: the call that it means now. */
  const current = new Map<unknown, Begun>();
  let count = 0;
  let last: unknown;
  return (value: unknown): CallDelta => {
    const delta = object(value);
    const { id, index } = delta;
    const { isCustom, name, input } = readCall(delta);
    const key = index ?? (id || last);
    last = key;
    const known = current.get(key);
    if (known !== undefined && !(name && (id ? id !== known.given : index == null)))
      // Deltas after the first say their type by the field that they come in, or not at all.
      return { call: known.call, callId: known.callId, isCustom: known.isCustom, name, input };
    const begun = { given: id, callId: text(id) || standIn(count), isCustom, call: count++ };
    current.set(key, begun);
    return { call: begun.call, callId: begun.callId, isCustom, name, input };
  };
}
