import type { ServiceError } from "#errors";
import { isSet, type JsonObject, list, object, refuseDeep, text } from "#json";
import { conversationOf, openingIn } from "../conversation.ts";
import { needText, providerTool, refuse, storedAtProvider, validate } from "../errors.ts";
import { type Measure, measuredCall, newMeasure } from "../measure.ts";
import type { Codec, Feature, ParsedCall } from "../types.ts";
import { measureRequest, noteBreakpoint } from "./measure.ts";
import { type CountTokensRequest, countTokensRequest, messagesRequest } from "./request.ts";

/** Tools that the provider defines and the caller runs. All other typed tools run at the provider. */
const clientTool = /^(bash|text_editor|memory|computer|(computer|browser)_toolset)_\d{8}$/;
/** Upper bounds of the prompt tokens that the provider adds: once for any tools, and for each tool that it defines. */
const maxPreambleTokens = 512;
const maxClientToolTokens = 1024;
/** A toolset is one tool with about thirty members. */
const maxToolsetTokens = 8192;

const stored = ["container", "thread", "fallback_credit_token", "user_profile_id"];
/** Fields that start or redirect billing for work without a price. */
const unpriced = ["mcp_servers", "fallbacks", "compaction", "billing_policy"];

function refuseStored(request: JsonObject): void {
  for (const field of stored) if (isSet(request[field])) throw storedAtProvider(field);
  if (isSet(object(request["diagnostics"])["previous_message_id"]))
    throw storedAtProvider("diagnostics.previous_message_id");
}

function refuseUnpriced(request: JsonObject): void {
  const reason = "features that run at the provider or are billed separately are not supported";
  for (const field of unpriced) if (isSet(request[field])) refuse(field, reason);
  const { speed, inference_geo, context_management } = request;
  if (isSet(speed) && speed !== "standard") refuse("speed", reason);
  if (isSet(inference_geo) && inference_geo !== "global") refuse("inference_geo", reason);
  const { edits } = object(context_management);
  list(edits).forEach(({ type }, e) => {
    if (!text(type).startsWith("clear_")) refuse(`context_management.edits[${e}].type`, reason);
  });
}

/** Notes the tools and returns the prompt tokens that they add beyond their bytes. */
function measureTools({ tools }: CountTokensRequest, measure: Measure): number {
  if (!tools?.length) return 0;
  measure.features.set("tools", "tools");
  let tokens = maxPreambleTokens;
  tools.forEach((tool, t) => {
    const at = `tools[${t}]`;
    noteBreakpoint(tool, at, measure);
    if (tool.type == null || tool.type === "custom") {
      needText(tool.name, `${at}.name`);
      return;
    }
    if (!clientTool.test(tool.type)) throw providerTool(`${at}.type`);
    tokens += tool.type.includes("toolset") ? maxToolsetTokens : maxClientToolTokens;
  });
  return tokens;
}

/** Counts the bytes of the tools that `tool_reference` blocks repeat in the prompt. */
function referencedBytes({ messages, tools }: CountTokensRequest): number {
  let sizes: Map<unknown, number> | undefined;
  let bytes = 0;
  for (const { content } of messages)
    for (const block of list(content))
      for (const { type, tool_name } of list(block["content"])) {
        if (type !== "tool_reference") continue;
        sizes ??= new Map((tools ?? []).map((tool) => [tool.name, Buffer.byteLength(JSON.stringify(tool))]));
        bytes += sizes.get(tool_name) ?? 0;
      }
  return bytes;
}

function featuresOf(request: CountTokensRequest): Map<Feature, string> {
  const features = new Map<Feature, string>();
  if (request.output_config?.format) features.set("json", "output_config.format");
  if (isSet(request["output_format"])) features.set("json", "output_format");
  const { service_tier } = request;
  if (isSet(service_tier) && service_tier !== "auto" && service_tier !== "standard_only")
    features.set("service_tier", "service_tier");
  return features;
}

function parsedCall(
  request: CountTokensRequest,
  bodyBytes: number,
  { stream, max_tokens: outputCap }: { stream?: boolean | null | undefined; max_tokens?: number } = {},
): ParsedCall {
  refuseStored(request);
  refuseUnpriced(request);
  const measure = newMeasure(featuresOf(request));
  noteBreakpoint(request, "", measure);
  const ownTokens = measureTools(request, measure);
  measureRequest(request, measure);
  const toolTokens = ownTokens + referencedBytes(request);
  const size = { messages: request.messages.length + (request.system == null ? 0 : 1), choices: 1 };
  const { model, system, tools, messages, metadata, prompt_cache_key } = request;
  const named = isSet(prompt_cache_key) ? prompt_cache_key : object(metadata)["user_id"];
  return {
    model,
    stream: stream ?? false,
    ...conversationOf(named, () => openingIn(messages, { instructions: system, tools })),
    ...measuredCall(measure, bodyBytes, size, { toolTokens, outputCap }),
  };
}

/** The types of docs/api/wire-details.md, "Error types by format". */
const errorTypes = new Map([
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [405, "not_found_error"],
  [410, "not_found_error"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [504, "timeout_error"],
]);

/** Makes the provider's clients send the whole conversation instead of a thread id. */
const unthreaded = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

function errorBody(error: ServiceError, requestId: string): string {
  const details = error.code === "invalid_value" && error.param === "thread" ? { details: unthreaded } : {};
  const type = errorTypes.get(error.status) ?? (error.status < 500 ? "invalid_request_error" : "api_error");
  return JSON.stringify({
    type: "error",
    error: { ...details, type, message: error.message },
    request_id: requestId,
  });
}

/** Request headers passed on to the provider. They affect only its own behavior. */
export const messagesHeaders: readonly string[] = ["anthropic-version", "anthropic-beta"];

export const messagesCodec: Codec = {
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = validate(messagesRequest, body);
    return parsedCall(request, bodyBytes, request);
  },
  userOf: ({ metadata }) => object(metadata)["user_id"],
  error: errorBody,
  streamError: (error, requestId) => `event: error\ndata: ${errorBody(error, requestId)}\n\n`,
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
};

export const countTokensCodec: Codec = {
  ...messagesCodec,
  parse(body, bodyBytes) {
    refuseDeep(body);
    return parsedCall(validate(countTokensRequest, body), bodyBytes);
  },
};
