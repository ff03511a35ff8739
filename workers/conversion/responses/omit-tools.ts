import { isToolsItem, omittedTools, refuse, webSearch } from "#formats";
import { isSet, type JsonObject, list, object, strings } from "#json";
import type { IgnoredParams } from "../converter.ts";

/** Removes the hosted tools that are omitted, and everything that refers to them. */
export function withoutHostedTools(request: JsonObject, ignored: IgnoredParams): JsonObject {
  const isOmitted = omittedTools(request);
  const { input, tool_choice, include } = request;
  const names = new Set<string>();
  const without = (holder: JsonObject): JsonObject => {
    const tools = list(holder["tools"]);
    const omitted = tools.filter(isOmitted);
    for (const { type } of omitted) names.add(webSearch.includes(type) ? "web_search" : String(type));
    return omitted.length > 0 ? { ...holder, tools: tools.filter((tool) => !isOmitted(tool)) } : holder;
  };
  const rest = without(request);
  const items = Array.isArray(input) && input.map((item) => (isToolsItem(object(item)) ? without(object(item)) : item));
  if (names.size === 0) return request;
  for (const name of names) ignored.add(`tools.${name}`, true);
  return {
    ...rest,
    ...(items && { input: items }),
    ...(isSet(tool_choice) && { tool_choice: choiceWithout(tool_choice, isOmitted) }),
    ...(isSet(include) && {
      include: strings(include).filter((each) => ![...names].some((name) => each.startsWith(`${name}_call`))),
    }),
  };
}

function choiceWithout(choice: unknown, isOmitted: (tool: JsonObject) => boolean): unknown {
  const { type, mode, tools } = object(choice);
  // A choice names a tool by its type alone.
  const isGone = (tool: JsonObject) => isOmitted({ ...tool, external_web_access: false });
  if (type !== "allowed_tools" || !list(tools).some(isGone)) return choice;
  const allowed = list(tools).filter((tool) => !isGone(tool));
  if (allowed.length > 0) return { type, mode, tools: allowed };
  return mode === "required" ? refuse("tool_choice.tools", "tools that run at the provider are not supported") : "none";
}
