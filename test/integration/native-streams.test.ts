import { describe, expect, test } from "vitest";
import { mockChunk, mockError, mockText, mockUsage } from "../support/mock-openai.ts";
import {
  refusalIn,
  refusalOf,
  relayedModel,
  relayedPrice,
  send,
  streamFaces,
  usageOf,
  withRelayedModel,
} from "../support/native-formats.ts";
import { eventsOf, expectFailed, pings, readAlong, saidIn } from "../support/native-stream-events.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  expectUntouched,
  gate,
  nanoUsd,
  never,
  type Refusal,
  serviceOfFile,
  untilHealthy,
} from "../support/service-setup.ts";

const env = { CATALOG_FILE: withRelayedModel() };
const running = serviceOfFile(env);
const question = "Hello there";
const failed: Refusal = { status: 502, type: "server_error", code: "upstream_error" };
const full: Refusal = { status: 503, type: "server_error", code: "no_capacity" };

/** Makes a successful call, so that failures of earlier tests do not open the breaker. */
async function customerOfHealthyProvider(): Promise<Customer> {
  const healthy = await running.service.account("1");
  const body = { model: relayedModel, messages: [{ role: "user", content: question }] };
  await untilHealthy(running, () => healthy.post("/v1/chat/completions", body));
  return running.service.account("1");
}

