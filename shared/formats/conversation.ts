import { object, text } from "#json";
import type { ParsedCall } from "./types.ts";

/** The parts of a request that stay the same from turn to turn. */
interface Opening {
  readonly system: unknown;
  readonly tools: unknown;
  readonly firstMessage: unknown;
}

/** Bounds the work for one part. Openings that differ only after it count as the same. */
const maxCharacters = 16_384;

/**
 * Clients move breakpoints from turn to turn, and write a text either as a string or as a list of one part with a type.
 * Without these fields and without names, an opening has the same text in each turn.
 */
const skipped: ReadonlySet<string> = new Set(["type", "cache_control", "prompt_cache_breakpoint"]);

/** Joins the values inside, until `characters` of them are read. */
function textOf(value: unknown, left = { characters: maxCharacters }): string {
  if (left.characters <= 0 || value === null || value === undefined) return "";
  if (typeof value !== "object") {
    const own = (typeof value === "string" ? value : JSON.stringify(value)).slice(0, left.characters);
    left.characters -= own.length + 1;
    return `${own}\n`;
  }
  left.characters--;
  let joined = "";
  // The keys of a long list would all be collected first.
  if (Array.isArray(value))
    for (const each of value as readonly unknown[]) {
      if (left.characters <= 0) break;
      joined += textOf(each, left);
    }
  else
    for (const name in value) {
      if (left.characters <= 0) break;
      if (!skipped.has(name)) joined += textOf(object(value)[name], left);
    }
  return joined;
}

/**
 * Identifies the conversation of a call by the caller's name for it, else by its opening. It is read when it is asked for and
 * only once.
 */
export function conversationOf(named: unknown, opening: () => Opening): Pick<ParsedCall, "conversation"> {
  let id: string | undefined;
  function read(): string {
    const name = text(named);
    if (name) return textOf(name);
    const { system, tools, firstMessage } = opening();
    return [system, tools, firstMessage].map((part) => textOf(part)).join("\0");
  }
  return { conversation: () => (id ??= read()) };
}

/** The opening of a conversation whose system prompt is, at least in part, in its first messages. */
export function openingIn(
  messages: readonly { readonly role?: unknown; readonly content?: unknown }[],
  { instructions, tools }: { readonly instructions?: unknown; readonly tools: unknown },
): Opening {
  const first = messages.findIndex(({ role }) => role === "user");
  const before = messages.slice(0, first < 0 ? messages.length : first).map(({ content }) => content);
  return { system: [instructions, ...before], tools, firstMessage: messages[first]?.content };
}
