import {
  isIdleSearch,
  isSet,
  isToolsItem,
  isWebSearch,
  type JsonObject,
  list,
  object,
  refuse,
  strings,
} from "#formats";
import { type IgnoredParams } from "../converter.ts";

const hasIdleSearch = ({ tools }: JsonObject): boolean => list(tools).some(isIdleSearch);

const withoutSearch = (holder: JsonObject): JsonObject =>
  hasIdleSearch(holder) ? { ...holder, tools: list(holder["tools"]).filter((tool) => !isIdleSearch(tool)) } : holder;

function choiceWithoutSearch(choice: unknown): unknown {
  const { type, mode, tools } = object(choice);
  if (type !== "allowed_tools" || !list(tools).some(isWebSearch)) return choice;
  const allowed = list(tools).filter((tool) => !isWebSearch(tool));
  if (allowed.length > 0) return { type, mode, tools: allowed };
  return mode === "required" ? refuse("tool_choice.tools", "web search is not supported") : "none";
}

/** The request without a web search that has no access to the web, and without what refers to it. */
export function withoutIdleSearch(request: JsonObject, ignored: IgnoredParams): JsonObject {
  const { input, tool_choice, include } = request;
  const items = Array.isArray(input) ? list(input) : [];
  const isGiven = (item: JsonObject) => isToolsItem(item) && hasIdleSearch(item);
  if (!hasIdleSearch(request) && !items.some(isGiven)) return request;
  ignored.add("tools.web_search", true);
  return {
    ...withoutSearch(request),
    ...(items.some(isGiven) && { input: items.map((item) => (isGiven(item) ? withoutSearch(item) : item)) }),
    ...(isSet(tool_choice) && { tool_choice: choiceWithoutSearch(tool_choice) }),
    ...(isSet(include) && { include: strings(include).filter((each) => !each.startsWith("web_search_call.")) }),
  };
}
