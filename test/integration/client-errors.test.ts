import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import {
  chatProvider,
  costOf,
  formatsService,
  geminiProvider,
  messagesProvider,
  relay,
} from "../support/formats-service.ts";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { mockGeminiError, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockError } from "../support/mock-openai.ts";
import { chatFace, type Face, geminiFace, messagesFace, responsesFace } from "../support/native-formats.ts";
import { chatText } from "../support/provider-events.ts";
import { asking, entriesOf, localModel, nanoUsd, never, type Refusal } from "../support/service-setup.ts";

const served = formatsService();

/** The request of a call. */
interface Asked {
  readonly model: string;
  readonly content: string;
  readonly cap?: number | undefined;
  readonly signal?: AbortSignal;
}
type Fetch = typeof fetch;
interface Options {
  readonly maxRetries?: number;
  readonly fetch?: Fetch;
}

const openaiOf = (apiKey: string, options: Options = {}) =>
  new OpenAI({ apiKey, baseURL: `${served.service.baseUrl}/v1`, maxRetries: 0, ...options });
const anthropicOf = (apiKey: string, options: Options = {}) =>
  new Anthropic({ apiKey, baseURL: served.service.baseUrl, maxRetries: 0, ...options });
const geminiOf = (apiKey: string, httpOptions: object = {}) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: served.service.baseUrl, ...httpOptions } });

type Call = (key: string, asked: Asked, options?: Options) => Promise<unknown>;
interface Client {
  readonly name: string;
  readonly face: Face;
  readonly calls: readonly [json: Call, stream: Call, ...Call[]];
  /** The client's classes of errors, by status. */
  readonly classes: Readonly<Record<number, new (...args: never[]) => Error>>;
  /** The body of an error. */
  readonly body: (error: never) => object;
}

const openaiClient = {
  classes: {
    400: OpenAI.BadRequestError,
    429: OpenAI.RateLimitError,
    502: OpenAI.InternalServerError,
    503: OpenAI.InternalServerError,
    504: OpenAI.InternalServerError,
  },
  body: ({ error, requestID }: InstanceType<typeof OpenAI.APIError>) => ({ error, request_id: requestID }),
};
const chatOf = ({ model, content, cap }: Asked) => ({
  ...asking(model, content),
  ...(cap !== undefined && { max_tokens: cap }),
});
const inputOf = ({ model, content, cap }: Asked) => ({
  model,
  input: content,
  ...(cap !== undefined && { max_output_tokens: cap }),
});
const messageOf = ({ model, content, cap = 100 }: Asked) => ({ ...asking(model, content), max_tokens: cap });
const contentsOf = ({ model, content, cap, signal }: Asked) => ({
  model,
  contents: content,
  config: { ...(cap !== undefined && { maxOutputTokens: cap }), ...(signal && { abortSignal: signal }) },
});

const chatClient: Client = {
  ...openaiClient,
  name: "OpenAI's client, chat",
  face: chatFace,
  calls: [
    async (key, asked, options) => openaiOf(key, options).chat.completions.create(chatOf(asked)),
    async (key, asked, options) =>
      Array.fromAsync(await openaiOf(key, options).chat.completions.create({ ...chatOf(asked), stream: true })),
    async (key, asked, options) => openaiOf(key, options).chat.completions.stream(chatOf(asked)).finalContent(),
  ],
};
const responsesClient: Client = {
  ...openaiClient,
  name: "OpenAI's client, responses",
  face: responsesFace,
  calls: [
    async (key, asked) => openaiOf(key).responses.create(inputOf(asked)),
    async (key, asked) => Array.fromAsync(await openaiOf(key).responses.create({ ...inputOf(asked), stream: true })),
    async (key, asked) => openaiOf(key).responses.stream(inputOf(asked)).finalResponse(),
  ],
};
const messagesClient: Client = {
  name: "Anthropic's client",
  face: messagesFace,
  calls: [
    async (key, asked, options) => anthropicOf(key, options).messages.create(messageOf(asked)),
    async (key, asked, options) => anthropicOf(key, options).messages.stream(messageOf(asked)).finalMessage(),
  ],
  classes: {
    400: Anthropic.BadRequestError,
    429: Anthropic.RateLimitError,
    502: Anthropic.InternalServerError,
    503: Anthropic.ServiceUnavailableError,
    504: Anthropic.GatewayTimeoutError,
  },
  body: ({ error }: InstanceType<typeof Anthropic.APIError>) => error as object,
};
const geminiClient: Client = {
  name: "Google's client",
  face: geminiFace,
  calls: [
    async (key, asked) => geminiOf(key).models.generateContent(contentsOf(asked)),
    async (key, asked) => Array.fromAsync(await geminiOf(key).models.generateContentStream(contentsOf(asked))),
  ],
  classes: Object.fromEntries([400, 429, 502, 503, 504].map((status) => [status, ApiError])),
  body: ({ message }: ApiError) => JSON.parse(message) as object,
};
const clients = [chatClient, responsesClient, messagesClient, geminiClient];

const thrownBy = (calling: Promise<unknown>): Promise<unknown> =>
  calling.then(
    () => undefined,
    (error: unknown) => error,
  );

const hi: Asked = { model: localModel, content: "Hello there" };

