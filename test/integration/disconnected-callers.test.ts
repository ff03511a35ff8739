import { connect } from "node:net";
import OpenAI from "openai";
import { describe, expect, onTestFinished, test } from "vitest";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { movableClock } from "../support/movable-clock.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  asking,
  entryOf,
  gate,
  localModel,
  never,
  providerModel,
  serviceOfFile,
  startWithProvider,
} from "../support/service-setup.ts";

const running = serviceOfFile();
const usageWaitMs = 30_000;
const usageEntry = (customer: { ledger(kind?: string): Promise<readonly Record<string, never>[]> }) =>
  eventually(async () => (await customer.ledger("usage"))[0] as { id: string } | undefined);

/** The mock provider's bill for "Hello there": nine tokens of input, at the prices of the model. */
const billed = { input: 9, output: 8, costNanoUsd: 9 * 400 + 8 * 1_600 };
const usd = (nanoUsd: number) => (nanoUsd / 1e9).toFixed(9).replace(/0{1,7}$/, "");

describe("the caller disconnects", () => {
  /** The only entry, once nothing is held. */
  async function settledEntry(customer: Parameters<typeof usageEntry>[0]) {
    await running.service.settled();
    return entryOf(running.service, (await usageEntry(customer)).id);
  }

  test.each([
    [
      "chat",
      (customer: Customer, signal: AbortSignal) =>
        customer.openai.chat.completions.create(asking(providerModel), { signal }),
      usd(billed.costNanoUsd),
    ],
    [
      "embeddings",
      (customer: Customer, signal: AbortSignal) =>
        customer.openai.embeddings.create({ model: "openai/text-embedding-3-small", input: "x" }, { signal }),
      "0.00000002",
    ],
  ])("%s, JSON: the provider's answer is read to its end and charged as reported", async (_, ask, costUsd) => {
    const customer = await running.service.account("1", { limits: { concurrent_requests: 1 } });
    const answering = gate();
    running.provider.respond({ beforeHeaders: answering.opened });
    const controller = new AbortController();
    const calling = ask(customer, controller.signal);
    const request = await running.provider.request(0);
    controller.abort();
    await expect(calling).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    // The provider still works for this call, so its slot is taken.
    expect((await customer.post("/v1/chat/completions", asking(localModel))).status).toBe(429);
    answering.open();
    await request.closed;
    expect(request.aborted).toBe(false);
    const entry = await settledEntry(customer);
    expect(entry).toMatchObject({ amount_usd: `-${costUsd}`, request: { status: "succeeded", estimated: false } });
    await eventually(async () => (await customer.post("/v1/chat/completions", asking(localModel))).status === 200);
  });

  test("a stream with hidden reasoning: it is read on, and charged as the provider bills", async () => {
    const customer = await running.service.account("1");
    const reasoned = { ...mockUsage("a b c"), completion_tokens: 5_000, total_tokens: 5_009 };
    const rest = gate();
    running.provider.respond({
      events: [
        mockChunk({ role: "assistant", content: "12345678" }),
        mockChunk({ content: "9 not delivered" }),
        mockChunk({}, "stop"),
        mockChunk(undefined, null, { usage: reasoned }),
      ],
      beforeEvent: { 1: rest.opened },
    });
    const stream = await customer.openai.chat.completions.create({ ...asking("openai/gpt-5.1"), stream: true });
    for await (const _ of stream) break;
    const request = await running.provider.request(0);
    // The cancellation has been sent to the worker by now.
    rest.open();
    await request.closed;
    const { request: record } = await settledEntry(customer);
    expect(record).toMatchObject({ estimated: false, usage: { input: 9, output: 5_000 } });
  });

  test("a stream with hidden reasoning whose provider says no more is aborted after 30 s, and charged as far as it was delivered", async () => {
    const customer = await running.service.account("1");
    running.provider.respond({
      events: [mockChunk({ role: "assistant", content: "12345678" }), mockChunk({ content: "9 never sent" })],
      beforeEvent: { 1: never },
    });
    const stream = await customer.openai.chat.completions.create({ ...asking("openai/gpt-5.1"), stream: true });
    for await (const _ of stream) break;
    const request = await running.provider.request(0);
    await eventually(() => running.isWaiting(usageWaitMs));
    expect(request.aborted).toBe(false);
    running.advance(usageWaitMs);
    await request.closed;
    expect(request.aborted).toBe(true);
    expect((await settledEntry(customer)).request).toMatchObject({
      status: "cancelled",
      estimated: true,
      usage: { input: 9, output: 2 },
    });
  });

  test("a stream of the local model: the hold is released, the charge is at most that of the whole answer", async () => {
    const customer = await running.service.account("1");
    const stream = await customer.openai.chat.completions.create({
      ...asking(localModel, "tokens:8000"),
      stream: true,
    });
    for await (const _ of stream) break;
    const entry = await settledEntry(customer);
    expect(["cancelled", "succeeded"]).toContain(entry.request.status);
    expect(entry.request.usage["output"]).toBeLessThanOrEqual(12_000);
  });
});

