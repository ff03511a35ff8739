import { ApiError, type GenerateContentResponse } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chargeOf,
  chatProvider,
  clientOf,
  costOf,
  entriesOf,
  geminiService,
  google,
  local,
  messagesProvider,
  nativeModel,
  never,
  newCaller,
  ownName,
  responsesProvider,
  type Target,
} from "../support/gemini-client-setup.ts";
import { mockAnthropicError, mockErrorEvent } from "../support/mock-anthropic.ts";
import { mockErrorInfo, mockGeminiError, mockGeminiProblem, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockChunk, mockError, mockUsage } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { eventually } from "../support/service.ts";
import { gate, nanoUsd } from "../support/service-setup.ts";

const served = geminiService();
const failed = { code: 502, status: "INTERNAL" };

const long = "word ".repeat(2_000);
const usageScripts: Readonly<Record<string, () => void>> = {
  "Google's": () =>
    served.gemini.always({
      usage: {
        promptTokenCount: 1_000,
        cachedContentTokenCount: 400,
        toolUsePromptTokenCount: 50,
        candidatesTokenCount: 20,
        thoughtsTokenCount: 30,
        totalTokenCount: 1_100,
        promptTokensDetails: [
          { modality: "TEXT", tokenCount: 800 },
          { modality: "AUDIO", tokenCount: 200 },
        ],
        cacheTokensDetails: [
          { modality: "TEXT", tokenCount: 300 },
          { modality: "AUDIO", tokenCount: 100 },
        ],
      },
    }),
  chat: () =>
    served.provider.always({
      usage: { ...mockUsage(), prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 400 } },
    }),
  responses: () =>
    served.provider.always({
      usage: {
        input_tokens: 1_000,
        input_tokens_details: { cached_tokens: 400 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 30 },
        total_tokens: 1_050,
      },
    }),
  messages: () =>
    served.anthropic.always({
      usage: {
        input_tokens: 600,
        cache_read_input_tokens: 400,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        output_tokens: 50,
      },
    }),
};
const { completion_tokens } = mockUsage();
const usageRows: readonly (readonly [Target, Readonly<Record<string, number>>, object])[] = [
  [
    google,
    { input: 550, cached_input: 400, audio_input: 100, output: 50 },
    { promptTokenCount: 1_000, cachedContentTokenCount: 400, toolUsePromptTokenCount: 50, thoughtsTokenCount: 30 },
  ],
  [
    chatProvider,
    { input: 600, cached_input: 400, output: completion_tokens },
    { promptTokenCount: 1_000, cachedContentTokenCount: 400, candidatesTokenCount: completion_tokens },
  ],
  [
    responsesProvider,
    { input: 600, cached_input: 400, output: 50 },
    { promptTokenCount: 1_000, cachedContentTokenCount: 400, thoughtsTokenCount: 30, candidatesTokenCount: 20 },
  ],
];

test.each(usageRows.map(([target, usage, shown]) => ({ ...target, usage, shown })))(
  "$name: each kind of token at its price, whole and in a stream",
  async ({ name, model, usage, shown }) => {
    usageScripts[name]?.();
    const { client, customer } = await newCaller(served);
    const whole = await client.models.generateContent(asking(model, long));
    expect(whole.usageMetadata).toMatchObject(shown);
    const cost = costOf(model, usage);
    expect(await chargeOf(served.service, customer)).toBe(cost);
    expect(nanoUsd(whole.sdkHttpResponse?.headers?.["x-xm-cost-usd"] ?? "")).toBe(cost);
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(model, long)));
    expect(chunks.at(-1)?.usageMetadata).toEqual(whole.usageMetadata);
    expect(await chargeOf(served.service, customer)).toBe(cost);
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ endpoint: "/v1beta/models:streamGenerateContent", estimated: false, usage });
    expect(nanoUsd(await customer.available())).toBe(10_000_000_000n - 2n * cost);
  },
);