const server = "server_error";
describe.each(clients)("the errors of $name", ({ face, calls, classes, body }) => {
  test.each<Refusal>([
    { status: 400, type: "invalid_request_error", code: "invalid_value", param: "messages" },
    { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" },
    { status: 502, type: server, code: "upstream_error" },
    { status: 503, type: server, code: "no_capacity" },
    { status: 504, type: server, code: "upstream_timeout" },
  ])("$status, of every way to call", async (refusal) => {
    const { status } = refusal;
    const { key } = await served.service.account("1");
    const shape = face.shape(refusal, expect.stringMatching(/^req_/) as string);
    for (const call of calls) {
      const thrown = await thrownBy(call(key, { ...hi, content: `error:${status}` }));
      expect(thrown).toBeInstanceOf(classes[status]);
      expect([(thrown as { status: number }).status, body(thrown as never)]).toEqual([status, shape]);
    }
  });
});

test.each([
  [chatClient, OpenAI.APIError, { type: "server_error", code: "upstream_error", param: null }],
  [responsesClient, OpenAI.APIError, { code: "upstream_error", param: null }],
  [
    messagesClient,
    Anthropic.APIError,
    { status: undefined, type: "api_error", requestID: expect.any(String) as string },
  ],
  [geminiClient, ApiError, { name: "ApiError", status: 502 }],
])("$name throws when a stream fails in the middle", async ({ calls: [, ...streams] }, kind, fields) => {
  const { key } = await served.service.account("1");
  for (const stream of streams) {
    const thrown = await thrownBy(stream(key, { ...hi, content: "stream-error:2" }));
    expect(thrown).toBeInstanceOf(kind);
    expect(thrown).toMatchObject(fields);
  }
});

describe("retries", () => {
  /** A fetch that notes each request's time and status. */
  function noting() {
    const sent: { at: number; status: number }[] = [];
    const noted: Fetch = async (url, init) => {
      const at = performance.now();
      const response = await fetch(url, init);
      sent.push({ at, status: response.status });
      return response;
    };
    return { sent, fetch: noted };
  }

  const later = { headers: { "retry-after": "1" } };
  test.each([
    ["OpenAI's client", chatClient, 0, chatProvider, mockError(429, "slow down", later)],
    ["OpenAI's helper for streams", chatClient, 2, chatProvider, mockError(429, "slow down", later)],
    ["Anthropic's client", messagesClient, 0, messagesProvider, mockAnthropicError(529, "Overloaded", later)],
    [
      "Anthropic's helper for streams",
      messagesClient,
      1,
      messagesProvider,
      mockAnthropicError(529, "Overloaded", later),
    ],
  ])(
    "%s waits as Retry-After says; of the two calls only the answer is charged",
    async (_, client, call, target, busy) => {
      const customer = await served.service.account("1");
      target.mock?.(served).respond(busy);
      const { sent, fetch } = noting();
      await client.calls[call]?.(customer.key, { ...hi, model: target.model }, { maxRetries: 1, fetch });
      expect(sent.map(({ status }) => status)).toEqual([503, 200]);
      expect((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
      const entries = await entriesOf(served.service, customer);
      const { input = 0, output = 0 } = entries[0]?.request.usage ?? {};
      const cost = costOf(target.model, { input, output });
      expect(entries.map(({ amount_usd }) => nanoUsd(amount_usd))).toEqual([-cost, 0n]);
      expect(nanoUsd(await customer.available())).toBe(1_000_000_000n - cost);
    },
  );

  test.each([chatClient, messagesClient])(
    "$name does not repeat a call that can never pass",
    async ({ calls, classes }) => {
      const { key } = await served.service.account("1", { limits: { tokens_per_minute: 10 } });
      for (const call of calls) {
        const { sent, fetch } = noting();
        const thrown = await thrownBy(call(key, { ...hi, cap: 1_000 }, { maxRetries: 3, fetch }));
        expect(thrown).toBeInstanceOf(classes[429]);
        expect(sent.map(({ status }) => status)).toEqual([429]);
      }
    },
  );

  test("Google's client is served as soon as the provider has capacity", async () => {
    const { key } = await served.service.account("1");
    const retryOptions = { attempts: 5, initialDelay: 0.4, jitter: 0 };
    served.gemini.respond(mockGeminiError(429, "busy", { details: [mockRetryInfo("0.5s")] }));
    const client = geminiOf(key, { retryOptions });
    const answer = await client.models.generateContent({ model: geminiProvider.model, contents: "Hello there" });
    expect(answer.text).toBe(geminiProvider.says);
  });
});

describe("clients that disconnect when they have read enough", () => {
  const begun = [chatText("abcd"), chatText("efgh")];
  const asked: Asked = { ...hi, model: relay.model };

  test.each<[how: string, disconnect: (key: string) => Promise<unknown>, error: string]>([
    [
      "Anthropic's, by its helper",
      async (key) => {
        const stream = anthropicOf(key).messages.stream(messageOf(asked));
        stream.on("text", (_, snapshot) => void (snapshot.length === 8 && stream.abort()));
        return thrownBy(stream.finalMessage());
      },
      "APIUserAbortError",
    ],
    [
      "Google's, by a signal",
      async (key) => {
        const controller = new AbortController();
        const request = contentsOf({ ...asked, signal: controller.signal });
        const chunks = await geminiOf(key).models.generateContentStream(request);
        const read = async () => {
          for await (const { text } of chunks) if (text === "efgh") controller.abort();
        };
        return thrownBy(read());
      },
      "AbortError",
    ],
  ])("%s: the provider's request is aborted", async (_, disconnect, error) => {
    const { key } = await served.service.account("1");
    served.provider.respond({ events: [...begun, chatText("never")], beforeEvent: { 2: never } });
    const thrown = (await disconnect(key)) as Error;
    expect([thrown.name, thrown.constructor.name]).toContain(error);
    const request = await served.provider.request(0);
    await request.closed;
    expect(request.aborted).toBe(true);
  });
});
