import { UpstreamFailure } from "../provider.ts";
import type { ChatRequest } from "./request.ts";
import { fill, type Words } from "./schema.ts";

export interface ToolCall {
  readonly name: string;
  /** JSON, as on the wire. */
  readonly arguments: string;
}

/**
 * The function that `tool_choice` names; with `required` those that the prompt names, else the first; with `auto` those that
 * the prompt names, unless the last message is a tool's result. "get_weather" and "get weather" both name `get_weather`. Only
 * the first of them if `parallel_tool_calls` is false.
 */
export function toolCalls(request: ChatRequest, prompt: string, words: Words): readonly ToolCall[] {
  const { tools, tool_choice: choice, messages } = request;
  const functions = (tools ?? []).flatMap((tool) => ("function" in tool ? [tool.function] : []));
  if (functions.length === 0 || choice === "none") return [];
  const call = ({ name, parameters }: (typeof functions)[number]): ToolCall => ({
    name,
    arguments: JSON.stringify(fill(parameters ?? { type: "object" }, words)),
  });
  if (typeof choice === "object" && choice !== null) {
    const { name } = choice.function;
    const named = functions.find((each) => each.name === name);
    if (named) return [call(named)];
    throw new UpstreamFailure("refused", `No function is called '${name}'.`, { param: "tool_choice" });
  }
  if (choice !== "required" && messages.at(-1)?.role === "tool") return [];
  const text = prompt.toLowerCase();
  const isNamed = ({ name }: { name: string }) => {
    const lower = name.toLowerCase();
    return text.includes(lower) || text.includes(lower.replaceAll("_", " "));
  };
  const named = functions.filter(isNamed);
  const called = named.length === 0 && choice === "required" ? functions.slice(0, 1) : named;
  return (request.parallel_tool_calls === false ? called.slice(0, 1) : called).map(call);
}
