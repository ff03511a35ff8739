import { isObject, type JsonObject, list, object, omitNullish, text } from "#json";
import type { ProviderRequest } from "../http/provider-client.ts";
import { UpstreamFailure } from "../provider.ts";

/** Regions with inference profiles of their own within a larger area. */
const ownProfiles: ReadonlyMap<string, string> = new Map([
  ["ap-northeast-1", "jp"],
  ["ap-northeast-3", "jp"],
  ["ap-southeast-2", "au"],
  ["ap-southeast-4", "au"],
]);
const areas = [
  [/^us-gov-/, "us-gov"],
  [/^(us|ca)-/, "us"],
  [/^eu-/, "eu"],
  [/^ap-/, "apac"],
] as const;

/**
 * The prefix of the inference profiles that keep requests of a region in its area
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/geographic-cross-region-inference.html).
 */
export const profilePrefix = (region: string): string | undefined =>
  ownProfiles.get(region) ?? areas.find(([pattern]) => pattern.test(region))?.[1];

/** The model's name in a region: `{geo}` stands for the prefix of the region's inference profiles. */
export function modelAt(model: string, region: string): string {
  if (!model.includes("{geo}")) return model;
  const prefix = profilePrefix(region);
  if (prefix === undefined)
    throw new UpstreamFailure("misconfigured", `the region ${region} has no inference profiles of its own area`);
  return model.replace("{geo}", prefix);
}

/** The model's name without the prefix of an inference profile. */
export const foundationModel = (model: string): string =>
  model.replace(/^(\{geo\}|us|us-gov|eu|apac|jp|au|ca|global)\./, "");

/** Models for which the runtime endpoint has OpenAI's routes. */
export const isOpenaiModel = (model: string): boolean => foundationModel(model).startsWith("openai.");

export const modelPath = (model: string, operation: string): string =>
  `/model/${encodeURIComponent(model)}/${operation}`;

/** Paths of the vendors' own APIs. Converse and token counts have the addresses of this cloud already. */
const isVendorPath = (path: string) => !path.startsWith("/model/") && !path.startsWith("/v1/");

/** Betas that the API knows. One that it does not know is a 400, even if the request uses no feature of it. */
const knownBetas =
  /^(computer-use|token-efficient-tools|interleaved-thinking|output-128k|dev-full-thinking|context-1m|context-management|compact|effort|tool-search-tool|tool-examples|fine-grained-tool-streaming)-\d/;
const fineGrainedStreaming = "fine-grained-tool-streaming-2025-05-14";
/** Fields that select how Anthropic's own service runs a request. */
const ownFields: readonly string[] = ["service_tier", "inference_geo", "speed", "diagnostics"];

function refuseLinks(value: unknown, param: string): void {
  list(value).forEach(({ source, content }, position) => {
    const at = `${param}[${position}]`;
    if (object(source).type === "url")
      throw new UpstreamFailure("refused", `${at}.source: links are not supported by this host; send the content.`, {
        param: `${at}.source`,
        isHostLimit: true,
      });
    refuseLinks(content, `${at}.content`);
    refuseLinks(object(source).content, `${at}.source.content`);
  });
}

/**
 * The body of a Messages request for InvokeModel
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html).
 */
export function invokeBody(request: JsonObject, betas: string | undefined): JsonObject {
  const { model: _, stream: __, tools, tool_choice, ...rest } = request;
  refuseLinks(rest.messages, "messages");
  const given = (betas ?? "").split(",").map((beta) => beta.trim());
  const sent = new Set(given.filter((beta) => knownBetas.test(beta)));
  const prepared = Array.isArray(tools)
    ? list(tools).map(({ eager_input_streaming, ...tool }) => {
        if (eager_input_streaming === true) sent.add(fineGrainedStreaming);
        return tool;
      })
    : undefined;
  const { type, name } = object(tool_choice);
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([field]) => !ownFields.includes(field))),
    ...omitNullish({ tools: prepared, tool_choice: isObject(tool_choice) ? omitNullish({ type, name }) : undefined }),
    ...(sent.size > 0 && { anthropic_beta: [...sent] }),
    anthropic_version: "bedrock-2023-05-31",
  };
}

const withoutAnthropicHeaders = (headers: ProviderRequest["headers"]) =>
  Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => !name.startsWith("anthropic-")));

/** Addresses of `bedrock-runtime`: https://docs.aws.amazon.com/bedrock/latest/userguide/endpoints.html. */
export const runtimeRequest =
  (region: string) =>
  (request: ProviderRequest): ProviderRequest => {
    if (!isVendorPath(request.path)) return request;
    const body = object(request.json);
    const model = modelAt(text(body.model), region);
    if (request.path !== "/messages")
      return { ...request, path: `/openai/v1${request.path}`, json: { ...body, model } };
    return {
      ...request,
      path: modelPath(model, body.stream === true ? "invoke-with-response-stream" : "invoke"),
      json: invokeBody(body, request.headers?.["anthropic-beta"]),
      headers: withoutAnthropicHeaders(request.headers),
    };
  };

/**
 * Addresses of `bedrock-mantle`. It serves OpenAI's numbered models below `/openai/v1` and all others below `/v1`, as their
 * model cards say (https://docs.aws.amazon.com/bedrock/latest/userguide/model-cards.html).
 */
export const mantleRequest =
  (region: string) =>
  (request: ProviderRequest): ProviderRequest => {
    if (!isVendorPath(request.path)) return request;
    const body = object(request.json);
    const model = modelAt(text(body.model), region);
    const json = { ...body, model };
    if (!request.path.startsWith("/messages"))
      return { ...request, path: `${/^openai\.gpt-\d/.test(model) ? "/openai" : ""}/v1${request.path}`, json };
    const headers = { "anthropic-version": "2023-06-01", ...request.headers };
    return { ...request, path: `/anthropic/v1${request.path}`, json, headers };
  };
