import { type JsonObject, object, text } from "#formats";
import { argumentsText } from "./arguments.ts";

/** What a tool call's delta says of a function: what is missing, or of another type, is an empty text. */
export function callDelta(delta: JsonObject) {
  const given = object(delta["function"]);
  return {
    id: text(delta["id"]),
    index: delta["index"],
    name: text(given["name"]),
    args: argumentsText(given["arguments"]),
  };
}

/** What tells the tool calls of a chat stream apart: of each delta, as the server gave it. */
interface Marks {
  readonly id?: unknown;
  readonly index?: unknown;
  readonly name?: unknown;
}

interface Tracked {
  readonly id: unknown;
  /** Which call of the choice it is, from 0. */
  readonly call: number;
}

/**
 * Tells which tool call of one choice each delta belongs to. Servers leave out the index, or give it to several calls: a
 * new id or name begins a call. `newId` stands in for an id that the server does not give.
 */
export function callTracker(newId: (call: number) => string) {
  /** By the server's own index, or id where it gives none: the call that it means now. */
  const current = new Map<unknown, Tracked>();
  let count = 0;
  let last: unknown;
  return {
    of({ id, index, name }: Marks): { readonly call: Tracked; readonly isNew: boolean } {
      const key = index ?? (id || last);
      last = key;
      const known = current.get(key);
      if (known !== undefined && !(name && (id ? id !== known.id : index == null)))
        return { call: known, isNew: false };
      const call = { id: id || newId(count), call: count++ };
      current.set(key, call);
      return { call, isNew: true };
    },
    count: () => count,
  };
}
