import { invalidValue } from "#errors";
import { given, isSet, type JsonObject, list, object, strings, text } from "#formats";
import { isEmpty } from "../chat/fields.ts";
import { type IgnoredParams } from "../converter.ts";
import { geminiSchemaToChat, schemaToGemini } from "../json-schema.ts";

function toolToChat(declaration: JsonObject, path: string, strict: boolean, ignored: IgnoredParams): JsonObject {
  const { name, description, parameters, parametersJsonSchema, ...others } = declaration;
  for (const [field, value] of Object.entries(others)) ignored.add(field, value);
  const schema = isSet(parameters) ? geminiSchemaToChat(parameters, `${path}.parameters`) : parametersJsonSchema;
  return {
    type: "function",
    function: given({ name: text(name), description, parameters: schema, strict: strict || undefined }),
  };
}

/** Chat servers rarely support `allowed_tools`: functions that may not be called are removed from `tools`. */
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
    const path = "toolConfig.functionCallingConfig.mode";
    throw invalidValue(path, `${path}: ANY needs at least one function declaration.`);
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
  return given({
    tools: isOne || allowed.size === 0 ? tools : tools.filter(isAllowed),
    tool_choice: choices.get(callingMode),
  });
}

const refuse = (field: string): never => {
  throw invalidValue(field, `${field} is not supported by this model.`);
};

function toolFromChat(tool: JsonObject, t: number): JsonObject {
  const path = `tools[${t}]`;
  if (tool["type"] !== "function") refuse(`${path}.type`);
  const { name, description, parameters } = object(tool["function"]);
  if (typeof name !== "string" || !name)
    throw invalidValue(`${path}.function.name`, `${path}.function.name must be a string.`);
  const schema = isEmpty(parameters) ? undefined : schemaToGemini(parameters, `${path}.function.parameters`);
  return given({ name, description, parametersJsonSchema: schema });
}

interface ToolChoice {
  readonly mode: "AUTO" | "NONE" | "ANY";
  /** The one function that must be called. */
  readonly name?: string;
  readonly allowed?: ReadonlySet<unknown>;
}

function toolChoiceFromChat(choice: unknown): ToolChoice {
  if (choice == null || choice === "auto") return { mode: "AUTO" };
  if (choice === "none") return { mode: "NONE" };
  if (choice === "required") return { mode: "ANY" };
  const { type, function: named, allowed_tools } = object(choice);
  const { name } = object(named);
  if (type === "function" && typeof name === "string") return { mode: "ANY", name };
  if (type !== "allowed_tools") return refuse("tool_choice");
  const { mode, tools } = object(allowed_tools);
  const names = list(tools).map((tool) => object(tool["function"])["name"]);
  return { mode: mode === "required" ? "ANY" : "AUTO", allowed: new Set(names) };
}

/** `tools` and `toolConfig` of a chat request. */
export function prepareTools(request: JsonObject): JsonObject {
  const tools = list(request["tools"]);
  const declared = tools.map(toolFromChat);
  const { mode, name, allowed } = toolChoiceFromChat(request["tool_choice"]);
  if (declared.length === 0) return mode === "ANY" ? refuse("tool_choice") : {};
  // Gemini has no setting to prevent parallel calls.
  if (request["parallel_tool_calls"] === false && mode !== "NONE") refuse("parallel_tool_calls");
  const isStrict = mode === "AUTO" && tools.some((tool) => object(tool["function"])["strict"] === true);
  const functionCallingConfig = given({
    mode: isStrict ? "VALIDATED" : mode,
    allowedFunctionNames: name === undefined ? undefined : [name],
  });
  return {
    tools: [{ functionDeclarations: allowed ? declared.filter((each) => allowed.has(each["name"])) : declared }],
    ...((mode !== "AUTO" || isStrict) && { toolConfig: { functionCallingConfig } }),
  };
}
