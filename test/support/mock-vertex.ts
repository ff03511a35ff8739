import { createHash } from "node:crypto";
import { type Answer as AnthropicAnswer, anthropicAnswer, mockAnthropicError } from "./mock-anthropic.ts";
import { mockErrorInfo, mockGeminiError } from "./mock-gemini.ts";
import { answerOf, type ContentScript, contentEvents, wordsIn } from "./mock-gemini-content.ts";
import { wordsOf } from "./mock-model.ts";
import { type Answer as OpenaiAnswer, openaiAnswer } from "./mock-openai.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";
import { type MockTokens, mockProject, startMockTokens } from "./mock-vertex-tokens.ts";

/**
 * A mock of Google's Vertex AI, beside which the servers of its access tokens run (mock-vertex-tokens.ts), in the shapes of
 * https://docs.cloud.google.com/vertex-ai/docs/reference/rest: Gemini (generateContent and its stream, countTokens,
 * predict), Claude (rawPredict, streamRawPredict, count-tokens) and chat completions of partners' models. Tokens, the project
 * and the location of each request are verified. Without a script it answers as the mocks of the models' vendors do.
 */
export interface MockVertex extends MockProvider<Answer> {
  readonly tokens: MockTokens;
}

export type Answer = ProviderAnswer &
  Pick<ContentScript, "blockReason" | "finishReason" | "parts"> &
  Pick<AnthropicAnswer, "content" | "inputTokens" | "stopReason"> &
  Pick<OpenaiAnswer, "refuses"> & {
    readonly text?: string;
    readonly usage?: Readonly<Record<string, unknown>> | false;
    readonly totalTokens?: unknown;
  };

const mockLocations: readonly string[] = ["global", "eu", "us-east5"];
/** A key of express mode, which has no project and no location. */
export const mockExpressKey = "AQ.Ab8RN6_express-0123456789";

type Fields = Readonly<Record<string, unknown>>;

export async function startMockVertex({
  now = Date.now,
  ...options
}: MockOptions & { readonly now?: () => number } = {}): Promise<MockVertex> {
  const tokens = await startMockTokens(now);
  const mock = await startMockProvider<Answer>(
    {
      headers: { server: "scaffolding on HTTPServer2", "x-xss-protection": "0" },
      usual: (request, scripted) => apiAnswer(request, scripted, tokens),
      frame: (event) => {
        const { type, object } = event as { type?: unknown; object?: unknown };
        const line = typeof type === "string" && object === undefined ? `event: ${type}\n` : "";
        return `${line}data: ${JSON.stringify(event)}\n\n`;
      },
      lastFrame: ({ path }) => (path.endsWith("/chat/completions") ? "data: [DONE]\n\n" : ""),
      reset: () => tokens.reset(),
    },
    options,
  );
  const stop = mock.close.bind(mock);
  return Object.assign(mock, {
    tokens,
    async close() {
      await Promise.all([stop(), tokens.close()]);
    },
  });
}

const place = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)(\/.+)$/;

function apiAnswer(request: MockRequest, scripted: Answer, tokens: MockTokens): Usual {
  const { headers, method } = request;
  const url = new URL(request.path, "http://mock");
  const [whole, project = "", location = "", below = url.pathname.replace(/^\/v1/, "")] =
    place.exec(url.pathname) ?? [];
  const key = headers["x-goog-api-key"];
  const refusal = whole === undefined ? refusalOfKey(key, below) : tokens.refusalOf(headers);
  if (refusal) return refusal;
  if (whole !== undefined && project !== mockProject)
    return mockGeminiError(
      403,
      `Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/projects/${project}/locations/${location}' (or it may not exist).`,
      { details: [mockErrorInfo("IAM_PERMISSION_DENIED")] },
    );
  if (whole !== undefined && !mockLocations.includes(location))
    return mockGeminiError(400, `Unsupported region for Vertex AI, select from [${mockLocations.join(", ")}]`);
  if (method === "POST" && below === "/endpoints/openapi/chat/completions") return chatAnswer(request, scripted);
  const [, publisher, model = "", verb] =
    /^\/publishers\/(google|anthropic)\/models\/([^:/]+):(\w+)$/.exec(below) ?? [];
  if (method !== "POST" || publisher === undefined || model.includes("%"))
    return {
      status: 404,
      headers: { "content-type": "text/html" },
      body: "<html><title>Error 404 (Not Found)</title>",
    };
  if (/missing/.test(model))
    return mockGeminiError(
      404,
      `Publisher Model \`projects/${project}/locations/${location}/publishers/${publisher}/models/${model}\` was not found or your project does not have access to it. Please ensure you are using a valid model version.`,
    );
  return publisher === "anthropic"
    ? claudeAnswer(request, model, verb, scripted)
    : geminiAnswer(request, model, verb, scripted, url.searchParams.get("alt") === "sse");
}

function refusalOfKey(key: unknown, below: string): Usual | undefined {
  if (key === undefined)
    return mockGeminiError(401, "Request is missing required authentication credential.", {
      details: [mockErrorInfo("CREDENTIALS_MISSING")],
    });
  if (key !== mockExpressKey)
    return mockGeminiError(400, "API key not valid. Please pass a valid API key.", {
      details: [mockErrorInfo("API_KEY_INVALID")],
    });
  if (below.startsWith("/publishers/google/")) return undefined;
  return mockGeminiError(403, "Requests to this API method are blocked.", {
    details: [mockErrorInfo("API_KEY_SERVICE_BLOCKED")],
  });
}

