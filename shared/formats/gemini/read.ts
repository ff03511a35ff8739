import { list, text } from "../read.ts";

export { given, list, number, reasoningText, strings, text, writeJson } from "../read.ts";

/** As callers mean it: null, and a list or a text without anything in it, ask for nothing. */
export const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);

/** What a chat message says: some servers send it in parts. */
export const contentText = (content: unknown): string =>
  text(content) ||
  list(content)
    .map((part) => text(part["text"]) || text(part["refusal"]))
    .join("");

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
