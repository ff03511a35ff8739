import { invalidValue } from "#errors";
import { refuseDeep } from "../depth.ts";
import { valid } from "../invalid.ts";
import { type JsonObject, object } from "../loose.ts";
import { type Measure, measuredSize, newMeasure } from "../measure.ts";
import { isSet, text } from "../read.ts";
import type { Codec, Feature, ParsedCall } from "../types.ts";
import { errorBody } from "./error-body.ts";
import { measureRequest, noteBreakpoint } from "./measure.ts";
import { type CountTokensRequest, countTokensRequest, messagesRequest } from "./request.ts";

/** Tools that the provider defines and the caller runs. All others with a type of their own run at the provider. */
const callersTool = /^(bash|text_editor|memory)_\d{8}$/;
/** At most, in tokens of the prompt: what stands before any tools, and one that the provider defines. */
const toolsPreamble = 512;
const definedTool = 1024;

/** Tenants share the operator's provider key: what is kept at the provider under an id may be another tenant's. */
const stored = ["container", "thread", "fallback_credit_token", "user_profile_id"];
/** Orders for work, or for whose account it is on, that the bound and the bill know nothing of. */
const unpriced = ["mcp_servers", "fallbacks", "compaction", "billing_policy"];

function refuseStored(request: JsonObject): void {
  const refuse = (param: string) => {
    throw invalidValue(param, `${param}: what is kept at the provider cannot be used here; send it itself.`);
  };
  for (const field of stored) if (isSet(request[field])) refuse(field);
  if (isSet(object(request["diagnostics"])["previous_message_id"])) refuse("diagnostics.previous_message_id");
}

function refuseUnpriced(request: JsonObject): void {
  const refuse = (param: string) => {
    throw invalidValue(param, `${param}: what the provider runs or bills apart is not supported.`);
  };
  for (const field of unpriced) if (isSet(request[field])) refuse(field);
  const { speed, inference_geo, context_management } = request;
  if (isSet(speed) && speed !== "standard") refuse("speed");
  if (isSet(inference_geo) && inference_geo !== "global") refuse("inference_geo");
  const { edits } = object(context_management);
  if (Array.isArray(edits))
    edits.forEach((edit: unknown, e) => {
      if (!text(object(edit)["type"]).startsWith("clear_")) refuse(`context_management.edits[${e}].type`);
    });
}

/** The prompt tokens that tools bring along beside their bytes. */
function measureTools({ tools }: CountTokensRequest, measure: Measure): number {
  if (!tools?.length) return 0;
  measure.features.set("tools", "tools");
  let tokens = toolsPreamble;
  tools.forEach((tool, t) => {
    const at = `tools[${t}]`;
    noteBreakpoint(tool, at, measure);
    if (tool.type == null || tool.type === "custom") {
      if (!tool.name) throw invalidValue(`${at}.name`, `${at}.name must be a string.`);
      return;
    }
    if (!callersTool.test(tool.type))
      throw invalidValue(`${at}.type`, `${at}.type: tools that the provider runs are not supported.`);
    tokens += definedTool;
  });
  return tokens;
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

function parsedCall(request: CountTokensRequest, bodyBytes: number): Omit<ParsedCall, "stream"> {
  refuseStored(request);
  refuseUnpriced(request);
  const features = featuresOf(request);
  const measure = newMeasure(features);
  noteBreakpoint(request, "", measure);
  const toolTokens = measureTools(request, measure);
  measureRequest(request, measure);
  const { uploads, mediaBytes, textBytes, framed } = measure;
  const inputBytes = Math.max(0, bodyBytes - mediaBytes);
  return {
    model: request.model,
    textBytes: framed || features.has("tools") ? inputBytes : textBytes,
    size: {
      inputBytes: inputBytes + toolTokens,
      messages: request.messages.length + (request.system == null ? 0 : 1),
      ...measuredSize(measure),
      choices: 1,
    },
    features,
    uploads,
  };
}

/** What the provider reads of a caller's headers: they choose among its own behaviors, and nothing of ours. */
export const messagesHeaders: readonly string[] = ["anthropic-version", "anthropic-beta"];

export const messagesCodec: Codec = {
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = valid(messagesRequest, body);
    const call = parsedCall(request, bodyBytes);
    const { stream, max_tokens } = request;
    return { ...call, stream: stream ?? false, size: { ...call.size, outputCap: max_tokens } };
  },
  error: errorBody,
  streamError: (error, requestId) => `event: error\ndata: ${errorBody(error, requestId)}\n\n`,
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
};

/** Of POST /v1/messages/count_tokens. */
export const countTokensCodec: Codec = {
  ...messagesCodec,
  parse(body, bodyBytes) {
    refuseDeep(body);
    return { ...parsedCall(valid(countTokensRequest, body), bodyBytes), stream: false };
  },
};
