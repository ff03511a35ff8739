import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { openQueue } from "../support/jobs-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { movableClock } from "../support/movable-clock.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import {
  asking,
  catalogWith,
  entryOf,
  expectUntouched,
  gate,
  localModel,
  providerModel,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
  startWithProvider,
  untilHealthy,
} from "../support/service-setup.ts";

const timeoutMs = 60_000;
const running = serviceOfFile({
  CATALOG_FILE: catalogWith({ openai: { first_byte_timeout_ms: timeoutMs, silence_timeout_ms: timeoutMs } }),
  PING_INTERVAL_MS: String(10 * timeoutMs),
});
const chat = "/v1/chat/completions";
const never = new Promise<never>(() => {});
const failed: Refusal = { status: 502, type: "server_error", code: "upstream_error" };
const late: Refusal = { status: 504, type: "server_error", code: "upstream_timeout" };
const full: Refusal = { status: 503, type: "server_error", code: "no_capacity" };
const secret = "sk-abcdefgh1234";

describe.each([false, true])("a provider's failure as the caller sees it, stream: %s", (stream) => {
  test.each([
    ["a bad key", mockError(401, `Incorrect API key provided: ${secret}.`, { code: "invalid_api_key" }), failed],
    ["a quota used up", mockError(429, "You exceeded your quota", { code: "insufficient_quota" }), failed],
    ["200 with an error", { body: { error: { message: secret, code: 500 } } }, failed],
    ["a connection cut before the answer", { cutAfter: -1 }, failed],
    ["silence", { beforeHeaders: never }, late],
  ] satisfies [string, object, Refusal][])("%s", async (_, answer, expected) => {
    const customer = await running.service.account("1");
    await untilHealthy(running, () => customer.post(chat, asking(providerModel)));
    await running.service.settled();
    const before = await customer.available();
    const requestsBefore = running.provider.requests.length;
    running.provider.respond(answer);
    const calling = customer.post(chat, { ...asking(providerModel), stream });
    if (expected === late) {
      await running.provider.request(requestsBefore);
      running.advance(timeoutMs);
    }
    const response = await calling;
    const answered = await refusalOf(response);
    expect(answered).toEqual(refusal(expected));
    const { message } = answered.error;
    expect(message).not.toContain(secret);
    expect(message).not.toMatch(/openai|gpt/i);
    await expectUntouched(running.service, customer, before);
    expect((await entryOf(running.service, response.headers.get("x-request-id"))).request).toMatchObject({
      status: "failed",
      error: expected.code,
      upstream: "openai",
      attempts: { length: 1 },
      usage: {},
    });
  });
});

test.each([false, true])("a call past its deadline: 504, nothing charged, stream: %s", async (stream) => {
  const { clock, advance } = movableClock();
  const env = { CALL_TIMEOUT_MS: String(timeoutMs), PING_INTERVAL_MS: String(10 * timeoutMs) };
  const { service, provider } = await startWithProvider(env, undefined, clock);
  const customer = await service.account("1", { limits: { concurrent_requests: 1 } });
  provider.respond({ beforeHeaders: never });
  const calling = customer.post(chat, { ...asking(providerModel), stream });
  const request = await provider.request(0);
  advance(timeoutMs);
  expect(await refusalOf(await calling)).toEqual(refusal(late));
  await request.closed;
  expect(request.aborted).toBe(true);
  await expectUntouched(service, customer, "1.00");
  await eventually(async () => (await customer.post(chat, asking(localModel))).status === 200);
});

test("a stream that no worker takes is answered some seconds after its deadline: 504, nothing charged", async () => {
  const { clock, advance } = movableClock();
  const stores = await testStores();
  const env = { CALL_TIMEOUT_MS: String(timeoutMs), PING_INTERVAL_MS: String(10 * timeoutMs) };
  const service = await startService(stores, { env, clock });
  const customer = await service.account("1");
  const queue = await openQueue(stores, "chat");
  await queue.pause();
  const calling = customer.post(chat, { ...asking(localModel), stream: true });
  await eventually(async () => (await queue.getPrioritizedCount()) + (await queue.getWaitingCount()) === 1);
  advance(timeoutMs + 5_000);
  expect(await refusalOf(await calling)).toEqual(refusal(late));
  await expectUntouched(service, customer, "1.00");
});

test("the official client skips the pings of a silent stream", async () => {
  const { service, provider } = await startWithProvider({ PING_INTERVAL_MS: "100" });
  const customer = await service.account("1");
  const { opened, open } = gate();
  provider.respond({ beforeHeaders: opened });
  const stream = await customer.openai.chat.completions.create({ ...asking(providerModel), stream: true });
  open();
  expect((await Array.fromAsync(stream)).at(-1)?.choices).toEqual([]);
});

test("an upstream that cannot be reached: 503 without a hold; the local model still works", async () => {
  let fixed: number | undefined;
  const clock: Clock = { ...systemClock, now: () => fixed ?? Date.now() };
  const { service, provider } = await startWithProvider({ OPENAI_BASE_URL: "http://127.0.0.1:1" }, undefined, clock);
  const customer = await service.account("1");
  // The breaker stays open.
  fixed = Date.now();
  for (let i = 0; i < 5; i++)
    expect(await refusalOf(await customer.post(chat, asking(providerModel)))).toEqual(refusal(failed));
  // The worker knows at once, the API at its next read of the worker registry.
  expect(await refusalOf(await customer.post(chat, asking(providerModel)))).toEqual(refusal(full));
  expect(provider.requests).toHaveLength(0);
  const refused = await eventually(async () => {
    const response = await customer.post(chat, asking(providerModel));
    return (await response.clone().text()).includes("No upstream") && response;
  });
  fixed = undefined;
  expect(await refusalOf(refused)).toEqual(refusal(full));
  await service.settled();
  const refusedId = refused.headers.get("x-request-id");
  expect(JSON.stringify(await customer.ledger("usage"))).not.toContain(refusedId);
  expect(await customer.available()).toBe("1.00");
  expect((await customer.post(chat, asking(localModel))).status).toBe(200);
  const models = await fetch(`${service.baseUrl}/v1/models/${providerModel}`);
  expect(models.status).toBe(200);
});
