import { describe, expect, test } from "vitest";
import {
  costOf,
  formatsService,
  geminiProvider,
  local,
  messagesProvider,
  relay,
  responsesProvider,
  type Target,
} from "../support/formats-service.ts";
import { mockAnthropicError, mockErrorEvent } from "../support/mock-anthropic.ts";
import { mockErrorInfo, mockGeminiError, mockGeminiProblem, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockError, mockText, mockUsage } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import {
  type Face,
  geminiFace,
  messagesFace,
  refusalIn,
  refusalOf,
  responsesFace,
  send,
  streamFaces,
  usageOf,
} from "../support/native-formats.ts";
import { eventsOf, expectFailed, pings, readAlong, saidIn } from "../support/native-stream-events.ts";
import {
  chatText,
  geminiText,
  messagesStart,
  messagesText,
  responsesStart,
  responsesText,
} from "../support/provider-events.ts";
import { type Customer, eventually } from "../support/service.ts";
import { expectUntouched, gate, nanoUsd, never, type Refusal, untilHealthy } from "../support/service-setup.ts";

const served = formatsService();
const question = "Hello there";
const failed: Refusal = { status: 502, type: "server_error", code: "upstream_error" };
const full: Refusal = { status: 503, type: "server_error", code: "no_capacity" };
const invalid: Refusal = { status: 400, type: "invalid_request_error", code: "invalid_value", message: /^Bad\.$/ };
const secret = "sk-secret";
const later = { headers: { "retry-after": "1" } };

/** A provider's stream that is interrupted after "abcd" and "efgh", and its refusals before a stream. */
interface Provider {
  readonly target: Target;
  readonly begun: readonly object[];
  readonly errorEvent: object;
  /** The error that the caller gets for it. */
  readonly error: Refusal;
  /** The input that an interrupted stream is charged for: counted by us, or by the provider. */
  readonly input: Readonly<Record<string, number>>;
  readonly refusals: readonly (readonly [what: string, ProviderAnswer, Refusal])[];
}

const openaiRefusals: Provider["refusals"] = [
  ["400", mockError(400, "Bad.", { param: "tools" }), { ...invalid, param: "tools" }],
  ["429", mockError(429, secret, later), full],
  ["500", mockError(500, secret), failed],
  ["no JSON", { body: "<html>" }, failed],
];

const relayed: Provider = {
  target: relay,
  begun: [chatText("abcd"), chatText("efgh")],
  errorEvent: { error: { message: secret, type: "server_error", code: 500 } },
  error: failed,
  input: { input: 9 },
  refusals: openaiRefusals,
};

const responses: Provider = {
  target: responsesProvider,
  begun: [...responsesStart, responsesText("abcd", 3), responsesText("efgh", 4)],
  errorEvent: { type: "error", code: "server_error", message: secret, param: null, sequence_number: 5 },
  error: failed,
  input: { input: 9 },
  refusals: openaiRefusals,
};

const messages: Provider = {
  target: messagesProvider,
  begun: [
    ...messagesStart({ input_tokens: 7, cache_read_input_tokens: 1_000, output_tokens: 1 }),
    messagesText("abcd"),
    messagesText("efgh"),
  ],
  errorEvent: mockErrorEvent("overloaded_error", secret),
  error: full,
  input: { input: 7, cached_input: 1_000 },
  refusals: [
    ["400", mockAnthropicError(400, "Bad."), invalid],
    ["400 for an empty account", mockAnthropicError(400, "Your credit balance is too low"), failed],
    ["529", mockAnthropicError(529, secret, later), full],
    ["504", mockAnthropicError(504, secret), { status: 504, type: "server_error", code: "upstream_timeout" }],
    ["no JSON", { body: "<html>" }, failed],
  ],
};

