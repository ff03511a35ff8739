import { given, isSet, type JsonObject, list, object, refuse, text } from "#formats";

const refuseType = (path: string): never => refuse(`${path}.type`, "this model accepts only function and custom tools");

function toolFromChat(tool: JsonObject, t: number): JsonObject {
  const { type } = tool;
  if (type === "function") {
    const { name, description, parameters, strict } = object(tool["function"]);
    return given({
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
  return given({
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
