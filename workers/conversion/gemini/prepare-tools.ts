import { needText, refuse } from "#formats";
import { isSet, type JsonObject, list, object, omitNullish, strings, text } from "#json";
import { functionChoice, isEmpty, refuseParam } from "../chat/fields.ts";
import type { IgnoredParams } from "../converter.ts";
import { geminiSchemaToChat, lowerTypes, schemaToGemini } from "../json-schema.ts";

function toolToChat(declaration: JsonObject, path: string, strict: boolean, ignored: IgnoredParams): JsonObject {
  const { name, description, parameters, parametersJsonSchema, ...others } = declaration;
  for (const [field, value] of Object.entries(others)) ignored.add(field, value);
  const schema = isSet(parameters)
    ? geminiSchemaToChat(parameters, `${path}.parameters`)
    : isSet(parametersJsonSchema)
      ? lowerTypes(parametersJsonSchema, `${path}.parametersJsonSchema`)
      : undefined;
  return {
    type: "function",
    function: omitNullish({ name: text(name), description, parameters: schema, strict: strict || undefined }),
  };
}

/** Chat servers rarely support `allowed_tools`, so functions that may not be called are removed from `tools`. */
export function convertToolsToChat(request: JsonObject, ignored: IgnoredParams): JsonObject {
  const { mode, allowedFunctionNames } = object(object(request["toolConfig"])["functionCallingConfig"]);
  const callingMode = text(mode).toUpperCase();
  const tools = list(request["tools"]).flatMap((tool, t) =>
    list(tool["functionDeclarations"]).map((each, f) =>
      toolToChat(each, `tools[${t}].functionDeclarations[${f}]`, callingMode === "VALIDATED", ignored),
    ),
  );
  if (tools.length === 0) {
    if (callingMode !== "ANY") return {};
    return refuse("toolConfig.functionCallingConfig.mode", "ANY needs at least one function declaration");
  }
  const isLimited = callingMode === "ANY" || callingMode === "VALIDATED";
  const allowed = new Set(isLimited ? strings(allowedFunctionNames) : []);
  const [name] = allowed;
  const isOne = callingMode === "ANY" && allowed.size === 1;
  const isAllowed = (tool: JsonObject) => allowed.has(text(object(tool["function"])["name"]));
  const choices = new Map<string, unknown>([
    ["ANY", isOne ? { type: "function", function: { name } } : "required"],
    ["NONE", "none"],
    ["AUTO", "auto"],
    ["VALIDATED", "auto"],
  ]);
  return omitNullish({
    tools: isOne || allowed.size === 0 ? tools : tools.filter(isAllowed),
    tool_choice: choices.get(callingMode),
  });
}

function toolFromChat(tool: JsonObject, t: number): JsonObject {
  const path = `tools[${t}]`;
  if (tool["type"] !== "function") refuseParam(`${path}.type`);
  const { name: functionName, description, parameters } = object(tool["function"]);
  const name = needText(functionName, `${path}.function.name`);
  const schema = isEmpty(parameters) ? undefined : schemaToGemini(parameters, `${path}.function.parameters`);
  return omitNullish({ name, description, parametersJsonSchema: schema });
}

export function prepareTools(request: JsonObject): JsonObject {
  const tools = list(request["tools"]);
  const declared = tools.map(toolFromChat);
  const { mode, name, allowed } = functionChoice(request["tool_choice"]) ?? refuseParam("tool_choice");
  if (declared.length === 0) return mode === "required" ? refuseParam("tool_choice") : {};
  // Gemini has no setting to prevent parallel calls.
  if (request["parallel_tool_calls"] === false && mode !== "none") refuseParam("parallel_tool_calls");
  const isStrict = mode === "auto" && tools.some((tool) => object(tool["function"])["strict"] === true);
  const functionCallingConfig = omitNullish({
    mode: isStrict ? "VALIDATED" : mode === "required" ? "ANY" : mode.toUpperCase(),
    allowedFunctionNames: name === undefined ? undefined : [name],
  });
  return {
    tools: [{ functionDeclarations: allowed ? declared.filter((each) => allowed.has(each["name"])) : declared }],
    ...((mode !== "auto" || isStrict) && { toolConfig: { functionCallingConfig } }),
  };
}