test("messages: cache writes are charged as well", async () => {
  usageScripts["messages"]?.();
  const { client, customer } = await newCaller(served);
  const answer = await client.models.generateContent(asking(messagesProvider.model, long));
  expect(answer.usageMetadata).toMatchObject({ promptTokenCount: 1_300, cachedContentTokenCount: 400 });
  expect(await chargeOf(served.service, customer)).toBe(
    costOf(messagesProvider.model, {
      input: 600,
      cached_input: 400,
      cache_write: 100,
      cache_write_1h: 200,
      output: 50,
    }),
  );
});

test("without usage from the provider an estimate is charged, marked as one", async () => {
  const { client, customer } = await newCaller(served);
  served.gemini.respond({ usage: false, text: "12345678" }, { usage: false, text: "12345678" });
  const cost = costOf(nativeModel, { input: 3, output: 2 });
  await client.models.generateContent(asking(ownName));
  expect(await chargeOf(served.service, customer)).toBe(cost);
  await Array.fromAsync(await client.models.generateContentStream(asking(ownName)));
  const [entry] = await entriesOf(served.service, customer);
  expect(entry?.request).toMatchObject({ estimated: true, usage: { input: 3, output: 2 } });
  expect(await chargeOf(served.service, customer)).toBe(cost);
});

test.each([local, google, messagesProvider])("$name: concurrent streams do not mix", async ({ model }) => {
  const { client } = await newCaller(served, "100");
  const words = ["apple", "berry", "cherry", "dates"];
  const found = await Promise.all(
    words.map(async (word) => {
      const config = { maxOutputTokens: 200 };
      const chunks = await Array.fromAsync(
        await client.models.generateContentStream({ ...asking(model, word), config }),
      );
      return words.filter((each) => chunks.some(({ text = "" }) => text.includes(each)));
    }),
  );
  expect(found).toEqual(words.map((word) => [word]));
});

/** A success after the failures of earlier tests closes the breaker. */
async function callerOfHealthyProvider({ model }: Target) {
  const healthy = await newCaller(served);
  await eventually(() =>
    healthy.client.models.generateContent(asking(model)).then(
      () => true,
      () => undefined,
    ),
  );
  return newCaller(served);
}

type Caller = Awaited<ReturnType<typeof newCaller>>;
const methods = {
  generateContent: ({ client }: Caller, model: string, contents?: string, config: object = {}) =>
    client.models.generateContent({ ...asking(model, contents), config }),
  generateContentStream: async ({ client }: Caller, model: string, contents?: string, config: object = {}) =>
    Array.fromAsync(await client.models.generateContentStream({ ...asking(model, contents), config })),
};

/** The client has the body of an error as its message. */
async function thrownBy(calling: Promise<unknown>) {
  const error: unknown = await calling.then(
    () => undefined,
    (each: unknown) => each,
  );
  expect(error).toBeInstanceOf(ApiError);
  const { status, message } = error as ApiError;
  const { error: body, ...more } = JSON.parse(message) as { error: { code: number; message: string; status: string } };
  expect([more, body.code, Object.keys(body).toSorted()]).toEqual([{}, status, ["code", "message", "status"]]);
  return body;
}

