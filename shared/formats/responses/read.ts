import { type Loose, object } from "../loose.ts";

/** Loose JSON as it is needed: what has another type is not there. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "");

export const list = (value: unknown): readonly Loose[] => (Array.isArray(value) ? value.map(object) : []);

export const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];

/** As callers mean it: null, and a list without anything in it, ask for nothing. */
export const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);

/** Only the fields that have a value. */
export const given = (fields: Loose): Loose =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));

/** The first choice: the format has one answer. */
export const firstChoice = (choices: unknown): Loose | undefined =>
  list(choices).find(({ index }, position) => (typeof index === "number" ? index : position) === 0);

/** What a chat message says: some servers send it in parts. */
export const contentText = (content: unknown): string =>
  text(content) ||
  list(content)
    .map((part) => (part["type"] === "text" ? text(part["text"]) : ""))
    .join("");

/** What a message or a delta says of its reasoning, under either of the names that servers use. */
export const reasoningText = (message: Loose): string =>
  text(message["reasoning_content"]) || text(message["reasoning"]);

const headerSafe = /^[\w.-]{1,64}$/;
const mostNames = 32;

/** The names of what is left out. They go out in a header: nothing else may be in them. */
export function leftOut() {
  const names = new Set<string>();
  return {
    add(name: string, value: unknown): void {
      if (isSet(value) && headerSafe.test(name) && names.size < mostNames) names.add(name);
    },
    names: (): readonly string[] => [...names],
  };
}

export type LeftOut = ReturnType<typeof leftOut>;
