import { invalidValue } from "#errors";
import {
  given,
  isSet,
  isUploadId,
  type JsonObject,
  list,
  logprobsInclude,
  object,
  refuse,
  strings,
  text,
} from "#formats";
import { contentOf, filePart, splitResult, textPart, withSystem } from "../chat/parts.ts";
import { type ConvertedRequest, type IgnoredParams, ignoredParams } from "../converter.ts";
import { callToChat } from "./convert-response-to-chat.ts";
import { convertToolsToChat } from "./prepare-tools.ts";

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

function partToChat(part: JsonObject, path: string, ignored: IgnoredParams): JsonObject {
  ignored.add("prompt_cache_breakpoint", part["prompt_cache_breakpoint"]);
  const { detail, image_url, file_id, file_data, file_url, filename } = part;
  switch (part["type"]) {
    case "input_text":
    case "output_text":
      return textPart(text(part["text"]));
    case "input_image":
      return {
        type: "image_url",
        image_url: { url: text(image_url) || text(file_id), ...(isSet(detail) && { detail }) },
      };
    case "input_audio":
      return { type: "input_audio", input_audio: object(part["input_audio"]) };
    case "input_file": {
      ignored.add("detail", detail);
      const uploadId = [file_id, file_data, file_url].find(isUploadId);
      return filePart(uploadId ?? (text(file_data) || text(file_url)), text(filename) || undefined);
    }
    default:
      return refuse(`${path}.type`, "parts of this type are not supported by this model");
  }
}

const partsToChat = (content: unknown, path: string, ignored: IgnoredParams): JsonObject[] =>
  Array.isArray(content)
    ? list(content).map((part, p) => partToChat(part, `${path}[${p}]`, ignored))
    : [textPart(text(content))];

/** An assistant message and the calls after it: one message of chat. */
interface AssistantTurn {
  content: string;
  refusal: string;
  readonly calls: JsonObject[];
}

function turnToChat({ content, refusal, calls }: AssistantTurn): JsonObject {
  return {
    role: "assistant",
    content: content || (refusal || calls.length > 0 ? null : ""),
    ...(refusal && { refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function inputToChat(input: unknown, ignored: IgnoredParams): JsonObject[] {
  if (!Array.isArray(input)) return [{ role: "user", content: text(input) }];
  const messages: JsonObject[] = [];
  let turn: AssistantTurn | undefined;
  let resultMedia: JsonObject[] = [];
  const endTurn = () => {
    if (turn) messages.push(turnToChat(turn));
    turn = undefined;
  };
  const endResults = () => {
    if (resultMedia.length > 0) messages.push({ role: "user", content: resultMedia });
    resultMedia = [];
  };
  const openTurn = (): AssistantTurn => {
    endResults();
    turn ??= { content: "", refusal: "", calls: [] };
    return turn;
  };

  const addMessage = ({ role, content }: JsonObject, path: string) => {
    if (role !== "assistant") {
      endTurn();
      endResults();
      messages.push({
        role: role === "system" || role === "developer" ? role : "user",
        content: contentOf(partsToChat(content, `${path}.content`, ignored)),
      });
      return;
    }
    // Consecutive messages stay separate, but text after calls belongs to their turn.
    if (turn && turn.calls.length === 0) endTurn();
    const current = openTurn();
    for (const part of typeof content === "string" ? [{ text: content, refusal: "" }] : list(content)) {
      current.content += text(part["text"]);
      current.refusal += text(part["refusal"]);
    }
  };
  const addResult = ({ call_id, output }: JsonObject, path: string) => {
    endTurn();
    const id = text(call_id);
    const { resultText, media } = splitResult(id, partsToChat(output, `${path}.output`, ignored));
    messages.push({ role: "tool", tool_call_id: id, content: resultText });
    resultMedia.push(...media);
  };

  list(input).forEach((item, i) => {
    const path = `input[${i}]`;
    switch (item["type"] ?? "message") {
      case "message":
        addMessage(item, path);
        return;
      case "function_call":
      case "custom_tool_call":
        openTurn().calls.push(callToChat(item));
        return;
      case "function_call_output":
      case "custom_tool_call_output":
        addResult(item, path);
        return;
      case "reasoning":
        // Chat has no field for the provider's own state.
        ignored.add("reasoning.encrypted_content", item["encrypted_content"]);
        return;
      default:
        refuse(`${path}.type`, "items of this type are not supported by this model");
    }
  });
  endTurn();
  endResults();
  return messages;
}

function responseFormatToChat({ type, ...schema }: JsonObject): unknown {
  if (type === undefined || type === "text") return undefined;
  if (type === "json_object") return { type };
  if (type === "json_schema") return { type, json_schema: given(schema) };
  throw invalidValue("text.format.type", "text.format.type must be text, json_object or json_schema.");
}

/** Only the default tiers are hints; any other has a price of its own. */
const isDefaultTier = (tier: unknown) => tier === "auto" || tier === "default";

/** Throws `invalidValue` naming the caller's field. Fields that are not read are ignored by name. */
export function convertRequestToChat(request: JsonObject): ConvertedRequest {
  const { model, input, instructions, stream, max_output_tokens, temperature, top_p, top_logprobs, ...others } =
    request;
  const { tools, tool_choice, parallel_tool_calls, text: textConfig, reasoning, include, ...options } = others;
  const { service_tier, stream_options, truncation, store: _, background: __, ...moreOptions } = options;
  // Chat takes `metadata` only with `store: true`: https://github.com/tmc/langchaingo/issues/1484
  const { prompt_cache_key, safety_identifier, user, ...ignoredFields } = moreOptions;
  const { effort, ...otherReasoning } = object(reasoning);
  const { format, verbosity } = object(textConfig);

  const ignored = ignoredParams();
  for (const [field, value] of Object.entries(ignoredFields)) ignored.add(field, value);
  if (parallel_tool_calls === true) ignored.add("parallel_tool_calls", true);
  if (isDefaultTier(service_tier)) ignored.add("service_tier", true);
  if (truncation === "auto") ignored.add("truncation", true);
  if (object(stream_options)["include_obfuscation"] === true) ignored.add("stream_options.include_obfuscation", true);
  for (const [field, value] of Object.entries(otherReasoning)) ignored.add(`reasoning.${field}`, value);
  if (strings(include).some((each) => each !== logprobsInclude)) ignored.add("include", true);

  const system = text(instructions);
  const messages = inputToChat(input, ignored);
  const chat = given({
    model,
    messages: withSystem(system, messages),
    stream,
    max_completion_tokens: max_output_tokens,
    temperature,
    top_p,
    logprobs: strings(include).includes(logprobsInclude) || top_logprobs ? true : undefined,
    top_logprobs: top_logprobs || undefined,
    ...convertToolsToChat({ tools, tool_choice, parallel_tool_calls }, ignored),
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
