import { type MessageScript, messageEvents, messageOf, mockSignature } from "./mock-anthropic-message.ts";
import { textsOf, wordsOf } from "./mock-model.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

/**
 * A mock of Anthropic's API: `POST /v1/messages` (JSON and streams), `POST /v1/messages/count_tokens`, `GET /v1/models`
 * and `/v1/models/{id}`, in the shapes of https://platform.claude.com/docs/en/api. Without a script it echoes the user,
 * thinks if requested, calls the tools that are forced or named in the prompt, fills a required schema, and stops where
 * `max_tokens` and `stop_sequences` say; a token is a word. A test scripts other content, errors
 * (`mockAnthropicError`), or events (mock-provider.ts). Its `url` has no version.
 */
export type MockAnthropic = MockProvider<Answer>;

export interface Answer extends ProviderAnswer, MessageScript {
  /** The response of count_tokens. */
  readonly inputTokens?: unknown;
}

const typeOf: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** The content of a stream's `error` event, and the body of a refusal. */
export const mockErrorEvent = (type: string, message: string, details?: object): Record<string, unknown> => ({
  type: "error",
  error: { ...(details && { details }), type, message },
  request_id: "req_mock",
});

/** A refusal in the provider's shape, with the documented type of the status. */
export const mockAnthropicError = (
  status: number,
  message: string,
  { details, headers = {} }: { details?: object; headers?: Record<string, string> } = {},
): Answer => ({ status, headers, body: mockErrorEvent(typeOf[status] ?? "api_error", message, details) });

export const startMockAnthropic = (options?: MockOptions): Promise<MockAnthropic> =>
  startMockProvider<Answer>(
    {
      headers: { "request-id": "req_mock", "anthropic-organization-id": "org-mock" },
      usual: anthropicAnswer,
      frame: (event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`,
    },
    options,
  );

/** The usual answer to a request. */
export function anthropicAnswer(request: MockRequest, scripted: Answer): Usual {
  return refusalOf(request) ?? answerOf(request, scripted);
}

const messages = "/v1/messages";
const counting = "/v1/messages/count_tokens";
const models = /^\/v1\/models(?:\/([^?]+))?(?:\?|$)/;

function refusalOf({ method, path, headers, body }: MockRequest): Usual | undefined {
  if (headers["x-api-key"] === undefined && !headers.authorization?.startsWith("Bearer "))
    return mockAnthropicError(401, "x-api-key header is required");
  if (headers["anthropic-version"] === undefined)
    return mockAnthropicError(400, "anthropic-version: header is required");
  if (method === "GET" && models.test(path)) return undefined;
  if (method !== "POST" || (path !== messages && path !== counting)) return mockAnthropicError(404, "Not Found");
  const needed = ["model", "messages", ...(path === messages ? ["max_tokens"] : [])];
  const missing = needed.find((field) => body[field] === undefined);
  if (missing) return mockAnthropicError(400, `${missing}: Field required`);
  const isNew = headers["anthropic-version"] === "2026-10-21";
  const gone = [
    ...(path === counting ? ["max_tokens", "stream"] : []),
    ...(isNew ? ["temperature", "top_p", "top_k"] : []),
  ];
  const extra = gone.find((field) => field in body);
  if (extra) return mockAnthropicError(400, `${extra}: Extra inputs are not permitted`);
  const blocks = list(body["messages"]).flatMap(({ content }) => list(content));
  if (blocks.some(({ type, signature }) => type === "thinking" && signature !== mockSignature))
    return mockAnthropicError(400, "Invalid `signature` in `thinking` block");
  return refusalOfBreakpoints(body, blocks);
}

type Fields = Readonly<Record<string, unknown>>;
const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value : []);
const isMarked = (holder: Fields) => holder["cache_control"] != null;

/**
 * Refusals that its users report: https://github.com/continuedev/continue/pull/6937,
 * https://github.com/caozhiyuan/copilot-api/issues/241
 */
function refusalOfBreakpoints(body: Fields, blocks: readonly Fields[]): Usual | undefined {
  const marked = [body, ...list(body["system"]), ...list(body["tools"]), ...blocks].filter(isMarked);
  if (marked.length > 4)
    return mockAnthropicError(400, `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`);
  const isInside = blocks.some(({ type, content }) => type === "tool_result" && list(content).some(isMarked));
  return isInside
    ? mockAnthropicError(400, "cache_control may not be specified within `tool_result.content`.")
    : undefined;
}

function answerOf({ path, body }: MockRequest, scripted: Answer): Usual {
  const [list, id] = models.exec(path) ?? [];
  if (list !== undefined) return modelsAnswer(id);
  if (path === counting)
    return { body: { input_tokens: scripted.inputTokens ?? wordsOf(textsOf(body).join(" ")).length } };
  const message = messageOf(body, scripted);
  return body["stream"] === true ? { events: messageEvents(message) } : { body: message };
}

const modelOf = (id: string) => ({
  type: "model",
  id,
  display_name: "Mock",
  created_at: "2026-01-01T00:00:00Z",
  deprecated_at: null,
  retires_at: null,
  lifecycle: "active",
  line: null,
  max_input_tokens: 200_000,
  max_tokens: 64_000,
  capabilities: null,
});

const modelsAnswer = (id: string | undefined): Usual =>
  id === undefined
    ? { body: { data: [modelOf("claude-mock")], has_more: false, first_id: "claude-mock", last_id: "claude-mock" } }
    : { body: modelOf(decodeURIComponent(id)) };
