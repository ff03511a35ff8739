import { expect } from "vitest";
import type { Format } from "../../shared/formats/index.ts";
import { messageTypes } from "./message-types.ts";
import type { MockOpenai } from "./mock-openai.ts";
import type { Client, Customer } from "./service.ts";
import { catalogWith, entryOf, type Refusal } from "./service-setup.ts";

/** A model that every format accepts, behind a provider that speaks only chat: the mock of `service-setup.ts`. */
export const relayedModel = "local/relayed";

const atStandIn = { base_url_env: "OPENAI_BASE_URL", key_env: "OPENAI_API_KEY" };

/** The model's entry in the catalog. */
export const relayed = {
  id: relayedModel,
  name: "Relayed",
  owned_by: "local",
  type: "text",
  released: "2026-01-01",
  context_length: 131_072,
  max_output_tokens: 8_192,
  features: ["tools", "json", "image", "logprobs"],
  max_part_tokens: { image: 1_024 },
  pricing: { input: "1", cached_input: "0.5", output: "4" },
  upstreams: [{ upstream: "groq", model: "relayed" }],
};

/** The catalog with the model; the mock also replaces `upstreams`. */
export const withRelayedModel = (...upstreams: readonly string[]): string =>
  catalogWith(Object.fromEntries(["groq", ...upstreams].map((id) => [id, atStandIn])), {}, [relayed]);

/** One format's requests and responses, as its own clients see them. */
export interface Face {
  readonly name: string;
  readonly format: Format;
  readonly ask: (model: string, said: string, more?: object) => Asked;
  readonly stream: (model: string, said: string, more?: object) => Asked;
  /** The places where its clients put the key, besides `authorization: Bearer`. */
  readonly keys: Readonly<Record<string, (key: string) => { headers?: Record<string, string>; query?: string }>>;
  /** The body of an error. */
  shape(refusal: Refusal, requestId: string): object;
  /** The text of a whole answer. */
  said(answer: unknown): string;
}

export interface Asked {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const message = ({ message = /./ }: Refusal) => expect.stringMatching(message) as string;
const common = (refusal: Refusal, requestId: string) => ({
  error: { message: message(refusal), type: refusal.type, code: refusal.code, param: refusal.param ?? null },
  request_id: requestId,
});
const post = (path: string) => (body: Asked["body"]) => ({ path, body });
const streamed = (asked: Asked): Asked => ({ ...asked, body: { ...asked.body, stream: true } });

const geminiStatuses: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  402: "FAILED_PRECONDITION",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "NOT_FOUND",
  409: "ABORTED",
  408: "DEADLINE_EXCEEDED",
  413: "INVALID_ARGUMENT",
  415: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  502: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

type Loose = Readonly<Record<string, never>>;
const texts = (parts: readonly Loose[] = []) => parts.map((part) => part["text"] ?? "").join("");

const askChat = (model: string, said: string, more = {}) =>
  post("/v1/chat/completions")({ model, messages: [{ role: "user", content: said }], ...more });
const askResponses = (model: string, said: string, more = {}) => post("/v1/responses")({ model, input: said, ...more });
const askMessages = (model: string, said: string, more = {}) =>
  post("/v1/messages")({ model, max_tokens: 4_000, messages: [{ role: "user", content: said }], ...more });
const askGemini =
  (verb: string) =>
  (model: string, said: string, more = {}) =>
    post(`/v1beta/models/${model}:${verb}`)({ contents: [{ role: "user", parts: [{ text: said }] }], ...more });

export const chatFace: Face = {
  name: "chat",
  format: "chat",
  ask: askChat,
  stream: (...asked) => streamed(askChat(...asked)),
  keys: {},
  shape: common,
  said: (answer) => (answer as { choices: { message: { content: string } }[] }).choices[0]?.message.content ?? "",
};

export const responsesFace: Face = {
  name: "responses",
  format: "responses",
  ask: askResponses,
  stream: (...asked) => streamed(askResponses(...asked)),
  keys: {},
  shape: common,
  said: (answer) =>
    (answer as { output: { content?: Loose[] }[] }).output.map(({ content }) => texts(content)).join(""),
};

/** This error tells the provider's clients to send the whole conversation. */
const unthreaded = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

export const messagesFace: Face = {
  name: "messages",
  format: "messages",
  ask: askMessages,
  stream: (...asked) => streamed(askMessages(...asked)),
  keys: { "x-api-key": (key) => ({ headers: { "x-api-key": key } }) },
  shape: (refusal, requestId) => ({
    type: "error",
    error: {
      type: messageTypes[refusal.status],
      message: message(refusal),
      ...(refusal.param === "thread" && { details: unthreaded }),
    },
    request_id: requestId,
  }),
  said: (answer) => texts((answer as { content: Loose[] }).content),
};

export const geminiFace: Face = {
  name: "gemini",
  format: "gemini",
  ask: askGemini("generateContent"),
  stream: (model, said, more) => askGemini("streamGenerateContent?alt=sse")(model, said, more),
  keys: {
    "x-goog-api-key": (key) => ({ headers: { "x-goog-api-key": key } }),
    "?key=": (key) => ({ query: `key=${key}` }),
  },
  shape: (refusal) => ({
    error: { code: refusal.status, message: message(refusal), status: geminiStatuses[refusal.status] },
  }),
  said: (answer) => texts((answer as { candidates: { content: { parts: Loose[] } }[] }).candidates[0]?.content.parts),
};

/** The same without `alt=sse`. */
const geminiArrayFace: Face = {
  ...geminiFace,
  name: "gemini, as an array",
  stream: (model, said, more) => askGemini("streamGenerateContent")(model, said, more),
};

export const faces: readonly Face[] = [chatFace, responsesFace, messagesFace, geminiFace];
export const streamFaces: readonly Face[] = [...faces, geminiArrayFace];

/** A call without a customer's key. */
export const bare = (service: Client, { path, body }: Asked, headers: Record<string, string> = {}) =>
  fetch(service.baseUrl + path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });

export const send = (customer: Customer, { path, body }: Asked, init?: { signal?: AbortSignal }) =>
  customer.post(path, body, init);

/** The result of `refusalIn` for this refusal. */
export const refusalOf = (face: Face, refusal: Refusal) => ({
  status: refusal.status,
  body: face.shape(refusal, expect.stringMatching(/^req_/) as string),
});

/** Reads an error response, and checks the rules for all formats. */
export async function refusalIn({ format }: Face, response: Response): Promise<{ status: number; body: object }> {
  const { status, headers } = response;
  const body = (await response.json()) as { request_id?: string };
  const requestId = headers.get("x-request-id");
  expect(requestId).toMatch(/^req_/);
  expect(body.request_id ?? requestId).toBe(requestId);
  expect(headers.get("request-id")).toBe(format === "messages" ? requestId : null);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(headers.get("x-xm-cost-usd")).toBeNull();
  // Retry-After is 1 to 60 whole seconds, only where waiting helps.
  expect(headers.get("retry-after") ?? "").toMatch(status === 429 || status === 503 ? /^([1-9]|[1-5]\d|60)$/ : /^$/);
  expect(headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
  return { status, body };
}

/** The one usage entry of a customer who called once. */
export async function usageOf(service: Client, customer: Customer) {
  await service.settled();
  const [entry, ...others] = (await customer.ledger("usage")) as unknown as { id: string }[];
  expect(others).toEqual([]);
  return entry && entryOf(service, entry.id);
}

/** Every request that the mock received, as text. */
export const heard = (provider: MockOpenai): string => JSON.stringify(provider.requests.map(({ body }) => body));
