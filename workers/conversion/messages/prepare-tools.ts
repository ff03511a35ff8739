import { invalidValue } from "#errors";
import { given, type JsonObject, list, object, text } from "#formats";
import type { IgnoredParams } from "../converter.ts";
import type { ModelCapabilities } from "./reasoning.ts";

interface Tools {
  readonly fields: JsonObject;
  /** Whether the model must call a tool. */
  readonly isForced: boolean;
}

function prepareTool(value: JsonObject, t: number): JsonObject {
  const at = `tools[${t}]`;
  if (value["type"] !== "function")
    throw invalidValue(`${at}.type`, `${at}.type: this model supports only tools of type function.`);
  const { name, description, parameters, strict } = object(value["function"]);
  if (typeof name !== "string" || !name)
    throw invalidValue(`${at}.function.name`, `${at}.function.name must be a string.`);
  return given({
    name,
    description,
    input_schema: { type: "object", ...object(parameters) },
    strict: strict === true ? true : undefined,
  });
}

function toolChoice(choice: unknown): { type: string; name?: string; allowed?: ReadonlySet<unknown> } {
  const { type, function: chosen, allowed_tools } = object(choice);
  if (choice == null || choice === "auto") return { type: "auto" };
  if (choice === "none") return { type: "none" };
  if (choice === "required") return { type: "any" };
  const { name } = object(chosen);
  if (type === "function" && typeof name === "string") return { type: "tool", name };
  if (type === "allowed_tools") {
    const { mode, tools } = object(allowed_tools);
    const allowed = new Set(list(tools).map((tool) => object(tool["function"])["name"]));
    return { type: mode === "required" ? "any" : "auto", allowed };
  }
  throw invalidValue("tool_choice", "tool_choice: this model does not support this value.");
}

/** The tools of a chat request and their choice. */
export function prepareTools(request: JsonObject, { forcedTools }: ModelCapabilities): Tools {
  const tools = list(request["tools"]).map(prepareTool);
  const { type, name, allowed } = toolChoice(request["tool_choice"]);
  const isForced = type === "any" || type === "tool";
  if (isForced && (tools.length === 0 || !forcedTools))
    throw invalidValue("tool_choice", "tool_choice: this model cannot be forced to call a tool; use 'auto'.");
  if (tools.length === 0) return { fields: {}, isForced };
  const isSerial = request["parallel_tool_calls"] === false && type !== "none";
  return {
    fields: {
      tools: allowed ? tools.filter((tool) => allowed.has(tool["name"])) : tools,
      ...((type !== "auto" || isSerial) && {
        tool_choice: given({ type, name, disable_parallel_tool_use: isSerial ? true : undefined }),
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
      throw invalidValue(`tools[${t}].type`, `tools[${t}].type: this model supports only tools with an input_schema.`);
    for (const [field, value] of Object.entries(tool)) if (!convertibleFields.has(field)) ignored.add(field, value);
    return {
      type: "function",
      function: given({
        name: text(name),
        description,
        parameters: object(input_schema),
        strict: strict === true ? true : undefined,
      }),
    };
  });
}

export function convertToolChoiceToChat(choice: JsonObject): unknown {
  switch (choice["type"]) {
    case "auto":
    case "none":
      return choice["type"];
    case "any":
      return "required";
    case "tool":
      return { type: "function", function: { name: text(choice["name"]) } };
    default:
      return undefined;
  }
}