describe.each(Object.entries(methods))("%s", (_, ask) => {
  test.each([
    [400, "INVALID_ARGUMENT", "error:400"],
    [429, "RESOURCE_EXHAUSTED", "error:429"],
    [502, "INTERNAL", "error:502"],
    [503, "UNAVAILABLE", "error:503"],
    [504, "DEADLINE_EXCEEDED", "error:504"],
  ])("%i %s", async (code, status, contents) => {
    const caller = await newCaller(served);
    expect(await thrownBy(ask(caller, local.model, contents))).toMatchObject({ code, status });
    await served.service.settled();
    expect(await caller.customer.available()).toBe("10.00");
  });

  test("401, 402, 404, and the account's own limit", async () => {
    const caller = await newCaller(served);
    const unknown = { ...caller, client: clientOf(served.service, { ...caller.customer, key: "live_unknown" }) };
    expect(await thrownBy(ask(unknown, local.model))).toMatchObject({ code: 401, status: "UNAUTHENTICATED" });
    const insufficient = await newCaller(served, "0.001");
    expect(await thrownBy(ask(insufficient, google.model, undefined, { maxOutputTokens: 8_000 }))).toEqual({
      code: 402,
      status: "FAILED_PRECONDITION",
      message: expect.stringMatching(/You asked for up to 8000 tokens; the balance covers \d+\./),
    });
    expect(await thrownBy(ask(caller, "gemini-0.1-none"))).toEqual({
      code: 404,
      status: "NOT_FOUND",
      message: expect.stringContaining("gemini-0.1-none"),
    });
    const customer = await served.service.account("1", { limits: { requests_per_minute: 1 } });
    const limited = { customer, client: clientOf(served.service, customer) };
    await ask(limited, local.model);
    expect(await thrownBy(ask(limited, local.model))).toMatchObject({ code: 429, status: "RESOURCE_EXHAUSTED" });
    expect(served.gemini.requests).toEqual([]);
  });
});

describe("errors of providers", () => {
  const unavailable = { code: 503, status: "UNAVAILABLE" };
  const refused = { code: 400, status: "INVALID_ARGUMENT", message: "Bad prompt." };
  const rows: readonly (readonly [Target, string, ProviderAnswer, object])[] = [
    [google, "400", mockGeminiError(400, "Bad prompt."), refused],
    [
      google,
      "400 for the operator's key",
      mockGeminiError(400, "API key not valid.", { details: [mockErrorInfo("API_KEY_INVALID")] }),
      failed,
    ],
    [google, "429", mockGeminiError(429, "secret", { details: [mockRetryInfo("1s")] }), unavailable],
    [google, "500", mockGeminiError(500, "secret"), failed],
    [chatProvider, "400", mockError(400, "Bad prompt."), refused],
    [chatProvider, "429", mockError(429, "secret", { headers: { "retry-after": "1" } }), unavailable],
    [responsesProvider, "400", mockError(400, "Bad prompt."), refused],
    [responsesProvider, "500", mockError(500, "secret"), failed],
    [messagesProvider, "400", mockAnthropicError(400, "Bad prompt."), refused],
    [messagesProvider, "529", mockAnthropicError(529, "secret", { headers: { "retry-after": "1" } }), unavailable],
  ];

  test.each(rows.map(([target, error, answer, expected]) => ({ target, name: target.name, error, answer, expected })))(
    "$name: $error",
    async ({ target, answer, expected }) => {
      for (const ask of Object.values(methods)) {
        const caller = await callerOfHealthyProvider(target);
        target.mock?.(served).respond(answer);
        const body = await thrownBy(ask(caller, target.model));
        expect(body).toMatchObject(expected);
        expect(body.message).not.toContain("secret");
        await served.service.settled();
        expect(await caller.customer.available()).toBe("10.00");
      }
    },
  );

  test("a client that retries is served as soon as the provider has capacity", async () => {
    await callerOfHealthyProvider(google);
    const retryOptions = { attempts: 5, initialDelay: 0.4, jitter: 0 };
    const { client } = await newCaller(served, "10", { retryOptions });
    served.gemini.respond(mockGeminiError(429, "busy", { details: [mockRetryInfo("0.5s")] }));
    const answer = await client.models.generateContent(asking(google.model));
    expect(answer.text).toBe(google.says);
  });
});

/** A stream of each provider that fails after "abcd" and "efgh". */
interface FailingStream {
  readonly target: Target;
  readonly events: readonly object[];
  readonly errorEvent: object;
  /** The error that the caller sees. */
  readonly expected: object;
  /** The input tokens that the provider has reported by then. */
  readonly input: number;
}

const geminiText = (text: string) => ({ candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0 }] });
const delta = (text: string, sequence_number: number) => ({
  type: "response.output_text.delta",
  item_id: "msg_1",
  output_index: 0,
  content_index: 0,
  delta: text,
  logprobs: [],
  sequence_number,
});
const blockDelta = (text: string) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
/** "Hello there" by the tokenizer, plus its template. */
const estimate = 9;

