import { wordsOf } from "./mock-model.ts";
import { isMedia, mediaAnswer } from "./mock-openai-media.ts";
import { type ResponseScript, responsesAnswer } from "./mock-openai-responses.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

export type { MockRequest } from "./mock-provider.ts";

/**
 * A mock of the OpenAI API: `POST /v1/chat/completions` (JSON and streams), `POST /v1/responses`
 * (mock-openai-responses.ts), `POST /v1/embeddings` and `/v1/moderations`, images, speech, transcriptions and videos
 * (mock-openai-media.ts), in the shapes of https://platform.openai.com/docs/api-reference. Without a script it responds
 * as OpenAI does; a test scripts one response per request with `respond`, or all further ones with `always`
 * (mock-provider.ts). Its `url` has the `/v1`.
 */
export type MockOpenai = MockProvider<Answer>;

export interface Answer extends ProviderAnswer, ResponseScript {
  /** The text of the default response. A stream sends one chunk per word. */
  readonly text?: string;
  /** `false` omits the usage of the default response. */
  readonly usage?: Readonly<Record<string, unknown>> | false;
  /** Returns 422 for a chat request with one of these fields, as strict servers do for unknown fields. */
  readonly refuses?: readonly string[];
  /** Returns 400 for tool calls in the history without their `reasoning_content`, as DeepSeek's thinking models do. */
  readonly demandsReasoning?: boolean;
  /** The states of a new video, one for each poll; the last one is repeated. By default it is done at the first poll. */
  readonly states?: readonly string[];
  /** The error of a video that fails. */
  readonly error?: unknown;
}

export const mockText = "Hello there, how may I help you today?";
const created = 1_700_000_000;
const id = "chatcmpl-mock";

export const mockUsage = (text = mockText) => {
  const completion = wordsOf(text).length;
  return {
    prompt_tokens: 9,
    completion_tokens: completion,
    total_tokens: 9 + completion,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  };
};

/** An error in OpenAI's shape. */
export const mockError = (
  status: number,
  message: string,
  more: { type?: string; code?: string | null; param?: string | null; headers?: Record<string, string> } = {},
): Answer => ({
  status,
  headers: more.headers ?? {},
  body: {
    error: {
      message,
      type: more.type ?? (status < 500 ? "invalid_request_error" : "server_error"),
      param: more.param ?? null,
      code: more.code ?? null,
    },
  },
});

/** One `chat.completion.chunk`; a chunk with only the usage has no choice. */
export const mockChunk = (
  delta: object | undefined,
  finishReason: string | null = null,
  more: object = {},
): Record<string, unknown> => ({
  id,
  object: "chat.completion.chunk",
  created,
  model: "mock-model",
  system_fingerprint: "fp_mock",
  choices: delta === undefined ? [] : [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  ...more,
});

interface Differences {
  /** Refusals of a stricter server than OpenAI's (strict-servers.ts). */
  readonly refusal?: (request: MockRequest) => Usual | undefined;
  /** Adds the usage to streams without a request for it. */
  readonly reportsUsage?: boolean;
}

export function startMockOpenai({
  refusal,
  reportsUsage,
  ...options
}: MockOptions & Differences = {}): Promise<MockOpenai> {
  const jobs: Jobs = new Map();
  return startMockProvider<Answer>(
    {
      path: "/v1",
      headers: { "x-request-id": "req_mock" },
      usual: (request, scripted) => openaiAnswer(request, scripted, { refusal, reportsUsage, jobs }),
      frame: (event) => {
        const { object, type } = event as { object?: unknown; type?: unknown };
        const line = object === undefined && typeof type === "string" ? `event: ${type}\n` : "";
        return `${line}data: ${JSON.stringify(event)}\n\n`;
      },
      lastFrame: ({ path }) => (path === responses ? "" : "data: [DONE]\n\n"),
      reset: () => jobs.clear(),
    },
    options,
  );
}

type Jobs = Parameters<typeof mediaAnswer>[2];

/** The usual answer to a request. */
export function openaiAnswer(
  request: MockRequest,
  scripted: Answer,
  {
    refusal = () => undefined,
    reportsUsage = false,
    jobs = new Map(),
  }: { refusal?: Differences["refusal"] | undefined; reportsUsage?: boolean | undefined; jobs?: Jobs } = {},
): Usual {
  const refused = refusalOf(request) ?? refusal(request) ?? refusalOfFields(request, scripted);
  if (refused) return refused;
  if (isMedia(request)) return mediaAnswer(request, scripted, jobs);
  if (request.path === responses) return responsesAnswer(request, scripted, mockText);
  const streams = request.body.stream === true;
  return streams ? { events: eventsOf(request, scripted, reportsUsage) } : { body: jsonOf(request, scripted) };
}

const responses = "/v1/responses";
const moderations = "/v1/moderations";
const posts = ["/v1/chat/completions", responses, "/v1/embeddings", moderations];

function refusalOf(request: MockRequest): Usual | undefined {
  const { method, path, headers, body } = request;
  if (!headers.authorization?.startsWith("Bearer ")) {
    return mockError(401, "You didn't provide an API key.", { type: "invalid_request_error" });
  }
  if (isMedia(request)) return undefined;
  if (method !== "POST" || !posts.includes(path)) {
    return mockError(404, `Invalid URL (${method} ${path})`);
  }
  if (typeof body.model !== "string") return mockError(400, "you must provide a model parameter");
  if (body.stream_options !== undefined && body.stream !== true) {
    return mockError(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: "stream_options",
    });
  }
  return undefined;
}