describe.each(streamFaces)("$name", (face) => {
  const stream = (customer: Customer, init?: { signal: AbortSignal }) =>
    send(customer, face.stream(relayedModel, question), init);
  const begun = [mockChunk({ role: "assistant", content: "abcd" }), mockChunk({ content: "efgh" })];

  describe("silence", () => {
    test("every 15 s the format's own ping; what comes then is whole, and so is an end that comes at once", async () => {
      const { service, provider, advance } = running;
      const customer = await service.account("1");
      const ping = pings[face.name] ?? "";
      const ready = gate();
      const middle = gate();
      provider.respond({ beforeHeaders: ready.opened, beforeEvent: { 3: middle.opened } });
      const calling = stream(customer);
      await provider.request(0);
      for (let second = 0; second < 31; second++) advance(1_000);
      // Status and headers are sent with the first ping.
      const response = await calling;
      expect(response.status).toBe(200);
      const { text, whole } = readAlong(response);
      await eventually(() => text().length >= 2 * ping.length);
      expect(text()).toBe(ping.repeat(2));
      ready.open();
      await eventually(() => text().includes("there"));
      const before = text();
      for (let second = 0; second < 16; second++) advance(1_000);
      await eventually(() => text().length > before.length);
      expect(text().slice(before.length)).toBe(ping);
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
  });

  test.each([
    ["cuts the stream", { events: [...begun, mockChunk({ content: "never" })], cutAfter: 2 }],
    ["ends it without an end", { events: begun, done: false as const }],
    ["sends an error in it", { events: [...begun, { error: { message: "sk-secret overloaded", code: 500 } }] }],
  ])("a provider that %s: the format's own error ends it, what was delivered is charged", async (_, answer) => {
    const customer = await customerOfHealthyProvider();
    const released = gate();
    running.provider.respond({ ...answer, ...(!("done" in answer) && { beforeEvent: { 2: released.opened } }) });
    const response = await stream(customer);
    const { text, whole } = readAlong(response);
    await eventually(() => text().includes("efgh"));
    released.open();
    const events = eventsOf(face, await whole);
    expect(text()).not.toMatch(/sk-secret|\[DONE\]|message_stop|response\.completed/);
    expectFailed(face, events, failed, response.headers.get("x-request-id"));
    expect(saidIn(face, events)).toBe("abcdefgh");
    const entry = await usageOf(running.service, customer);
    const usage = { input: mockUsage().prompt_tokens, output: 2 };
    expect(entry?.request).toMatchObject({ status: "failed", error: "upstream_error", estimated: true, usage });
    const cost = BigInt(usage.input) * relayedPrice.input + 2n * relayedPrice.output;
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-cost);
  });

  test.each([
    ["500", mockError(500, "down"), failed],
    ["503", mockError(503, "overloaded"), failed],
    ["429", mockError(429, "slow down", { headers: { "retry-after": "1" } }), full],
    ["429, no balance", mockError(429, "slow down", { code: "insufficient_quota" }), failed],
    [
      "400",
      mockError(400, "Bad tools.", { param: "tools" }),
      { status: 400, type: "invalid_request_error", code: "invalid_value", param: "tools", message: /^Bad tools\.$/ },
    ],
    ["no JSON", { body: "<html>hello</html>" }, failed],
  ] satisfies [string, object, Refusal][])(
    "a provider's failure before the first byte keeps its status: %s",
    async (_, answer, refusal) => {
      const customer = await customerOfHealthyProvider();
      running.provider.respond(answer);
      expect(await refusalIn(face, await stream(customer))).toEqual(refusalOf(face, refusal));
      await expectUntouched(running.service, customer, "1.00");
    },
  );

  test("a caller who disconnects from a stream: the provider's request is aborted, the delivered part is charged", async () => {
    const customer = await customerOfHealthyProvider();
    const asked = running.provider.requests.length;
    running.provider.respond({ events: [...begun, mockChunk({ content: "never sent" })], beforeEvent: { 2: never } });
    const controller = new AbortController();
    const { text, whole } = readAlong(await stream(customer, { signal: controller.signal }));
    await eventually(() => text().includes("efgh"));
    controller.abort();
    await expect(whole).rejects.toThrow("abort");
    const request = await running.provider.request(asked);
    await request.closed;
    expect(request.aborted).toBe(true);
    const entry = await usageOf(running.service, customer);
    const usage = { input: mockUsage().prompt_tokens, output: 2 };
    expect(entry?.request).toMatchObject({ status: "cancelled", estimated: true, usage });
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(
      -(BigInt(usage.input) * relayedPrice.input + 2n * relayedPrice.output),
    );
  });

  test("a caller who disconnects before the first byte of a stream pays for the input", async () => {
    const customer = await customerOfHealthyProvider();
    const asked = running.provider.requests.length;
    running.provider.respond({ beforeHeaders: never });
    const controller = new AbortController();
    const calling = stream(customer, { signal: controller.signal });
    const request = await running.provider.request(asked);
    controller.abort();
    await expect(calling).rejects.toThrow("abort");
    await request.closed;
    expect(request.aborted).toBe(true);
    const entry = await usageOf(running.service, customer);
    const input = mockUsage().prompt_tokens;
    expect(entry?.request).toMatchObject({ status: "cancelled", estimated: true, usage: { input } });
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-BigInt(input) * relayedPrice.input);
  });

  test("a caller who disconnects before the JSON answer pays what the provider reports", async () => {
    const customer = await customerOfHealthyProvider();
    const asked = running.provider.requests.length;
    const answering = gate();
    running.provider.respond({ beforeHeaders: answering.opened });
    const controller = new AbortController();
    const calling = send(customer, face.ask(relayedModel, question), { signal: controller.signal });
    const request = await running.provider.request(asked);
    controller.abort();
    await expect(calling).rejects.toThrow("abort");
    answering.open();
    await request.closed;
    expect(request.aborted).toBe(false);
    const { prompt_tokens: input, completion_tokens: output } = mockUsage();
    const entry = await usageOf(running.service, customer);
    expect(entry?.request).toMatchObject({ status: "succeeded", estimated: false, usage: { input, output } });
  });

  test("an answer larger than a frame arrives whole, and so does a body too large for the job", async () => {
    const customer = await running.service.account("1");
    // Four bytes and two UTF-16 units each: a part must not end in the middle of one.
    const text = `x${"😀".repeat(100_000)}`;
    running.provider.always({ text });
    const said = `y${"ü".repeat(50_000)}`;
    const whole = await (await send(customer, face.ask(relayedModel, said))).json();
    const streamed = await (await send(customer, face.stream(relayedModel, said))).text();
    // Too long for a diff.
    expect(face.said(whole) === text).toBe(true);
    expect(saidIn(face, eventsOf(face, streamed)) === text).toBe(true);
    expect(running.provider.requests.map(({ body }) => JSON.stringify(body).includes(said))).toEqual([true, true]);
  });

  test("an answer of a stream is what JSON says, under our model id, and costs its usage", async () => {
    const customer = await customerOfHealthyProvider();
    running.provider.respond({ usage: { ...mockUsage(), prompt_tokens_details: { cached_tokens: 4 } } });
    const response = await stream(customer);
    const text = await response.text();
    expect(text).not.toMatch(/"relayed"|mock-model|fp_mock_secret/);
    const said = saidIn(face, eventsOf(face, text));
    const other = await customerOfHealthyProvider();
    expect(said).toBe(face.said(await (await send(other, face.ask(relayedModel, question))).json()));
    expect(said).toBe(mockText);
    const { completion_tokens } = mockUsage();
    const cost = 5n * relayedPrice.input + 4n * relayedPrice.cached + BigInt(completion_tokens) * relayedPrice.output;
    const entry = await usageOf(running.service, customer);
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-cost);
    expect(response.headers.get("content-type")).toMatch(
      face.name === "gemini, as an array" ? /^application\/json/ : /^text\/event-stream/,
    );
    expect(response.headers.get("cache-control")).toBe("no-cache, no-transform");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
  });
});
