import { answerOf, type ContentScript, contentEvents, mockSignature, wordsIn } from "./mock-gemini-content.ts";
import { createMockInteractions, type InteractionScript } from "./mock-gemini-interactions.ts";
import { wordsOf } from "./mock-model.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

/**
 * A mock of Google's Gemini API, in the shapes of https://ai.google.dev/api: generateContent and its stream
 * (server-sent events, or without `alt=sse` one JSON array), countTokens, embedContent, batchEmbedContents, the list of
 * models, interactions and their files (mock-gemini-interactions.ts). Without a script it echoes the user, thinks if
 * requested, calls the tools that are forced or named in the prompt, fills a required schema, draws and speaks if these
 * are the modalities, and stops where `maxOutputTokens` and `stopSequences` say; a token is a word. A test scripts
 * other content, errors (`mockGeminiError`), or events (mock-provider.ts). Its `url` has no version.
 */
export type MockGemini = MockProvider<Answer>;

export interface Answer extends ProviderAnswer, ContentScript, InteractionScript {
  /** The response of countTokens. */
  readonly totalTokens?: unknown;
}

const nameOf: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** An error in the provider's shape, in a body or an event. */
export const mockGeminiProblem = (
  code: number,
  message: string,
  more: { status?: string; details?: object[] } = {},
) => ({
  error: { code, message, status: nameOf[code] ?? "UNKNOWN", ...more },
});

/** A refusal, with the documented status of the code. */
export const mockGeminiError = (
  code: number,
  message: string,
  more: { status?: string; details?: object[]; headers?: Record<string, string> } = {},
): Answer => {
  const { headers = {}, ...rest } = more;
  return { status: code, headers, body: mockGeminiProblem(code, message, rest) };
};

export const mockRetryInfo = (retryDelay: string) => ({
  "@type": "type.googleapis.com/google.rpc.RetryInfo",
  retryDelay,
});
export const mockErrorInfo = (reason: string) => ({
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason,
  domain: "googleapis.com",
  metadata: { service: "generativelanguage.googleapis.com" },
});

/** A non-empty, invalid key. */
export const mockBadKey = "bad-key";

