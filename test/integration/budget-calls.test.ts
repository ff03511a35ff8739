import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { createQueues, createReplies } from "../../shared/jobs/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { type HandlerDeps, handlers } from "../../workers/handlers/index.ts";
import { keyOf } from "../support/account-caller.ts";
import { openIdempotency } from "../support/idempotency-setup.ts";
import { connect, defaultApiTimeoutMs, log } from "../support/jobs-setup.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { createMovableClock, minuteMs } from "../support/money-setup.ts";
import { examplesOf, openCaller, valuesOf } from "../support/openapi-caller.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, eventually, postWith, startService } from "../support/service.ts";
import { asking, gate, localModel, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });
const chat = "/v1/chat/completions";

const capped = (model: string, tokens = 1_000) => ({ ...asking(model), max_tokens: tokens });

/** The maximum cost of such a call, as reported by the refusal for a key that may spend almost nothing. */
async function boundOf(service: Client, { id }: Pick<Customer, "id">, body: object): Promise<number> {
  const { post } = await keyOf(service, id, { budget: { limit_usd: "0.000000001", period: "day" } });
  const refused = (await (await post(chat, body)).json()) as { error: { message: string } };
  return Number(/this call can cost ([\d.]+) USD/.exec(refused.error.message)?.[1]);
}

test("Redis is emptied under calls of a key: they end, the budget is not exceeded, and scheduled jobs are back", async () => {
  const provider = await startMockOpenai();
  const stores = await testStores({ oneServer: true });
  const env = { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: provider.url };
  const [a, b] = [await startService(stores, { env }), await startService(stores, { env })];
  const account = await a.account("100");
  const limit = (10.5 * (await boundOf(a, account, capped(providerModel)))).toFixed(9);
  const { key } = await keyOf(a, account.id, { budget: { limit_usd: limit, period: "day" } });
  const { opened, open } = gate();
  provider.always({ beforeHeaders: opened });
  const call = async (at: number) => {
    const response = await postWith((at % 2 ? b : a).baseUrl, key)(chat, capped(providerModel));
    await response.text();
    return response.status;
  };
  const calls = Array.from({ length: 10 }, (_, at) => call(at));
  await eventually(() => provider.requests.length === 10);
  expect(await call(0)).toBe(402);

  const redis = new Redis(stores.REDIS_URL);
  onTestFinished(() => redis.disconnect());
  await redis.flushdb();
  // No connection breaks: the instances detect the loss themselves, before the provider answers.
  expect(new Set(await Promise.all(calls))).toEqual(new Set([503]));
  open();
  await eventually(async () => (await call(1)) === 200);
  await a.settled();
  const spent = (await account.ledger()).reduce((sum, entry) => sum + Math.min(0, Number(entry["amount_usd"])), 0);
  expect(-spent).toBeLessThan(Number(limit));
  await eventually(async () => (await redis.zcard("{maintenance}:maintenance:repeat")) > 0);
});

test("every paid route refuses a call that the budget does not cover, in the shape of its format", async () => {
  const { service } = running;
  const { document, post: send, isForm } = await openCaller(service);
  const account = await service.account("100");
  const { key } = await keyOf(service, account.id, { budget: { limit_usd: "0.000000001", period: "month" } });
  const free = new Set(["/v1/responses/input_tokens", "/v1/moderations", "/v1/messages/count_tokens"]);
  const operations = document.operations.filter(
    ({ method, path, operation }) =>
      method === "POST" &&
      "402" in operation.responses &&
      !free.has(path) &&
      !path.endsWith(":countTokens") &&
      !operation.tags.includes("Keys") &&
      // Its lines pause at the budget.
      !path.endsWith("/batches"),
  );
  expect(operations.length).toBeGreaterThan(15);
  for (const described of operations) {
    const { path } = described;
    const [[, body] = ["", {}]] = isForm(described) ? [] : examplesOf(described);
    const response = await send(described, { key }, { body });
    const { type, values } = await valuesOf(response);
    expect([path, response.status, response.headers.get("x-should-retry")]).toEqual([path, 402, "false"]);
    expect(response.headers.get("retry-after")).toBeNull();
    expect([path, document.faultsOf(described, { status: 402, type, value: values[0] })]).toEqual([path, []]);
    const text = JSON.stringify(values[0]);
    expect(text).toMatch(/The budget of this API key is 0\.000000001 USD a month.*It resets at 20\d\d-/);
    const hasCode = !path.startsWith("/v1/messages") && !path.startsWith("/v1beta");
    expect([path, text.includes("budget_exceeded")]).toEqual([path, hasCode]);
  }
  await service.settled();
  expect(await account.available()).toBe("100.00");
});

