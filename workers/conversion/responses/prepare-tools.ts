import { refuse } from "#formats";
import { isSet, type JsonObject, list, object, omitNullish, text } from "#json";
import type { IgnoredParams } from "../converter.ts";
import { type CallerTools, namedTool } from "./caller-tools.ts";

export const refuseToolType = (path: string): never =>
  refuse(`${path}.type`, "this model accepts only tools that are functions, custom, or a search that the caller runs");

const textParameters = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};

/** The model reads the grammar of a custom tool's text, but nothing enforces it. */
function customDescription({ description, format }: JsonObject): string | undefined {
  const { type, syntax, definition } = object(format);
  const grammar = type === "grammar" && `The input follows this grammar (${text(syntax)}):\n${text(definition)}`;
  return [text(description), grammar].filter(Boolean).join("\n\n") || undefined;
}

function functionsToChat(tools: CallerTools, ignored: IgnoredParams): JsonObject[] {
  return tools.given.map((tool) => {
    const { type: _, name: __, execution: ___, ...definition } = tool.definition;
    const { description, parameters, strict, format, defer_loading, ...others } = definition;
    for (const [field, value] of Object.entries(others)) ignored.add(field, value);
    if (tool.path.startsWith("tools[")) ignored.add("defer_loading", defer_loading);
    ignored.add("tools.description", tool.about);
    if (object(format)["type"] === "grammar") ignored.add("format", format);
    const name = tools.chatName(tool);
    const called =
      tool.type === "custom"
        ? { name, description: customDescription(definition), parameters: textParameters }
        : { name, description, parameters, strict: strict === true || undefined };
    return { type: "function", function: omitNullish(called) };
  });
}

function namedChoiceToChat(choice: JsonObject, path: string, tools: CallerTools): JsonObject {
  const { type } = choice;
  if (type !== "function" && type !== "custom" && type !== "tool_search") return refuseToolType(path);
  return { type: "function", function: { name: tools.chatName(namedTool(choice, type)) } };
}

function toolChoiceToChat(choice: unknown, tools: CallerTools): unknown {
  if (typeof choice === "string" || !isSet(choice)) return choice;
  const { type, mode, tools: allowed } = object(choice);
  if (type !== "allowed_tools") return namedChoiceToChat(object(choice), "tool_choice", tools);
  const named = list(allowed).map((each, t) => namedChoiceToChat(each, `tool_choice.tools[${t}]`, tools));
  return { type, allowed_tools: { mode, tools: named } };
}

export function convertToolsToChat(request: JsonObject, tools: CallerTools, ignored: IgnoredParams): JsonObject {
  const { tool_choice, parallel_tool_calls } = request;
  const functions = functionsToChat(tools, ignored);
  if (functions.length > 0)
    return {
      tools: functions,
      tool_choice: toolChoiceToChat(tool_choice, tools),
      parallel_tool_calls: parallel_tool_calls === false ? false : undefined,
    };
  // Providers refuse even these choices in a chat request without tools.
  const hasNoEffect = tool_choice === "auto" || tool_choice === "none";
  return { tool_choice: hasNoEffect ? undefined : toolChoiceToChat(tool_choice, tools) };
}

const refuseType = (path: string): never => refuse(`${path}.type`, "this model accepts only function and custom tools");

function toolFromChat(tool: JsonObject, t: number): JsonObject {
  const { type } = tool;
  if (type === "function") {
    const { name, description, parameters, strict } = object(tool["function"]);
    return omitNullish({
      type,
      name: text(name),
      description,
      parameters: isSet(parameters) ? parameters : { type: "object", properties: {} },
      // The default of this format is true.
      strict: strict === true,
    });
  }
  if (type !== "custom") return refuseType(`tools[${t}]`);
  const { name, description, format } = object(tool["custom"]);
  const { type: formatType, grammar } = object(format);
  return omitNullish({
    type,
    name: text(name),
    description,
    format: formatType === "grammar" ? { type: formatType, ...object(grammar) } : format,
  });
}

function namedChoiceFromChat(choice: unknown, path: string): JsonObject {
  const { type, function: called, custom } = object(choice);
  if (type === "function") return { type, name: text(object(called)["name"]) };
  if (type === "custom") return { type, name: text(object(custom)["name"]) };
  return refuseType(path);
}

function toolChoiceFromChat(choice: unknown): unknown {
  if (typeof choice === "string" || !isSet(choice)) return choice;
  const { type, allowed_tools } = object(choice);
  if (type !== "allowed_tools") return namedChoiceFromChat(choice, "tool_choice");
  const { mode, tools } = object(allowed_tools);
  const named = list(tools).map((tool, t) => namedChoiceFromChat(tool, `tool_choice.allowed_tools.tools[${t}]`));
  return { type, mode, tools: named };
}

export function prepareTools(request: JsonObject): JsonObject {
  const tools = list(request["tools"]).map(toolFromChat);
  return {
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: toolChoiceFromChat(request["tool_choice"]),
    parallel_tool_calls: request["parallel_tool_calls"] === false ? false : undefined,
  };
}
