import { type JsonObject, object, text } from "#formats";

/** As deep as the shallowest reader of providers goes. */
const deepest = 100;

function isShallow(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth < deepest && Object.values(value).every((each) => isShallow(each, depth + 1));
}

/** Arguments of a tool call as the object that they should be; undefined for what is none. */
export function argumentsOf(args: unknown): JsonObject | undefined {
  if (typeof args !== "string") return isShallow(args) ? object(args) : undefined;
  if (!args.trim()) return {};
  try {
    const input: unknown = JSON.parse(args);
    if (typeof input === "object" && input !== null && !Array.isArray(input) && isShallow(input)) return object(input);
  } catch {
    // The model wrote it, or broke off.
  }
  return undefined;
}

/** The same for a provider that must have an object: what is none goes as Anthropic's documentation has it. */
export const argumentsObject = (args: unknown): JsonObject => argumentsOf(args) ?? { INVALID_JSON: text(args) };

/** Arguments as chat has them. Some servers give an object. */
export const argumentsText = (args: unknown): string =>
  typeof args === "object" && args !== null ? writtenArguments(args) : text(args);

/** An object of arguments, from a provider who gives one. */
export const writtenArguments = (args: unknown): string => JSON.stringify(argumentsOf(args) ?? {});
