import { byteLength, isSet, type JsonObject, list, object } from "#json";
import { needText, refuse, storedAtProvider } from "../errors.ts";
import type { ResponsesRequest } from "./request.ts";

/** Tools that the caller runs. All others run at the provider. */
const callerTools = ["function", "custom", "namespace", "tool_search", "apply_patch", "local_shell", "shell"];
/** Tools whose description the provider adds to the prompt, and the maximum of its tokens. */
const describedTools: readonly string[] = ["apply_patch", "local_shell", "shell"];
const maxDescriptionTokens = 1024;
/** A custom tool may become a function with one parameter. */
const customToolTokens = 64;
/** The longest function name in chat, where the name of a namespace precedes those of its functions. */
const maxFunctionName = 64;

const hostedTools = "tools that run at the provider are not supported";
const liveSearch = "web search is not supported; leave it out, or offer functions beside it";
export const webSearch: readonly unknown[] = ["web_search", "web_search_2025_08_26"];
const hostedTypes: readonly unknown[] = [
  ...webSearch,
  "web_search_preview",
  "web_search_preview_2025_03_11",
  "file_search",
  "code_interpreter",
  "image_generation",
  "mcp",
  "computer",
  "computer_use_preview",
];

/**
 * Returns which tools are omitted before any provider sees them, and reported: a web search without access to the web,
 * which Codex sends by default, and every tool that runs at the provider if the caller also offers tools of its own.
 * Without such tools, other provider tools are refused.
 */
export function omittedTools(request: JsonObject): (tool: JsonObject) => boolean {
  const hasOwn = toolLists(request).some(([tools]) => tools.some(({ type }) => callerTools.includes(type as string)));
  return (tool) =>
    (hasOwn && hostedTypes.includes(tool["type"])) ||
    (webSearch.includes(tool["type"]) && tool["external_web_access"] === false);
}

/** Input items that give the model tools: directly from the caller, or found by a search that the caller ran. */
export const isToolsItem = ({ type }: JsonObject): boolean =>
  type === "additional_tools" || type === "tool_search_output";

/** Refuses tools that run at the provider. Returns the prompt tokens that the tool costs in addition to its bytes. */
function checkTool(
  tool: JsonObject,
  path: string,
  isOmitted: (tool: JsonObject) => boolean,
  types = callerTools,
): number {
  const { type, name, tools, environment, execution } = tool;
  if (types === callerTools && isOmitted(tool)) return 0;
  if (isSet(tool["vector_store_ids"])) throw storedAtProvider(`${path}.vector_store_ids`);
  if (isSet(tool["container"])) throw storedAtProvider(`${path}.container`);
  if (webSearch.includes(type)) return refuse(`${path}.type`, liveSearch);
  if (typeof type !== "string" || !types.includes(type)) return refuse(`${path}.type`, hostedTools);
  if (type === "shell" && object(environment)["type"] !== "local")
    refuse(`${path}.environment`, "only a local shell, which the caller runs, is supported");
  if (type === "tool_search") {
    if (execution !== "client") refuse(`${path}.execution`, "only a search that the caller runs is supported");
    return 0;
  }
  if (describedTools.includes(type)) return maxDescriptionTokens;
  const nameBytes = Math.min(maxFunctionName, byteLength(needText(name, `${path}.name`)));
  if (type !== "namespace") return type === "custom" ? customToolTokens : 0;
  // Counted twice: once in the definition, and once in the result of a search.
  return list(tools).reduce(
    (sum, each, t) => sum + 2 * nameBytes + checkTool(each, `${path}.tools[${t}]`, isOmitted, ["function", "custom"]),
    0,
  );
}

export function toolLists({ tools, input }: JsonObject): (readonly [tools: readonly JsonObject[], path: string])[] {
  const items = list(input).flatMap((item, i) =>
    isToolsItem(item) ? [[list(item["tools"]), `input[${i}].tools`] as const] : [],
  );
  return [[list(tools), "tools"], ...items];
}

/** Refuses tools that run at the provider. Returns the prompt tokens that tools cost in addition to their bytes. */
export function checkTools(request: ResponsesRequest): number {
  const isOmitted = omittedTools(request);
  let tokens = 0;
  for (const [tools, path] of toolLists(request))
    tools.forEach((tool, t) => {
      tokens += checkTool(tool, `${path}[${t}]`, isOmitted);
    });
  const choice = object(request.tool_choice)["type"];
  if (choice !== undefined && choice !== "allowed_tools" && !callerTools.includes(choice as string))
    refuse("tool_choice.type", hostedTools);
  return tokens;
}