const providers: readonly FailingStream[] = [
  {
    target: google,
    events: [geminiText("abcd"), geminiText("efgh")],
    errorEvent: mockGeminiProblem(503, "secret-of-operator overloaded"),
    expected: failed,
    // The provider's own count, returned on request.
    input: 2,
  },
  {
    target: chatProvider,
    events: [mockChunk({ role: "assistant", content: "abcd" }), mockChunk({ content: "efgh" })],
    errorEvent: { error: { message: "secret-of-operator overloaded", type: "server_error", code: 500 } },
    expected: failed,
    input: estimate,
  },
  {
    target: responsesProvider,
    events: [delta("abcd", 0), delta("efgh", 1)],
    errorEvent: { type: "error", code: "server_error", message: "secret-of-operator", param: null, sequence_number: 2 },
    expected: failed,
    input: estimate,
  },
  {
    target: messagesProvider,
    events: [
      {
        type: "message_start",
        message: {
          id: "m",
          type: "message",
          role: "assistant",
          content: [],
          usage: { input_tokens: 7, output_tokens: 1 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      blockDelta("abcd"),
      blockDelta("efgh"),
    ],
    errorEvent: mockErrorEvent("overloaded_error", "secret-of-operator"),
    expected: { code: 503, status: "UNAVAILABLE" },
    input: 7,
  },
];

const script = ({ mock }: Target, answer: ProviderAnswer) => mock?.(served).respond(answer);

/** The text of a stream before it failed, and its error. */
async function readUntilError(
  stream: AsyncIterable<GenerateContentResponse>,
  onText: (delivered: string) => void = () => {},
) {
  let delivered = "";
  try {
    for await (const { text = "" } of stream) {
      delivered += text;
      onText(delivered);
    }
  } catch (error) {
    return { delivered, error: error as Error & { status?: number } };
  }
  return { delivered, error: undefined };
}

describe.each(providers)("$target.name", ({ target, events, errorEvent, expected, input }) => {
  const { model } = target;
  const cost = () => costOf(model, { input, output: 2 });

  test.each([
    ["sends an error in the middle", expected, { events: [...events, errorEvent] }],
    ["cuts the stream", failed, { events: [...events, errorEvent], cutAfter: events.length }],
    ["ends it without a last event", failed, { events, done: false as const }],
  ])("a provider that %s: the client throws, what was delivered is charged", async (_, shown, answer) => {
    const { client, customer } = await callerOfHealthyProvider(target);
    const { opened, open } = gate();
    script(target, {
      ...answer,
      ...("done" in answer ? { beforeEnd: opened } : { beforeEvent: { [events.length]: opened } }),
    });
    const stream = await client.models.generateContentStream(asking(model));
    const { delivered, error } = await readUntilError(stream, (text) => text === "abcdefgh" && open());
    expect(delivered).toBe("abcdefgh");
    const [, body = ""] = /^got status: \w+\. (\{.*\})$/.exec(error?.message ?? "") ?? [];
    expect([error?.name, JSON.parse(body)]).toEqual(["ApiError", { error: { ...shown, message: expect.any(String) } }]);
    expect(body).not.toContain("secret-of-operator");
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ status: "failed", usage: { input, output: 2 } });
    expect(await chargeOf(served.service, customer)).toBe(cost());
  });

  test("without alt=sse: a JSON array; a failure is its last element", async () => {
    const { customer } = await callerOfHealthyProvider(target);
    const request = { contents: [{ parts: [{ text: "Hello there" }] }] };
    const ask = async () => {
      const path = `/v1beta/models/${model}:streamGenerateContent`;
      const response = await customer.post(path, request);
      expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(response.status).toBe(200);
      return (await response.json()) as GenerateContentResponse[];
    };
    const textIn = (items: readonly GenerateContentResponse[]) =>
      items.flatMap(({ candidates }) => candidates?.[0]?.content?.parts?.map(({ text = "" }) => text) ?? []).join("");
    const whole = await ask();
    expect(textIn(whole)).toBe(target.says);
    expect(whole.at(-1)).toMatchObject({ candidates: [{ finishReason: "STOP" }], usageMetadata: expect.anything() });
    // Google's own name for a query parameter.
    const asEvents = await customer.post(`/v1beta/models/${model}:streamGenerateContent?$alt=sse`, request);
    expect(asEvents.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(await asEvents.text()).toMatch(/^data: /);
    script(target, { events: [...events, errorEvent] });
    const items = await ask();
    const problemAt = { error: { ...expected, message: expect.any(String) as string } };
    expect([textIn(items.slice(0, -1)), items.at(-1)]).toEqual(["abcdefgh", problemAt]);
  });

  test("a caller who disconnects from a stream: the provider's request is aborted, the delivered part is charged", async () => {
    const { client, customer } = await callerOfHealthyProvider(target);
    const mock = target.mock?.(served);
    const asked = mock?.requests.length ?? 0;
    script(target, { events: [...events, errorEvent], beforeEvent: { [events.length]: never } });
    const controller = new AbortController();
    const config = { abortSignal: controller.signal };
    const stream = await client.models.generateContentStream({ ...asking(model), config });
    const { error } = await readUntilError(stream, (text) => text === "abcdefgh" && controller.abort());
    expect(error?.name).toBe("AbortError");
    const request = await mock?.request(asked);
    await request?.closed;
    expect(request?.aborted).toBe(true);
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ status: "cancelled", usage: { input, output: 2 } });
    expect(await chargeOf(served.service, customer)).toBe(cost());
  });

  test("a caller who disconnects before the JSON answer pays what the provider reports", async () => {
    const { client, customer } = await callerOfHealthyProvider(target);
    const mock = target.mock?.(served);
    const asked = mock?.requests.length ?? 0;
    const answering = gate();
    script(target, { beforeHeaders: answering.opened });
    const controller = new AbortController();
    const config = { abortSignal: controller.signal };
    const calling = client.models.generateContent({ ...asking(model), config });
    const request = await mock?.request(asked);
    controller.abort();
    await expect(calling).rejects.toMatchObject({ name: "AbortError" });
    answering.open();
    await request?.closed;
    expect(request?.aborted).toBe(false);
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ status: "succeeded", estimated: false });
    expect(await chargeOf(served.service, customer)).toBeGreaterThan(0n);
  });
});

