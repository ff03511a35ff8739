/**
 * The tools of a request under their names in chat, which supports only functions. Functions keep their names; those in a
 * namespace are prefixed with it. A custom tool becomes a function with its text as the only parameter; a search that the
 * caller runs also becomes a function.
 */
import { toolLists } from "#formats";
import { type JsonObject, list, text } from "#json";
import { argumentsOf } from "../tool-calls.ts";

/** A tool as calls of the Responses format name it. */
export interface CallerTool {
  readonly type: "function" | "custom" | "tool_search";
  readonly name: string;
  readonly namespace?: string;
}

interface GivenTool extends CallerTool {
  readonly definition: JsonObject;
  readonly path: string;
  /** The description of its namespace. */
  readonly about: unknown;
}

const maxNameLength = 64;
const searchName = "tool_search";

const types: readonly unknown[] = ["function", "custom", "tool_search"] satisfies CallerTool["type"][];
const isKnown = (type: unknown): type is CallerTool["type"] => types.includes(type);

const keyOf = ({ type, name, namespace }: CallerTool) => JSON.stringify([type, namespace, name]);

/** Chat providers accept names of letters, digits, underscores and dashes. */
function chatNameOf({ type, name, namespace }: CallerTool): string {
  if (namespace === undefined && type === "function") return name;
  const whole = namespace === undefined ? name : `${namespace}__${name}`;
  return whole.replace(/[^\w-]/g, "_").slice(0, maxNameLength);
}

function* flatTools(
  request: JsonObject,
): Generator<{ definition: JsonObject; path: string; namespace?: string; about: unknown }> {
  for (const [tools, listPath] of toolLists(request))
    for (const [t, definition] of tools.entries()) {
      const path = `${listPath}[${t}]`;
      const { type, name, description: about } = definition;
      if (type !== "namespace") yield { definition, path, about: undefined };
      else
        for (const [n, inner] of list(definition["tools"]).entries())
          yield { definition: inner, path: `${path}.tools[${n}]`, namespace: text(name), about };
    }
}

/** `onUnknown` receives the path of a tool of any other type. */
export function callerTools(request: JsonObject, onUnknown?: (path: string) => void) {
  /** A search may find a tool again: its last definition counts. */
  const given = new Map<string, GivenTool>();
  for (const { definition, path, namespace, about } of flatTools(request)) {
    const { type, name } = definition;
    if (!isKnown(type)) {
      onUnknown?.(path);
      continue;
    }
    const toolName = type === "tool_search" ? searchName : text(name);
    const tool = { type, name: toolName, ...(namespace !== undefined && { namespace }), definition, path, about };
    given.set(keyOf(tool), tool);
  }

  const chatNames = new Map<string, string>();
  const byChatName = new Map<string, GivenTool>();
  let suffix = 0;
  const add = (key: string, tool: GivenTool) => {
    let chatName = chatNameOf(tool);
    while (byChatName.has(chatName)) {
      const end = `_${++suffix}`;
      chatName = chatNameOf(tool).slice(0, maxNameLength - end.length) + end;
    }
    chatNames.set(key, chatName);
    byChatName.set(chatName, tool);
  };
  const isPlain = ({ type, namespace }: CallerTool) => type === "function" && namespace === undefined;
  for (const [key, tool] of given) if (isPlain(tool)) add(key, tool);
  for (const [key, tool] of given) if (!isPlain(tool)) add(key, tool);

  return {
    /** The tools in the request's order, with their definitions. */
    given: [...given.values()],
    chatName: (tool: CallerTool): string => chatNames.get(keyOf(tool)) ?? chatNameOf(tool),
    /** A name that is not in the request is treated as a function's. */
    byChatName: (name: string): CallerTool => byChatName.get(name) ?? { type: "function", name },
  };
}

export type CallerTools = ReturnType<typeof callerTools>;

/** The tool that a call item or a tool choice names. */
export function namedTool({ type, name, namespace }: JsonObject, toolType: CallerTool["type"]): CallerTool {
  if (type === "tool_search" || toolType === "tool_search") return { type: "tool_search", name: searchName };
  return { type: toolType, name: text(name), ...(text(namespace) && { namespace: text(namespace) }) };
}

export const customArguments = (input: unknown): string => JSON.stringify({ input: text(input) });

/** The text for a custom tool. Arguments that do not follow the schema are taken as the text itself. */
export function customInput(args: string): string {
  const { input } = argumentsOf(args) ?? {};
  return typeof input === "string" ? input : args;
}