const contentFields =
  "contents systemInstruction tools toolConfig generationConfig safetySettings labels cachedContent modelArmorConfig serviceTier".split(
    " ",
  );
const knownFields: Readonly<Record<string, readonly string[]>> = {
  generateContent: contentFields,
  streamGenerateContent: contentFields,
  countTokens: ["contents", "systemInstruction", "tools", "generationConfig", "instances", "model"],
  predict: ["instances", "parameters", "labels"],
};

function geminiAnswer(
  { body }: MockRequest,
  model: string,
  verb = "",
  { totalTokens, ...scripted }: Answer,
  isSse: boolean,
): Usual {
  const known = knownFields[verb];
  if (known === undefined) return mockGeminiError(404, `Not found: ${verb}`);
  const unknown = Object.keys(body).find((field) => !known.includes(field));
  if (unknown !== undefined)
    return mockGeminiError(400, `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`);
  if (verb === "predict") return predictAnswer(body);
  const refusal = refusalOfContents(body["contents"]);
  if (refusal) return refusal;
  if (verb === "countTokens") {
    const count = wordsOf(wordsIn(body)).length;
    const promptTokensDetails = [{ modality: "TEXT", tokenCount: count }];
    return { body: { totalTokens: totalTokens ?? count, totalBillableCharacters: 10, promptTokensDetails } };
  }
  const { usageMetadata, ...answer } = answerOf(model, body, scripted);
  const traffic = { ...usageMetadata, trafficType: "ON_DEMAND" };
  const whole = { ...answer, ...(usageMetadata && { usageMetadata: traffic }), createTime: "2026-01-01T00:00:00.000Z" };
  if (verb === "generateContent") return { body: whole };
  const events = contentEvents(whole);
  return isSse ? { events } : { body: events };
}

/** Unlike the Gemini API, it has no default role, and it reads no files of the Files API. */
function refusalOfContents(contents: unknown): Usual | undefined {
  const all = Array.isArray(contents) ? (contents as readonly Fields[]) : [];
  if (all.length === 0) return mockGeminiError(400, "Unable to submit request because it must have contents.");
  if (all.some(({ role }) => role !== "user" && role !== "model"))
    return mockGeminiError(400, "Please use a valid role: user, model.");
  const parts = all.flatMap((content) => (content["parts"] ?? []) as readonly Fields[]);
  const uris = parts.flatMap(({ fileData }) => (fileData ? [(fileData as Fields)["fileUri"]] : []));
  return uris.some((uri) => !/^(gs|https?):\/\/(?!generativelanguage)/.test(String(uri)))
    ? mockGeminiError(400, "Cannot fetch content from the provided URL.")
    : undefined;
}

function predictAnswer({ instances, parameters }: Fields): Usual {
  const texts = (Array.isArray(instances) ? (instances as readonly Fields[]) : []).map(({ content }) => content);
  if (texts.length !== 1 || typeof texts[0] !== "string")
    return mockGeminiError(400, "The maximum number of instances per request is 1.");
  const [text] = texts;
  const { outputDimensionality = 8 } = (parameters ?? {}) as Fields;
  const length = Number(outputDimensionality);
  // The vector depends on the text, and is not normalized.
  const axis = createHash("sha256").update(text).digest()[0] ?? 0;
  const values = Array.from({ length }, (_, at) => (at === axis % length ? 0.5 : 0));
  const statistics = { truncated: false, token_count: wordsOf(text).length };
  return { body: { predictions: [{ embeddings: { statistics, values } }], metadata: { billableCharacterCount: 1 } } };
}

/** Anthropic's API has these betas, Vertex AI does not. */
const betasElsewhere = /^(oauth|claude-code|files-api|skills|mcp-client)-/;

function claudeAnswer(request: MockRequest, model: string, verb: string | undefined, scripted: Answer): Usual {
  const { headers, body } = request;
  const isCount = model === "count-tokens";
  const { anthropic_version, ...message } = body;
  if (verb !== "rawPredict" && (verb !== "streamRawPredict" || isCount))
    return mockGeminiError(400, `The model does not support ${verb}.`);
  if (headers["anthropic-version"] !== undefined)
    return mockAnthropicError(400, "anthropic-version: not a header of this platform");
  if (anthropic_version !== "vertex-2023-10-16") return mockAnthropicError(400, "anthropic_version: Field required");
  if (!isCount && "model" in message) return mockAnthropicError(400, "model: Extra inputs are not permitted");
  if ((verb === "streamRawPredict") !== (message["stream"] === true))
    return mockAnthropicError(400, "stream: does not fit the method");
  const beta = String(headers["anthropic-beta"] ?? "")
    .split(",")
    .find((each) => betasElsewhere.test(each));
  if (beta !== undefined)
    return mockAnthropicError(400, `Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header.`);
  if (/"type":"url"/.test(JSON.stringify(message["messages"])))
    return mockAnthropicError(400, "messages.0.content.0.source: URL sources are not supported");
  const translated: MockRequest = {
    ...request,
    path: isCount ? "/v1/messages/count_tokens" : "/v1/messages",
    headers: { ...headers, "anthropic-version": "2023-06-01" },
    body: isCount ? message : { ...message, model: model.replace(/@.*/, "") },
  };
  return anthropicAnswer(translated, scripted);
}

function chatAnswer(request: MockRequest, scripted: Answer): Usual {
  if (!/^[a-z-]+\/[\w.-]+-maas$/.test(String(request.body["model"])))
    return mockGeminiError(400, "Invalid Endpoint name: the model must be a publisher and its model.");
  return openaiAnswer({ ...request, path: "/v1/chat/completions" }, scripted as OpenaiAnswer);
}