const gemini: Provider = {
  target: geminiProvider,
  begun: [geminiText("abcd"), geminiText("efgh")],
  errorEvent: mockGeminiProblem(503, secret),
  error: failed,
  // The provider counts on request.
  input: { input: 2 },
  refusals: [
    ["400", mockGeminiError(400, "Bad."), invalid],
    [
      "400 for the operator's key",
      mockGeminiError(400, "API key not valid.", { details: [mockErrorInfo("API_KEY_INVALID")] }),
      failed,
    ],
    ["429", mockGeminiError(429, secret, { details: [mockRetryInfo("1s")] }), full],
    ["500", mockGeminiError(500, secret), failed],
  ],
};

/** Each format converted for the relay, each native one, and Gemini's for providers of other formats. */
const routes: readonly (readonly [face: Face, provider: Provider])[] = [
  ...streamFaces.map((face) => [face, relayed] as const),
  [responsesFace, responses],
  [messagesFace, messages],
  [geminiFace, gemini],
  [geminiFace, responses],
  [geminiFace, messages],
];

let anyCustomer: Promise<Customer> | undefined;

/** A success after the failures of earlier tests closes the breaker. */
async function closeBreaker(face: Face, { model }: Target): Promise<void> {
  const other = await (anyCustomer ??= served.service.account("100"));
  await untilHealthy(served, () => send(other, face.ask(model, question)));
}

async function customerOfHealthyProvider(face: Face, target: Target): Promise<Customer> {
  await closeBreaker(face, target);
  return served.service.account("1");
}