describe.each([false, true])("a disconnected call releases its slot, stream: %s", (stream) => {
  test.each([
    ["running", providerModel, 100],
    ["running with a body in storage", providerModel, 100_000],
  ])("%s", async (_, model, length) => {
    const customer = await running.service.account("1", { limits: { concurrent_requests: 1 } });
    const answering = gate();
    running.provider.respond({ beforeHeaders: answering.opened });
    const controller = new AbortController();
    const body = { ...asking(model, "x".repeat(length)), stream };
    const calling = customer.post("/v1/chat/completions", body, { signal: controller.signal });
    const request = await running.provider.request(0);
    controller.abort();
    await expect(calling).rejects.toThrow("abort");
    if (!stream) answering.open();
    await request.closed;
    await running.service.settled();
    await eventually(async () => (await customer.post("/v1/chat/completions", asking(localModel))).status === 200);
  });
});

test("a stream at its deadline: the caller gets the error, the input and the delivered output are charged", async () => {
  const { clock, advance } = movableClock();
  const { service, provider } = await startWithProvider({ CALL_TIMEOUT_MS: "60000" }, undefined, clock);
  onTestFinished(() => provider.close());
  const customer = await service.account("1");
  provider.respond({
    events: [mockChunk({ role: "assistant", content: "12345678" }), mockChunk({ content: "9 never sent" })],
    beforeEvent: { 1: never },
  });
  const stream = await customer.openai.chat.completions.create({ ...asking(providerModel), stream: true });
  const reading = async () => {
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === "12345678") advance(60_000);
  };
  await expect(reading()).rejects.toMatchObject({ code: "upstream_timeout" });
  await service.settled();
  expect(await entryOf(service, (await usageEntry(customer)).id)).toMatchObject({
    amount_usd: `-${usd(9 * 400 + 2 * 1_600)}`,
    request: { status: "failed", error: "upstream_timeout", usage: { input: 9, output: 2 } },
  });
});

test("callers who disconnect at any moment: every slot and hold is released", async () => {
  const customer = await running.service.account("100", { limits: { concurrent_requests: 60 } });
  const bodies = [
    asking(localModel),
    { ...asking(localModel, "tokens:400"), stream: true },
    asking(providerModel),
    { ...asking(providerModel), stream: true },
    asking(localModel, "x".repeat(70_000)),
  ];
  const ends = await Promise.allSettled(
    Array.from({ length: 60 }, async (_, at) => {
      const body = bodies[at % bodies.length];
      const response = await customer.post("/v1/chat/completions", body, { signal: AbortSignal.timeout(at * 5) });
      await response.text();
    }),
  );
  expect(ends.some(({ status }) => status === "rejected")).toBe(true);
  await running.service.settled();
  // Every slot is free again: the full limit of concurrent calls is available.
  await eventually(async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => customer.post("/v1/chat/completions", asking(localModel))),
    );
    for (const answer of answers) await answer.text();
    return answers.every(({ status }) => status === 200);
  });
  expect(await running.service.settled()).toMatchObject({ ok: true, difference_usd: "0.00", undecided: 0 });
});

test("a caller who does not read: its provider is not read either, and after 30 s it counts as a disconnect", async () => {
  const customer = await running.service.account("100");
  const event = mockChunk({ content: "x".repeat(1024 * 1024) });
  running.provider.respond({ events: Array.from({ length: 40 }, () => event), beforeEnd: never });
  const { hostname, port } = new URL(running.service.baseUrl);
  const body = JSON.stringify({ ...asking(providerModel), stream: true });
  const socket = connect(Number(port), hostname).pause();
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${customer.key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const request = await running.provider.request(0);
  await eventually(() => {
    running.advance(1_000);
    return request.aborted;
  });
  await request.closed;
  expect(request.eventsSent).toBeLessThan(40);
  await running.service.settled();
  socket.destroy();
  const { request: call } = await entryOf(running.service, (await usageEntry(customer)).id);
  expect(call).toMatchObject({ status: "cancelled", estimated: true });
  expect(call.usage["output"]).toBeGreaterThan(60_000);
});

test("usage that a provider reported before its stream broke off counts", async () => {
  const customer = await running.service.account("1");
  running.provider.respond({
    events: [
      mockChunk({ role: "assistant", content: "abcdefgh" }),
      mockChunk(undefined, null, { usage: mockUsage("a b") }),
    ],
    done: false,
  });
  const response = await customer.post("/v1/chat/completions", { ...asking(providerModel), stream: true });
  await response.text();
  await running.service.settled();
  const { request } = await entryOf(running.service, response.headers.get("x-request-id"));
  expect(request).toMatchObject({ status: "failed", estimated: false, usage: { input: 9, output: 2 } });
});
