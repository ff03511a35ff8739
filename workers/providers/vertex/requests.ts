import { type JsonObject, list, object, pick, text } from "#json";
import type { ProviderRequest } from "../http/provider-client.ts";
import { UpstreamFailure } from "../provider.ts";

/** The version that Vertex AI expects in the body, where Anthropic's API has a header. */
const anthropicVersion = "vertex-2023-10-16";

/**
 * Betas that the platform refuses, by the features that it does not have: files, skills, MCP servers, priority access of
 * Anthropic's own clients. A request that uses such a feature is refused for the feature itself.
 */
const refusedBetas =
  /^(oauth|claude-code|files-api|skills|mcp-client|code-execution|message-batches|output-300k|fast-mode|prompt-caching-scope|redact-thinking|structured-outputs|advisor-tool|user-profiles)-/;

/** A path segment: Google's own clients leave the `@` of versions as it is. */
const segment = (name: string): string => encodeURIComponent(name).replaceAll("%40", "@");

/**
 * Turns a request of Google's Gemini API, Anthropic's API or OpenAI's into the request of Vertex AI, below the path of the
 * location. `isOperator` is set for the operator's own project, whose settings callers must not touch.
 */
export function vertexRequest(request: ProviderRequest, isOperator: boolean): ProviderRequest {
  const { path, json, headers = {} } = request;
  const body = object(json);
  const [, model, method] = /^\/models\/([^:?]+):(.+)$/.exec(path) ?? [];
  if (model !== undefined && method !== undefined) {
    const name = segment(decodeURIComponent(model));
    const content =
      method === "countTokens" ? countBody(body) : method === "predict" ? body : contentBody(body, isOperator);
    return { ...request, path: `/publishers/google/models/${name}:${method}`, json: content };
  }
  if (path === "/messages") {
    const { model: name, ...message } = body;
    const verb = message["stream"] === true ? "streamRawPredict" : "rawPredict";
    return claudeRequest(request, `${segment(text(name))}:${verb}`, message);
  }
  if (path === "/messages/count_tokens") return claudeRequest(request, "count-tokens:rawPredict", body);
  if (path === "/chat/completions") return { ...request, path: `/endpoints/openapi${path}`, headers };
  // No adapter in front of this client sends anything else for calls that the catalog allows.
  throw new UpstreamFailure("misconfigured", "Vertex AI has no such endpoint");
}

/** Fields of a request that take effect in the project, such as labels in its bill. */
const projectFields: ReadonlySet<string> = new Set(["labels", "modelArmorConfig"]);

function contentBody(body: JsonObject, isOperator: boolean): JsonObject {
  const { contents, ...rest } = body;
  const kept = Object.entries(rest).filter(
    // `store` is a field of the Gemini API alone; nothing is stored here.
    ([field]) => field !== "store" && field !== "model" && !(isOperator && projectFields.has(field)),
  );
  return { ...Object.fromEntries(kept), contents: withRoles(contents) };
}

/** The Gemini API assumes the user where a role is missing, and has a third role for results of functions. */
const withRoles = (contents: unknown): unknown =>
  Array.isArray(contents)
    ? list(contents).map((content) => ({ ...content, role: /^model$/i.test(text(content["role"])) ? "model" : "user" }))
    : contents;

const countedFields = ["contents", "systemInstruction", "tools", "generationConfig"];

function countBody(body: JsonObject): JsonObject {
  const { generateContentRequest = body } = body;
  const counted = pick(object(generateContentRequest), countedFields);
  return { ...counted, contents: withRoles(counted["contents"]) };
}

function claudeRequest(request: ProviderRequest, method: string, body: JsonObject): ProviderRequest {
  refuseLinks(body);
  const { "anthropic-version": _, "anthropic-beta": betas = "", ...headers } = request.headers ?? {};
  const accepted = betas
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "" && !refusedBetas.test(beta));
  return {
    ...request,
    path: `/publishers/anthropic/models/${method}`,
    headers: { ...headers, ...(accepted.length > 0 && { "anthropic-beta": accepted.join(",") }) },
    json: { ...body, anthropic_version: anthropicVersion },
  };
}

/** Claude at Google reads no links. Another upstream of the model may. */
function refuseLinks(body: JsonObject): void {
  const refuseIn = (content: unknown, path: string): void =>
    list(content).forEach((block, at) => {
      const param = `${path}[${at}]`;
      if (object(block["source"])["type"] === "url")
        throw new UpstreamFailure(
          "refused",
          `${param}.source: links are not supported here, only base64 or an upload.`,
          {
            status: 400,
            param: `${param}.source`,
            isHostLimit: true,
          },
        );
      // Tool results and documents may contain blocks.
      refuseIn(block["content"], `${param}.content`);
      refuseIn(object(block["source"])["content"], `${param}.source.content`);
    });
  list(body["messages"]).forEach(({ content }, at) => {
    refuseIn(content, `messages[${at}].content`);
  });
}
