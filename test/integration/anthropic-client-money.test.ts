import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import {
  anthropicService,
  asking,
  clientOf,
  costOf,
  entriesOf,
  nativeModel,
  never,
  newCaller,
  ownName,
} from "../support/anthropic-client-setup.ts";
import { mockAnthropicError, mockErrorEvent } from "../support/mock-anthropic.ts";
import { gate, nanoUsd } from "../support/service-setup.ts";

const running = anthropicService();
const { messages } = asking(ownName);
const promptEstimate = Math.ceil("Hello there".length / 4);

/** The beginning of a stream, with the usage of the prompt. */
const begun = (usage: object, ...texts: string[]) => [
  {
    type: "message_start",
    message: { id: "msg_1", type: "message", role: "assistant", model: ownName, content: [], stop_reason: null, usage },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } },
  ...texts.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
];
const ended = (usage: object) => [
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
  { type: "message_stop" },
];

async function oneEntry(customer: Parameters<typeof entriesOf>[1]) {
  const [entry, ...others] = await entriesOf(running.service, customer);
  if (!entry || others.length > 0) throw new Error(`${others.length + 1} entries`);
  return entry;
}

describe("the charge matches the provider's usage", () => {
  const caches = {
    input_tokens: 100,
    cache_read_input_tokens: 50,
    cache_creation_input_tokens: 300,
    cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
  };
  const billed = { input: 100, cached_input: 50, cache_write: 100, cache_write_1h: 200, output: 20 };

  test.each([
    ["cache writes of 5 minutes and 1 hour", { ...caches, output_tokens: 20 }, billed, 1_460_000n],
    [
      "a cache write without a breakdown counts as 5 minutes",
      { input_tokens: 3, cache_creation_input_tokens: 40, cache_creation: null, output_tokens: 2 },
      { input: 3, cache_write: 40, output: 2 },
      126_000n,
    ],
    [
      "output includes thinking",
      { input_tokens: 3, output_tokens: 20, output_tokens_details: { thinking_tokens: 15 } },
      { input: 3, output: 20 },
      206_000n,
    ],
  ])("%s", async (_, usage, counted, nano) => {
    expect(costOf(nativeModel, counted)).toBe(nano);
    for (const isStream of [false, true]) {
      const { client, customer } = await newCaller(running);
      running.anthropic.respond({ usage });
      const message = isStream
        ? await client.messages.stream(asking(ownName)).finalMessage()
        : await client.messages.create(asking(ownName));
      expect(message.usage).toMatchObject(
        isStream ? { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens } : usage,
      );
      const { request, amount_usd } = await oneEntry(customer);
      expect(request).toMatchObject({ usage: counted, estimated: false, upstream: "anthropic", shortfall_usd: "0.00" });
      expect(nanoUsd(amount_usd)).toBe(-nano);
      expect(nanoUsd(await customer.available())).toBe(1_000_000_000n - nano);
    }
  });

  test("a stream with prompt usage only at its start", async () => {
    const { client, customer } = await newCaller(running);
    running.anthropic.respond({
      events: [...begun({ ...caches, output_tokens: 1 }, "Hi"), ...ended({ output_tokens: 20 })],
    });
    await client.messages.stream(asking(ownName)).done();
    const { request, amount_usd } = await oneEntry(customer);
    expect(request).toMatchObject({ usage: billed, estimated: false });
    expect(nanoUsd(amount_usd)).toBe(-costOf(nativeModel, billed));
  });

  test("an estimate, marked as one, if there is no usage", async () => {
    for (const isStream of [false, true]) {
      const { client, customer } = await newCaller(running);
      running.anthropic.respond({ usage: false, text: "12345678" });
      const answer = await client.messages.create({ ...asking(ownName), stream: isStream });
      if (Symbol.asyncIterator in answer) await Array.fromAsync(answer);
      const usage = { input: promptEstimate, output: 2 };
      const { request, amount_usd } = await oneEntry(customer);
      expect(request).toMatchObject({ usage, estimated: true });
      expect(nanoUsd(amount_usd)).toBe(-costOf(nativeModel, usage));
    }
  });

  test("a refusal that is not billed costs nothing", async () => {
    const { client, customer } = await newCaller(running);
    running.anthropic.respond({ content: [], stopReason: "refusal", usage: { input_tokens: 0, output_tokens: 0 } });
    await client.messages.create(asking(ownName));
    expect(nanoUsd((await oneEntry(customer)).amount_usd)).toBe(0n);
  });
});

/** The charge of an interrupted stream: the provider's count of the prompt, and the delivered text. */
const prompt = { input_tokens: 7, cache_read_input_tokens: 1_000, cache_creation_input_tokens: 0, output_tokens: 1 };
const delivered = { input: 7, cached_input: 1_000, output: 3 };
const three = begun(prompt, "12345678", "9abc");