describe.each(routes.map(([face, provider]) => ({ face, provider, name: face.name, by: provider.target.name })))(
  "$name, served by the provider $by",
  ({ face, provider: { target, begun, errorEvent, error, input, refusals } }) => {
    const { model } = target;
    const mock = () => target.mock?.(served) ?? served.provider;
    const stream = (customer: Customer, init?: { signal: AbortSignal }) =>
      send(customer, face.stream(model, question), init);
    const delivered = { ...input, output: 2 };

    /** Expects one charge, of this usage. */
    async function expectCharged(customer: Customer, request: object, usage: Readonly<Record<string, number>>) {
      const entry = await usageOf(served.service, customer);
      expect(entry?.request).toMatchObject({ ...request, usage });
      expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(model, usage));
    }

    test.each([
      ["cuts the stream", failed, { events: [...begun, errorEvent], cutAfter: begun.length }],
      ["ends it without an end", failed, { events: begun, done: false as const }],
      ["sends an error in it", error, { events: [...begun, errorEvent] }],
      ["sends invalid JSON", failed, { events: [...begun, "data: {oops\n\n"] }],
    ])(
      "a provider that %s: the format's own error ends it, what was delivered is charged",
      async (_, shown, answer) => {
        const customer = await customerOfHealthyProvider(face, target);
        const released = gate();
        mock().respond({
          ...answer,
          ...("done" in answer ? { beforeEnd: released.opened } : { beforeEvent: { [begun.length]: released.opened } }),
        });
        const response = await stream(customer);
        const { text, whole } = readAlong(response);
        await eventually(() => text().includes("efgh"));
        released.open();
        const events = eventsOf(face, await whole);
        expect(text()).not.toMatch(/sk-secret|\[DONE\]|message_stop|response\.completed/);
        expectFailed(face, events, shown, response.headers.get("x-request-id"));
        expect(saidIn(face, events)).toBe("abcdefgh");
        await expectCharged(customer, { status: "failed", error: shown.code, estimated: true }, delivered);
      },
    );

    test.each(refusals)(
      "a provider's failure before the first byte keeps its status: %s",
      async (_, answer, refusal) => {
        const customer = await served.service.account("1");
        for (const asked of [face.stream(model, question), face.ask(model, question)]) {
          await closeBreaker(face, target);
          mock().respond(answer);
          const response = await send(customer, asked);
          expect(await response.clone().text()).not.toMatch(/sk-secret|credit/);
          expect(await refusalIn(face, response)).toEqual(refusalOf(face, refusal));
        }
        await expectUntouched(served.service, customer, "1.00");
      },
    );

    test("a caller who disconnects from a stream: the provider's request is aborted, the delivered part is charged", async () => {
      const customer = await customerOfHealthyProvider(face, target);
      const asked = mock().requests.length;
      mock().respond({ events: [...begun, errorEvent], beforeEvent: { [begun.length]: never } });
      const controller = new AbortController();
      const { text, whole } = readAlong(await stream(customer, { signal: controller.signal }));
      await eventually(() => text().includes("efgh"));
      controller.abort();
      await expect(whole).rejects.toThrow("abort");
      const request = await mock().request(asked);
      await request.closed;
      expect(request.aborted).toBe(true);
      await expectCharged(customer, { status: "cancelled", estimated: true }, delivered);
    });

    test("a caller who disconnects before the first byte of a stream pays for the input", async () => {
      const customer = await customerOfHealthyProvider(face, target);
      const asked = mock().requests.length;
      mock().respond({ beforeHeaders: never });
      const controller = new AbortController();
      const calling = stream(customer, { signal: controller.signal });
      const request = await mock().request(asked);
      controller.abort();
      await expect(calling).rejects.toThrow("abort");
      await request.closed;
      expect(request.aborted).toBe(true);
      const entry = await usageOf(served.service, customer);
      expect(entry?.request).toMatchObject({ status: "cancelled", estimated: true });
      const { input: counted = 0, output = 0 } = entry?.request.usage ?? {};
      expect([counted > 0, output]).toEqual([true, 0]);
      expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(model, { input: counted }));
    });

    test("a caller who disconnects before the JSON answer pays what the provider reports", async () => {
      const customer = await customerOfHealthyProvider(face, target);
      const asked = mock().requests.length;
      const answering = gate();
      mock().respond({ beforeHeaders: answering.opened });
      const controller = new AbortController();
      const calling = send(customer, face.ask(model, question), { signal: controller.signal });
      const request = await mock().request(asked);
      controller.abort();
      await expect(calling).rejects.toThrow("abort");
      answering.open();
      await request.closed;
      expect(request.aborted).toBe(false);
      const entry = await usageOf(served.service, customer);
      expect(entry?.request).toMatchObject({ status: "succeeded", estimated: false });
      const { input: counted = 0, output = 0 } = entry?.request.usage ?? {};
      expect(Math.min(counted, output)).toBeGreaterThan(0);
      expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(model, { input: counted, output }));
    });
  },
);

