import { invalidValue } from "#errors";
import { logprobsInclude } from "#formats";
import { type JsonObject, object, omitNullish, strings, text } from "#json";
import { withSystem } from "../chat/parts.ts";
import { type ConvertedRequest, ignoredParams } from "../converter.ts";
import { callerTools } from "./caller-tools.ts";
import { inputToChat } from "./convert-input-to-chat.ts";
import { withoutHostedTools } from "./omit-tools.ts";
import { convertToolsToChat, refuseToolType } from "./prepare-tools.ts";
import { stateInclude } from "./reasoning-state.ts";

export const callerFields: Readonly<Record<string, string>> = {
  messages: "input",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  logprobs: "include",
  tools: "tools",
  response_format: "text.format",
  reasoning_effort: "reasoning.effort",
  verbosity: "text.verbosity",
};

function responseFormatToChat({ type, ...schema }: JsonObject): unknown {
  if (type === undefined || type === "text") return undefined;
  if (type === "json_object") return { type };
  if (type === "json_schema") return { type, json_schema: omitNullish(schema) };
  throw invalidValue("text.format.type", "text.format.type must be text, json_object or json_schema.");
}

/** The default tiers are only hints; every other tier has its own price. */
const isDefaultTier = (tier: unknown) => tier === "auto" || tier === "default";

/** Throws `invalidValue` naming the caller's field. Fields that are not read are ignored by name. */
export function convertRequestToChat(body: JsonObject): ConvertedRequest {
  const ignored = ignoredParams();
  const request = withoutHostedTools(body, ignored);
  const { model, input, instructions, stream, max_output_tokens, temperature, top_p, top_logprobs, ...others } =
    request;
  const { tools: _, tool_choice, parallel_tool_calls, text: textConfig, reasoning, include, ...options } = others;
  const { service_tier, stream_options, truncation, store: __, background: ___, ...moreOptions } = options;
  // Chat takes `metadata` only with `store: true`: https://github.com/tmc/langchaingo/issues/1484
  const { prompt_cache_key, safety_identifier, user, ...ignoredFields } = moreOptions;
  const { effort, ...otherReasoning } = object(reasoning);
  const { format, verbosity } = object(textConfig);
  const callable = callerTools(request, refuseToolType);

  for (const [field, value] of Object.entries(ignoredFields)) ignored.add(field, value);
  if (parallel_tool_calls === true) ignored.add("parallel_tool_calls", true);
  if (isDefaultTier(service_tier)) ignored.add("service_tier", true);
  if (truncation === "auto") ignored.add("truncation", true);
  if (object(stream_options)["include_obfuscation"] === true) ignored.add("stream_options.include_obfuscation", true);
  for (const [field, value] of Object.entries(otherReasoning)) ignored.add(`reasoning.${field}`, value);
  if (strings(include).some((each) => each !== logprobsInclude && each !== stateInclude)) ignored.add("include", true);

  const system = text(instructions);
  const messages = inputToChat(input, callable, ignored);
  const chat = omitNullish({
    model,
    messages: withSystem(system, messages),
    stream,
    max_completion_tokens: max_output_tokens,
    temperature,
    top_p,
    logprobs: strings(include).includes(logprobsInclude) || top_logprobs ? true : undefined,
    top_logprobs: top_logprobs || undefined,
    ...convertToolsToChat({ tool_choice, parallel_tool_calls }, callable, ignored),
    reasoning_effort: effort,
    response_format: responseFormatToChat(object(format)),
    verbosity,
    service_tier: isDefaultTier(service_tier) ? undefined : service_tier,
    prompt_cache_key,
    safety_identifier,
    user,
  });
  return { request: chat, ignored: ignored.names() };
}