test("local: a failing stream ends with an error, and the delivered part is charged", async () => {
  const { client, customer } = await newCaller(served);
  const { delivered, error } = await readUntilError(
    await client.models.generateContentStream(asking(local.model, "stream-error:3")),
  );
  expect(delivered).not.toBe("");
  expect(error).toMatchObject({ name: "ApiError", status: 502 });
  const [entry] = await entriesOf(served.service, customer);
  const { input = 0, output = 0 } = entry?.request.usage ?? {};
  expect(output).toBe(Math.ceil(delivered.length / 4));
  expect(await chargeOf(served.service, customer)).toBe(costOf(local.model, { input, output }));
});

test("local: the JSON array has the candidates of the server-sent events", async () => {
  const { client, customer } = await newCaller(served);
  const response = await customer.post(`/v1/models/${local.model}:streamGenerateContent`, {
    contents: [{ parts: [{ text: "Hello there" }] }],
  });
  const items = (await response.json()) as GenerateContentResponse[];
  const stream = await Array.fromAsync(await client.models.generateContentStream(asking(local.model)));
  const candidatesOf = (all: readonly GenerateContentResponse[]) => all.map(({ candidates }) => candidates);
  expect(candidatesOf(items)).toEqual(candidatesOf(stream));
  const broken = await customer.post(`/v1beta/models/${local.model}:streamGenerateContent`, {
    contents: [{ parts: [{ text: "stream-error:3" }] }],
  });
  expect(((await broken.json()) as unknown[]).at(-1)).toMatchObject({ error: failed });
});