function refusalOfFields({ body }: MockRequest, { refuses = [], demandsReasoning }: Answer): Usual | undefined {
  const history = Array.isArray(body.messages) ? (body.messages as Record<string, unknown>[]) : [];
  if (demandsReasoning && history.some(({ tool_calls, reasoning_content }) => tool_calls && !reasoning_content))
    return mockError(400, "The `reasoning_content` in the thinking mode must be passed back to the API.");
  // No server of this format accepts Anthropic's breakpoints, whatever a test scripts.
  if (JSON.stringify([body.messages, body.tools]).includes('"cache_control":'))
    return mockError(400, "Unknown parameter: 'cache_control'.", { code: "unknown_parameter" });
  const field = refuses.find((each) => each in body);
  return field === undefined ? undefined : mockError(422, "Extra inputs are not permitted", { param: field });
}

function jsonOf({ path, body }: MockRequest, { text = mockText, usage }: Answer): unknown {
  if (path === "/v1/embeddings") return embeddingsOf(body);
  if (path === moderations) return moderationOf(body);
  return {
    id,
    object: "chat.completion",
    created,
    model: body.model,
    choices: Array.from({ length: choicesOf(body) }, (_, index) => ({
      index,
      message: { role: "assistant", content: text, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: "stop",
    })),
    ...(usage !== false && { usage: usage ?? mockUsage(text) }),
    service_tier: "default",
    system_fingerprint: "fp_mock",
  };
}

const choicesOf = (body: MockRequest["body"]) => (typeof body.n === "number" ? body.n : 1);

const tokensOf = (input: unknown): number => (Array.isArray(input) ? input.length : wordsOf(String(input)).length);

/** Vectors of 8 numbers, or as many as `dimensions` requests: input number i, a text or tokens, points along axis i. */
function embeddingsOf(body: MockRequest["body"]): unknown {
  const inputs = Array.isArray(body.input) && typeof body.input[0] !== "number" ? body.input : [body.input];
  const dimensions = typeof body.dimensions === "number" ? body.dimensions : 8;
  const words = inputs.reduce((sum: number, input) => sum + tokensOf(input), 0);
  const data = inputs.map((_, index) => {
    const vector = Array.from({ length: dimensions }, (_, at) => (at === index % dimensions ? 1 : 0));
    const embedding =
      body.encoding_format === "base64" ? Buffer.from(new Float32Array(vector).buffer).toString("base64") : vector;
    return { object: "embedding", index, embedding };
  });
  return { object: "list", data, model: body.model, usage: { prompt_tokens: words, total_tokens: words } };
}

/** Flags texts with the word "kill", and every image. */
function moderationOf({ input, model }: MockRequest["body"]): unknown {
  const inputs = Array.isArray(input) && typeof input[0] === "string" ? input : [input];
  const results = inputs.map((each: unknown) => {
    const flagged = /kill|image_url/.test(JSON.stringify(each));
    return {
      flagged,
      categories: { violence: flagged, illicit: null },
      category_scores: { violence: flagged ? 0.97 : 0.01, illicit: 0 },
      category_applied_input_types: { violence: ["text"], illicit: ["text"] },
    };
  });
  return { id: "modr-mock", model, results };
}

function eventsOf({ body }: MockRequest, { text = mockText, usage }: Answer, reportsUsage: boolean): unknown[] {
  const options = body.stream_options as { include_usage?: boolean } | undefined;
  const wantsUsage = (reportsUsage || options?.include_usage === true) && usage !== false;
  const common = { model: body.model, ...(wantsUsage && { usage: null }) };
  const events: unknown[] = [];
  for (let index = 0; index < choicesOf(body); index++) {
    const add = (delta: object, finish: string | null = null) =>
      events.push(
        mockChunk(delta, finish, {
          ...common,
          choices: [{ index, delta, logprobs: null, finish_reason: finish }],
        }),
      );
    add({ role: "assistant", content: "", refusal: null });
    for (const word of wordsOf(text)) add({ content: word });
    add({}, "stop");
  }
  if (wantsUsage) events.push(mockChunk(undefined, null, { ...common, usage: usage ?? mockUsage(text) }));
  return events;
}
