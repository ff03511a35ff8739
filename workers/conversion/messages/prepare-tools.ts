import { needText, refuse } from "#formats";
import { isSet, type JsonObject, list, object, omitNullish, text } from "#json";
import type { Breakpoints } from "../cache-control.ts";
import { functionChoice } from "../chat/fields.ts";
import type { IgnoredParams } from "../converter.ts";
import type { ModelCapabilities } from "./reasoning.ts";

function prepareTool(value: JsonObject, t: number, marks: Breakpoints): JsonObject {
  const at = `tools[${t}]`;
  if (value["type"] !== "function") refuse(`${at}.type`, "this model supports only tools of type function");
  const called = object(value["function"]);
  const { name, description, parameters, strict } = called;
  return omitNullish({
    name: needText(name, `${at}.function.name`),
    description,
    input_schema: { type: "object", ...object(parameters) },
    strict: strict === true ? true : undefined,
    ...marks.of(isSet(value["cache_control"]) ? value : called, at),
  });
}

/** The tools of a chat request and their choice. `isForced` means that the model must call a tool. */
export function prepareTools(request: JsonObject, { forcedTools }: ModelCapabilities, marks: Breakpoints) {
  const tools = list(request["tools"]).map((tool, t) => prepareTool(tool, t, marks));
  const choice = functionChoice(request["tool_choice"]);
  if (!choice) return refuse("tool_choice", "this model does not support this value");
  const { mode, name, allowed } = choice;
  const isForced = mode === "required";
  if (isForced && (tools.length === 0 || !forcedTools))
    refuse("tool_choice", "this model cannot be forced to call a tool; use 'auto'");
  if (tools.length === 0) return { fields: {}, isForced };
  const isSerial = request["parallel_tool_calls"] === false && mode !== "none";
  return {
    fields: {
      tools: allowed ? tools.filter((tool) => allowed.has(tool["name"])) : tools,
      ...((mode !== "auto" || isSerial) && {
        tool_choice: omitNullish({
          type: name !== undefined ? "tool" : isForced ? "any" : mode,
          name,
          disable_parallel_tool_use: isSerial ? true : undefined,
        }),
      }),
    },
    isForced,
  };
}

const convertibleFields: ReadonlySet<string> = new Set(["type", "name", "description", "input_schema", "strict"]);

export function convertToolsToChat(
  tools: readonly JsonObject[],
  ignored: IgnoredParams,
): readonly JsonObject[] | undefined {
  if (tools.length === 0) return undefined;
  return tools.map((tool, t) => {
    const { type, name, description, input_schema, strict } = tool;
    if (type != null && type !== "custom")
      refuse(`tools[${t}].type`, "this model supports only tools with an input_schema");
    for (const [field, value] of Object.entries(tool)) if (!convertibleFields.has(field)) ignored.add(field, value);
    return {
      type: "function",
      function: omitNullish({
        name: text(name),
        description,
        parameters: object(input_schema),
        strict: strict === true ? true : undefined,
      }),
    };
  });
}

const toolChoices = new Map<unknown, unknown>([
  ["auto", "auto"],
  ["none", "none"],
  ["any", "required"],
]);

export const convertToolChoiceToChat = ({ type, name }: JsonObject): unknown =>
  type === "tool" ? { type: "function", function: { name: text(name) } } : toolChoices.get(type);
