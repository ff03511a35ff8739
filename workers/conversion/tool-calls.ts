import { valuesIn } from "#formats";
import { isDeeper, type JsonObject, object, text } from "#json";

/** The nesting limit of the strictest provider. */
const maxDepth = 100;

const isShallow = (value: unknown): boolean =>
  typeof value !== "object" || value === null || !isDeeper(value, maxDepth);

/** The API's own limit for requests; parsing more would block the event loop. */
const maxValues = 100_000;

/** Arguments of a tool call as an object. Returns undefined if they are not one. */
export function argumentsOf(args: unknown): JsonObject | undefined {
  if (typeof args !== "string") return isShallow(args) ? object(args) : undefined;
  if (!args.trim()) return {};
  try {
    if (args.length > maxValues) valuesIn(args, maxValues);
    const input: unknown = JSON.parse(args);
    if (typeof input === "object" && input !== null && !Array.isArray(input) && isShallow(input)) return object(input);
  } catch {
    // Models write invalid or truncated JSON, or too much of it.
  }
  return undefined;
}

/** Some providers require an object: invalid arguments are wrapped as Anthropic's documentation recommends. */
export const argumentsObject = (args: unknown): JsonObject => argumentsOf(args) ?? { INVALID_JSON: text(args) };

/** Arguments as a JSON string, as in chat. Some servers send an object. */
export const argumentsText = (args: unknown): string =>
  typeof args === "object" && args !== null ? stringifyArguments(args) : text(args);

export const stringifyArguments = (args: unknown): string => JSON.stringify(argumentsOf(args) ?? {});

export const chatToolCall = (id: string, name: unknown, args: string): JsonObject => ({
  id,
  type: "function",
  function: { name: text(name), arguments: args },
});

/** Stands in for an id that the server did not send. Providers accept up to 40 characters of a small alphabet. */
export const toolCallId = (responseId: unknown, choice: number, call: number): string =>
  `call_${text(responseId)
    .slice(-24)
    .replace(/[^\w-]/g, "_")}_${choice}_${call}`;

/** The fields of a tool call's delta; strings that are missing or of another type are empty. */
export function callDelta(delta: JsonObject) {
  const { name, arguments: args, input } = object(delta["function"] ?? delta["custom"]);
  return { id: text(delta["id"]), index: delta["index"], name: text(name), args: argumentsText(args ?? input) };
}

/**
 * Assigns the deltas of one choice to tool calls. Servers omit the index, or reuse it for several calls: a new id or name
 * begins a call. `newId` creates the ids that the server omits. `call` is the position among the calls of the choice, from
 * 0.
 */
export function callTracker(newId: (call: number) => string) {
  /** Keyed by the server's index, or by the id if there is none. */
  const current = new Map<unknown, { readonly id: unknown; readonly call: number }>();
  let count = 0;
  let last: unknown;
  return ({ id, index, name }: { readonly id?: unknown; readonly index?: unknown; readonly name?: unknown }) => {
    const key = index ?? (id || last);
    last = key;
    const known = current.get(key);
    if (known !== undefined && !(name && (id ? id !== known.id : index == null)))
      return { id: known.id, call: known.call, isNew: false };
    const call = { id: id || newId(count), call: count++ };
    current.set(key, call);
    return { id: call.id, call: call.call, isNew: true };
  };
}