test("a stream whose caller disconnects counts what it cost, and the rest comes back", async () => {
  const { service } = running;
  const account = await service.account("100");
  const { post, ask } = await keyOf(service, account.id, { budget: { limit_usd: "1", period: "week" } });
  const ending = new AbortController();
  const long = asking(localModel, `slow:50 ${"word ".repeat(200)}`);
  const response = await post(chat, { ...long, stream: true }, { signal: ending.signal });
  const reader = response.body?.getReader();
  await reader?.read();
  ending.abort();
  await service.settled();
  const [entry] = await account.ledger("usage");
  const cost = -Number(entry?.["amount_usd"]);
  expect(cost).toBeGreaterThan(0);
  await eventually(async () => Number((await ask("GET", "/key")).body.budget?.spent_usd) === cost);
});

test("a call without an output cap is shortened to what the budget covers", async () => {
  const { service, provider } = running;
  const account = await service.account("100");
  const bound = await boundOf(service, account, capped(providerModel, 500));
  const { post } = await keyOf(service, account.id, { budget: { limit_usd: bound.toFixed(9), period: "day" } });
  expect((await post(chat, asking(providerModel))).status).toBe(200);
  // The cap's own field counts as input as well.
  const cap = Number(provider.requests.at(-1)?.body["max_completion_tokens"]);
  expect([cap >= 500, cap < 520]).toEqual([true, true]);
});

test("a call refused after its reservation, and an upload, leave their cost in the budget", async () => {
  const { service } = running;
  const account = await service.account("100");
  const fields = { budget: { limit_usd: "1", period: "total" }, limits: { tokens_per_minute: 10 } };
  const { post, ask } = await keyOf(service, account.id, fields);
  const spent = async () => (await ask("GET", "/key")).body.budget;
  for (let tries = 0; tries < 3; tries++) expect((await post(chat, capped(localModel))).status).toBe(429);
  expect(await spent()).toEqual({ limit_usd: "1.00", period: "total", spent_usd: "0.00", resets_at: null });

  const { recording } = await openCaller(service);
  const sent = await post("/v1/uploads", await recording.text(), { headers: { "content-type": "audio/wav" } });
  expect(sent.status).toBe(200);
  expect(await spent()).toMatchObject({ spent_usd: sent.headers.get("x-xm-cost-usd") });
  await service.settled();
});

test("a call whose hold has expired is not ended by the sweeper while its worker runs it", async () => {
  const provider = await startMockOpenai();
  const stores = await testStores();
  const service = await startService(stores, { env: { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: provider.url } });
  const account = await service.account("100");
  const { post } = await keyOf(service, account.id, { budget: { limit_usd: "1", period: "day" } });
  const { opened, open } = gate();
  provider.always({ beforeHeaders: opened });
  const answering = post(chat, capped(providerModel));
  await eventually(() => provider.requests.length === 1);

  const clock = createMovableClock();
  const { money, files } = await openIdempotency(stores, clock);
  const redis = await connect(stores, "waiting");
  const queues = createQueues({ redis, log });
  onTestFinished(() => queues.close());
  const deps = {
    money,
    files,
    queues,
    replies: createReplies({ redis, apiTimeoutMs: defaultApiTimeoutMs, clock: systemClock }),
    log,
  };
  clock.later(30 * minuteMs);
  const [expired] = await money.listHolds({ limit: 1 });
  expect(expired?.expiresAt.getTime()).toBeLessThan(clock.now());
  await handlers["sweep-holds"](deps as unknown as HandlerDeps, { v: 1 }, { count: 1, isShared: false });
  open();
  const response = await answering;
  expect(response.status).toBe(200);
  await service.settled();
  expect(await account.ledger("usage")).toMatchObject([{ request: { status: "succeeded" } }]);
});