describe("a stream interrupted by the provider", () => {
  interface Break {
    readonly how: string;
    readonly last: readonly object[];
    readonly type: string;
    readonly error: string;
    readonly cutAfter?: number;
    readonly model?: string;
  }
  const broken = { type: "api_error", error: "upstream_error" };
  const breaks: readonly Break[] = [
    { how: "by an error event", last: [mockErrorEvent("api_error", "Secret: broken")], ...broken },
    { how: "by ending it early", last: [], ...broken },
    { how: "by closing the connection", last: ended({ output_tokens: 9 }), cutAfter: 4, ...broken },
    {
      how: "by an overload event",
      last: [mockErrorEvent("overloaded_error", "Secret: overloaded")],
      type: "overloaded_error",
      error: "no_capacity",
      // The upstream cools down for this model.
      model: "anthropic/claude-opus-5",
    },
  ];

  test.each(breaks)("$how: the client throws, and the delivered part is charged", async (each) => {
    const { last, cutAfter, model = nativeModel } = each;
    const { client, customer } = await newCaller(running);
    const { opened, open } = gate();
    // Interrupt only after the caller has received everything before.
    running.anthropic.respond({
      events: [...three, ...last],
      beforeEvent: { 4: opened },
      beforeEnd: opened,
      ...(cutAfter && { cutAfter }),
    });
    let seen = "";
    const stream = client.messages.stream(asking(model)).on("text", (_, snapshot) => {
      seen = snapshot;
      if (seen.length === 12) open();
    });
    const thrown: unknown = await stream.finalMessage().catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Anthropic.APIError);
    expect(thrown).toMatchObject({ status: undefined, type: each.type, requestID: stream.request_id });
    expect(String(thrown)).not.toContain("Secret");
    expect(seen).toBe("123456789abc");
    const { request, amount_usd } = await oneEntry(customer);
    expect(request).toMatchObject({ status: "failed", error: each.error, estimated: true, usage: delivered });
    expect(nanoUsd(amount_usd)).toBe(-costOf(model, delivered));
  });
});

describe("a caller who disconnects", () => {
  /** Reads twelve characters, then disconnects. Resolves with the client's error, if it throws one. */
  const disconnects: Readonly<Record<string, (client: Anthropic) => Promise<unknown>>> = {
    abort: (client) => {
      const stream = client.messages.stream(asking(ownName)).on("text", (_, snapshot) => {
        if (snapshot.length === 12) stream.abort();
      });
      return stream.finalMessage().catch((error: unknown) => error);
    },
    signal: (client) => {
      const controller = new AbortController();
      const stream = client.messages.stream(asking(ownName), { signal: controller.signal });
      stream.on("text", (_, snapshot) => {
        if (snapshot.length === 12) controller.abort();
      });
      return stream.finalMessage().catch((error: unknown) => error);
    },
    break: async (client) => {
      const stream = await client.messages.create({ ...asking(ownName), stream: true });
      let length = 0;
      for await (const event of stream) {
        if (event.type === "content_block_delta" && event.delta.type === "text_delta")
          length += event.delta.text.length;
        if (length === 12) break;
      }
      return undefined;
    },
  };

  test.each([
    ["abort", Anthropic.APIUserAbortError],
    ["signal", Anthropic.APIUserAbortError],
    ["break", undefined],
  ])(
    "a stream by %s: the request to the provider is aborted, and the delivered part is charged",
    async (method, error) => {
      const { client, customer } = await newCaller(running);
      running.anthropic.respond({ events: [...three, ...ended({ output_tokens: 9 })], beforeEvent: { 4: never } });
      const thrown = await disconnects[method]?.(client);
      expect(thrown?.constructor).toBe(error);
      const request = await running.anthropic.request(0);
      await request.closed;
      expect(request.aborted).toBe(true);
      const entry = await oneEntry(customer);
      expect(entry.request).toMatchObject({ status: "cancelled", estimated: true, usage: delivered });
      expect(nanoUsd(entry.amount_usd)).toBe(-costOf(nativeModel, delivered));
    },
  );

  test.each([
    ["a stream is charged for its input", true],
    ["JSON is charged by the provider's usage", false],
  ])("before the first byte, %s", async (_, stream) => {
    const { client, customer } = await newCaller(running);
    const answering = gate();
    running.anthropic.respond({ beforeHeaders: stream ? never : answering.opened });
    const controller = new AbortController();
    const calling = client.messages.create({ ...asking(ownName), stream }, { signal: controller.signal });
    const request = await running.anthropic.request(0);
    controller.abort();
    await expect(calling).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    answering.open();
    await request.closed;
    expect(request.aborted).toBe(stream);
    const { request: record, amount_usd } = await oneEntry(customer);
    expect(record).toMatchObject({ status: stream ? "cancelled" : "succeeded", estimated: stream });
    const { input = 0, output = 0 } = record.usage;
    expect(input).toBeGreaterThan(0);
    expect(nanoUsd(amount_usd)).toBe(-costOf(nativeModel, { input, output }));
  });
});

test.each([false, true])(
  "of a call that the client retries after a 503 only the answer is charged (stream: %s)",
  async (isStream) => {
    const { customer } = await newCaller(running);
    const statuses: number[] = [];
    const client = clientOf(running.service, customer, {
      maxRetries: 2,
      fetch: async (url: string, init: RequestInit) => {
        const response = await fetch(url, init);
        statuses.push(response.status);
        return response;
      },
    });
    running.anthropic.respond(mockAnthropicError(529, "Overloaded"));
    const params = { ...asking(ownName), messages };
    const message = isStream
      ? await client.messages.stream(params).finalMessage()
      : await client.messages.create(params);
    expect(statuses).toEqual([503, 200]);
    const { input_tokens: input, output_tokens: output } = message.usage;
    const amounts = (await entriesOf(running.service, customer)).map(({ amount_usd }) => nanoUsd(amount_usd));
    expect(amounts).toEqual([-costOf(nativeModel, { input, output }), 0n]);
    expect(nanoUsd(await customer.available())).toBe(1_000_000_000n - costOf(nativeModel, { input, output }));
  },
);