describe.each(streamFaces)("$name", (face) => {
  const stream = (customer: Customer) => send(customer, face.stream(relay.model, question));

  test("every 15 s of silence the format's own ping; what comes then is whole, and so is an end that comes at once", async () => {
    const { service, provider, advance } = served;
    const customer = await service.account("1");
    const ping = pings[face.name] ?? "";
    const ready = gate();
    const middle = gate();
    provider.respond({ beforeHeaders: ready.opened, beforeEvent: { 3: middle.opened } });
    const calledAt = performance.now();
    const calling = stream(customer);
    await provider.request(0);
    for (let second = 0; second < 31; second++) advance(1_000);
    /** Expects nothing but pings: no more than fit into this silence and the time that has passed here. */
    const expectPings = (written: string, silenceMs: number, begunAt: number) => {
      const most = Math.floor((silenceMs + performance.now() - begunAt) / 15_000);
      expect(written).toBe(ping.repeat(written.length / ping.length));
      expect(written.length / ping.length).toBeLessThanOrEqual(most);
    };
    // Status and headers are sent with the first ping.
    const response = await calling;
    expect(response.status).toBe(200);
    const { text, whole } = readAlong(response);
    await eventually(() => text().length >= 2 * ping.length);
    expectPings(text(), 31_000, calledAt);
    const readyAt = performance.now();
    ready.open();
    await eventually(() => text().includes("there"));
    const before = text();
    for (let second = 0; second < 16; second++) advance(1_000);
    await eventually(() => text().length > before.length);
    expectPings(text().slice(before.length), 16_000, readyAt);
    middle.open();
    expect(saidIn(face, eventsOf(face, await whole))).toBe(mockText);

    // The stream of a call that fails after nothing but pings.
    const { opened, open } = gate();
    provider.respond({ ...mockError(500, "down"), beforeHeaders: opened });
    const failing = stream(customer);
    await provider.request(1);
    for (let second = 0; second < 16; second++) advance(1_000);
    const broken = await failing;
    expect(broken.status).toBe(200);
    open();
    const end = await broken.text();
    expect(end.startsWith(ping)).toBe(true);
    const events = eventsOf(face, end);
    expectFailed(face, events, failed, broken.headers.get("x-request-id"));
    // Only the failure follows: Responses needs two events for it, after the two that begin a stream.
    expect(events).toHaveLength(face.format === "responses" ? 4 : 1);
    await service.settled();
    const entries = (await customer.ledger("usage")) as unknown as readonly { amount_usd: string }[];
    expect(entries.map(({ amount_usd }) => nanoUsd(amount_usd) === 0n)).toEqual([true, false]);
  });

  test("an answer larger than a frame arrives whole, and so does a body too large for the job", async () => {
    const customer = await served.service.account("1");
    // Four bytes and two UTF-16 units each: a part must not end in the middle of one.
    const text = `x${"😀".repeat(100_000)}`;
    served.provider.always({ text });
    const said = `y${"ü".repeat(50_000)}`;
    const whole = await (await send(customer, face.ask(relay.model, said))).json();
    const streamed = await (await send(customer, face.stream(relay.model, said))).text();
    // Too long for a diff.
    expect(face.said(whole) === text).toBe(true);
    expect(saidIn(face, eventsOf(face, streamed)) === text).toBe(true);
    expect(served.provider.requests.map(({ body }) => JSON.stringify(body).includes(said))).toEqual([true, true]);
  });

  test("an answer of a stream is what JSON says, under our model id, and costs its usage", async () => {
    const customer = await customerOfHealthyProvider(face, relay);
    served.provider.respond({ usage: { ...mockUsage(), prompt_tokens_details: { cached_tokens: 4 } } });
    const response = await stream(customer);
    const text = await response.text();
    expect(text).not.toMatch(/"relayed"|mock-model|fp_mock_secret/);
    const said = saidIn(face, eventsOf(face, text));
    const other = await customerOfHealthyProvider(face, relay);
    expect(said).toBe(face.said(await (await send(other, face.ask(relay.model, question))).json()));
    expect(said).toBe(mockText);
    const usage = { input: 5, cached_input: 4, output: mockUsage().completion_tokens };
    const entry = await usageOf(served.service, customer);
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(relay.model, usage));
    expect(response.headers.get("content-type")).toMatch(
      face.name === "gemini, as an array" ? /^application\/json/ : /^text\/event-stream/,
    );
    expect(response.headers.get("cache-control")).toBe("no-cache, no-transform");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
  });

  test("the local model's broken stream: its error is the last event, and its part is charged", async () => {
    const customer = await served.service.account("1");
    const response = await send(customer, face.stream(local.model, "stream-error:3"));
    const events = eventsOf(face, await response.text());
    expectFailed(face, events, failed, response.headers.get("x-request-id"));
    const entry = await usageOf(served.service, customer);
    const { input = 0, output = 0 } = entry?.request.usage ?? {};
    expect(output).toBe(Math.ceil(saidIn(face, events).length / 4));
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(local.model, { input, output }));
    const whole = await send(customer, face.ask(local.model, "stream-error:3"));
    expect(await refusalIn(face, whole)).toEqual(refusalOf(face, failed));
  });
});