export function startMockGemini(options?: MockOptions): Promise<MockGemini> {
  const interactions = createMockInteractions();
  return startMockProvider<Answer>(
    {
      headers: { server: "scaffolding on HTTPServer2" },
      usual(request, scripted) {
        const url = new URL(request.path, "http://mock");
        const refusal = refusalOf(request, url);
        if (refusal) return refusal;
        const path = decodeURIComponent(url.pathname.replace(/^\/v1(beta)?\//, ""));
        const origin = `http://${request.headers.host}`;
        return (
          interactions.answer(request, path, scripted, origin) ??
          modelsAnswer(request, path) ??
          methodAnswer(request, path, url, scripted) ??
          mockGeminiError(404, `Not found: ${request.method} ${url.pathname}`)
        );
      },
      frame: (event) => `data: ${JSON.stringify(event)}\r\n\r\n`,
      reset: () => interactions.reset(),
    },
    options,
  );
}

function refusalOf({ headers }: MockRequest, url: URL): Usual | undefined {
  const key = headers["x-goog-api-key"] ?? url.searchParams.get("key");
  if (key === null)
    return mockGeminiError(403, "Method doesn't allow unregistered callers (callers without established identity).");
  if (key !== mockBadKey) return undefined;
  return mockGeminiError(400, "API key not valid. Please pass a valid API key.", {
    details: [mockErrorInfo("API_KEY_INVALID")],
  });
}

const known = new Set(
  `model contents systemInstruction system_instruction tools toolConfig tool_config generationConfig generation_config
  safetySettings safety_settings cachedContent cached_content store serviceTier service_tier`.split(/\s+/),
);

function methodAnswer({ method, body }: MockRequest, path: string, url: URL, scripted: Answer): Usual | undefined {
  const [, model = "", verb] = /^models\/(.+):(\w+)$/.exec(path) ?? [];
  if (verb === undefined || method !== "POST") return undefined;
  if (/missing/.test(model))
    return mockGeminiError(404, `models/${model} is not found for API version v1beta, or is not supported.`);
  switch (verb) {
    case "countTokens":
      return countAnswer(body, scripted);
    case "embedContent":
      return { body: { embedding: embeddingOf(body, 0) } };
    case "batchEmbedContents":
      return batchAnswer(model, body);
    case "generateContent":
      return invalidIn(body) ?? { body: answerOf(model, body, scripted) };
    case "streamGenerateContent": {
      const problem = invalidIn(body);
      if (problem) return problem;
      const events = contentEvents(answerOf(model, body, scripted));
      return url.searchParams.get("alt") === "sse" ? { events } : { body: events };
    }
    default:
      return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function invalidIn(body: Fields): Usual | undefined {
  const unknown = Object.keys(body).find((field) => !known.has(field));
  if (unknown !== undefined)
    return mockGeminiError(400, `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`);
  const { contents } = body;
  if (!Array.isArray(contents) || contents.length === 0)
    return mockGeminiError(400, "* GenerateContentRequest.contents: contents is not specified");
  const parts = (contents as readonly Fields[]).flatMap(({ parts }) =>
    Array.isArray(parts) ? (parts as Fields[]) : [],
  );
  const isForeign = parts.some(({ thoughtSignature = mockSignature }) => !mockSignatures.has(thoughtSignature));
  return isForeign ? mockGeminiError(400, "Corrupted thought signature.") : undefined;
}

/** Its own signature, and the documented one for calls of other models. */
const mockSignatures: ReadonlySet<unknown> = new Set([mockSignature, "skip_thought_signature_validator"]);

function countAnswer(body: Fields, { totalTokens }: Answer): Usual {
  const { generateContentRequest, contents } = body;
  const asked = (generateContentRequest ?? { contents }) as Fields;
  if (generateContentRequest !== undefined && (contents !== undefined || typeof asked["model"] !== "string"))
    return mockGeminiError(400, "* CountTokensRequest: contents and generateContentRequest are one of, with a model");
  const count = wordsOf(wordsIn(asked)).length;
  return {
    body: { totalTokens: totalTokens ?? count, promptTokensDetails: [{ modality: "TEXT", tokenCount: count }] },
  };
}

const mostRequests = 100;

function batchAnswer(model: string, { requests }: Fields): Usual {
  const asked = (requests ?? []) as readonly Fields[];
  if (asked.length === 0 || asked.length > mostRequests)
    return mockGeminiError(
      400,
      `* BatchEmbedContentsRequest.requests: at most ${mostRequests} requests can be in one batch`,
    );
  if (asked.some((request) => request["model"] !== `models/${model}`))
    return mockGeminiError(400, "* BatchEmbedContentsRequest.requests.model: must be that of the path");
  return { body: { embeddings: asked.map(embeddingOf) } };
}

/** 8 numbers, or as many as requested, and not normalized: request number i points along axis i. */
function embeddingOf({ outputDimensionality = 8 }: Fields, index: number) {
  const length = Number(outputDimensionality);
  return { values: Array.from({ length }, (_, at) => (at === index % length ? 0.5 : 0)) };
}

const modelOf = (id: string) => ({
  name: `models/${id}`,
  version: "001",
  displayName: "Mock",
  description: "A mock of a model.",
  inputTokenLimit: 1_048_576,
  outputTokenLimit: 65_536,
  supportedGenerationMethods: ["generateContent", "countTokens"],
  temperature: 1,
  topP: 0.95,
  topK: 64,
});

function modelsAnswer({ method }: MockRequest, path: string): Usual | undefined {
  const [list, , id] = /^models(\/([^:]+))?$/.exec(path) ?? [];
  if (list === undefined || method !== "GET") return undefined;
  return { body: id === undefined ? { models: [modelOf("gemini-mock")] } : modelOf(id) };
}
