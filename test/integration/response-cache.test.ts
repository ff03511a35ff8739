import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { mockError, mockUsage } from "../support/mock-openai.ts";
import {
  askingAs,
  cacheOf,
  chat,
  idOf,
  inTurn,
  keyOf,
  limits,
  on,
  same,
  shared,
  storedTextsOf,
} from "../support/response-cache-setup.ts";
import { type Customer, eventually } from "../support/service.ts";
import { asking, entriesOf, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "on" });

const messages = [{ role: "user", content: "Hello there" }];
/** One call for each route and framing whose answers are cached. */
const calls: readonly (readonly [name: string, path: string, body: object])[] = [
  ["chat", chat, asking(providerModel)],
  ["chat, streamed", chat, { ...asking(providerModel), stream: true }],
  ["completions", "/v1/completions", { model: providerModel, prompt: "Hello there" }],
  ["completions, streamed", "/v1/completions", { model: providerModel, prompt: "Hello there", stream: true }],
  ["messages", "/v1/messages", { model: providerModel, max_tokens: 50, messages }],
  ["messages, streamed", "/v1/messages", { model: providerModel, max_tokens: 50, messages, stream: true }],
  ["responses", "/v1/responses", { model: providerModel, input: "Hello there", store: false }],
  ["responses, streamed", "/v1/responses", { model: providerModel, input: "Hello there", store: false, stream: true }],
  ["gemini", `/v1beta/models/${providerModel}:generateContent`, { contents: [{ parts: [{ text: "Hello there" }] }] }],
  [
    "gemini, as events",
    `/v1beta/models/${providerModel}:streamGenerateContent?alt=sse`,
    { contents: [{ parts: [{ text: "Hello there" }] }] },
  ],
  [
    "gemini, as an array",
    `/v1beta/models/${providerModel}:streamGenerateContent`,
    { contents: [{ parts: [{ text: "Hello there" }] }] },
  ],
  ["embeddings", "/v1/embeddings", { model: "openai/text-embedding-3-small", input: "Hello there" }],
  ["moderations", "/v1/moderations", { model: "openai/omni-moderation-latest", input: "Hello there" }],
  ["rerank", "/v1/rerank", { model: "local/rerank", query: "Hello", documents: ["Hello there", "Goodbye"] }],
  ["images", "/v1/images/generations", { model: "local/image", prompt: "A sunrise" }],
  ["speech", "/v1/audio/speech", { model: "local/speech", input: "Hello there", voice: "alloy" }],
];

test.each(calls)("an equal call has the answer of the first one, and costs nothing: %s", async (_, path, body) => {
  const { service } = running;
  const customer = await service.account("10", { limits });
  const first = await customer.post(path, body, { headers: on });
  const firstText = await first.text();
  expect({ status: first.status, text: firstText, ...cacheOf(first) }).toMatchObject({
    status: 200,
    "x-xm-cache": "miss",
  });
  const before = running.provider.requests.length;
  const second = await customer.post(path, body, { headers: on });
  const secondText = await second.text();
  const [age = 0, ttl = 0] = ["age", "ttl"].map((name) => Number(second.headers.get(`x-xm-cache-${name}`)));
  expect(age + ttl).toBe(300);
  expect(running.provider.requests).toHaveLength(before);
  expect(cacheOf(second)).toMatchObject({
    "x-xm-cache": "hit",
    "x-xm-cache-source": first.headers.get("x-request-id"),
    "x-xm-cache-age": expect.stringMatching(/^\d+$/),
    "x-xm-cache-ttl": expect.stringMatching(/^\d+$/),
  });
  expect(same(secondText)).toBe(same(firstText));
  expect(second.headers.get("content-type")).toBe(first.headers.get("content-type"));
  expect(idOf(secondText) === idOf(firstText)).toBe(idOf(firstText) === undefined);
  expect(secondText.match(/"cost_usd"/g)).toEqual(firstText.match(/"cost_usd"/g));
  expect(secondText).not.toMatch(/"cost_usd":"(?!0\.00","cached_response":true)/);
  expect(await entriesOf(service, customer)).toHaveLength(path === "/v1/moderations" ? 0 : 1);
});

test("entries are those of a key, or of the keys of an account that ask for it", async () => {
  const { service } = running;
  const one = await service.account("10", { limits });
  const other = await service.account("10", { limits });
  const second = await keyOf(running, one, { limits });
  const found = await inTurn([
    () => askingAs(one),
    () => askingAs(second),
    () => askingAs(other),
    () => askingAs(one, {}, shared),
    () => askingAs(second, {}, shared),
    () => askingAs(other, {}, shared),
    () => askingAs(one),
  ]);
  expect(found).toEqual(["miss", "miss", "miss", "miss", "hit", "miss", "hit"]);
});

test("an entry lives as long as its request says, and can be replaced", async () => {
  const { service, advance } = running;
  const customer = await service.account("10", { limits });
  const body = { messages };
  const ask = (headers: Record<string, string> = {}) => askingAs(customer, body, headers);
  expect(await inTurn([() => ask({ "x-xm-cache-ttl": "60" }), ask])).toEqual(["miss", "hit"]);
  running.provider.respond({ text: "Another answer" });
  expect(await inTurn([() => ask({ "x-xm-cache": "refresh", "x-xm-cache-ttl": "60" })])).toEqual(["refresh"]);
  const replaced = await eventually(async () => {
    const text = await (await ask()).text();
    return text.includes("Another answer") && text;
  });
  expect(replaced).toContain("Another answer");
  expect(
    await inTurn([() => ask({ "x-xm-cache": "false" }), () => customer.post(chat, asking(providerModel))]),
  ).toEqual([null, null]);
  advance(61_000);
  expect(await inTurn([ask])).toEqual(["miss"]);
});

test("a key of its own stands for the body, and entries are deleted at once", async () => {
  const { service } = running;
  const customer = await service.account("10", { limits });
  const manager = await keyOf(running, customer, { scopes: ["inference", "manage"], limits });
  const own = { "x-xm-cache-key": "report" };
  const asks = [
    () => askingAs(customer, { seed: 1 }, own),
    () => askingAs(customer, { seed: 2 }, own),
    () => askingAs(customer, { seed: 2, stream: true }, own),
    () => askingAs(customer, { seed: 3 }),
  ];
  expect(await inTurn(asks)).toEqual(["miss", "hit", "miss", "miss"]);
  expect(await inTurn(asks)).toEqual(["hit", "hit", "hit", "hit"]);
  const speech = { model: "local/speech", input: "Hello there", voice: "alloy" };
  const speak = (stream_format: string) => () =>
    customer.post("/v1/audio/speech", { ...speech, stream_format }, { headers: { ...on, ...own } });
  expect(await inTurn(["sse", "audio", "sse", "audio"].map(speak))).toEqual(["miss", "miss", "hit", "hit"]);
  const clear = (query: string) =>
    fetch(`${service.baseUrl}/v1/cache${query}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${manager.key}` },
    });
  expect((await clear("?key=report")).status).toBe(200);
  expect(await inTurn(asks)).toEqual(["miss", "hit", "miss", "hit"]);
  expect((await clear("")).status).toBe(200);
  expect(await inTurn(asks)).toEqual(["miss", "hit", "miss", "miss"]);
});

test("a key may have the cache on, or locked off", async () => {
  const { service } = running;
  const customer = await service.account("10", { limits });
  const usual = await keyOf(running, customer, { limits, cache: { enabled: true, ttl_seconds: 60 } });
  const locked = await keyOf(running, customer, { limits, cache: { enabled: false, locked: true } });
  const plain = (key: Customer) => () => key.post(chat, asking(providerModel));
  const off = () => askingAs(usual, {}, { "x-xm-cache": "false" });
  expect(await inTurn([plain(usual), plain(usual), off, () => askingAs(locked)])).toEqual(["miss", "hit", null, null]);
});

test("what must not be sent again is not stored", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const filtered = {
    choices: [{ index: 0, message: { role: "assistant", content: "It is" }, finish_reason: "content_filter" }],
    usage: mockUsage(),
  };
  const usage = { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 };
  provider.respond(
    { body: { id: "chatcmpl-1234", object: "chat.completion", created: 1, model: "m", ...filtered } },
    { text: "", usage },
    { cutAfter: 2 },
    mockError(500, "no"),
  );
  const ask = () => askingAs(customer);
  const stream = () => askingAs(customer, { stream: true });
  expect((await inTurn([ask, ask])).every((cache) => cache === "miss")).toBe(true);
  expect(await inTurn([stream, stream])).toEqual(["miss", "miss"]);
});

test("calls that the cache does not serve run as without it", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const responses = (body: object) =>
    customer.post("/v1/responses", { model: providerModel, input: "Hello there", ...body }, { headers: on });
  const { id } = (await (await responses({})).json()) as { id: string };
  const asks = [
    () => responses({}),
    () => responses({ store: false, previous_response_id: id }),
    () => responses({ store: true }),
    () => customer.post("/v1/media/generations", { model: "local/video", input: { prompt: "A" } }, { headers: on }),
    () => customer.post(chat, asking(providerModel), { headers: { ...on, prefer: "respond-async" } }),
  ];
  const found = await inTurn([...asks, ...asks]);
  expect(new Set(found)).toEqual(new Set(["bypass"]));
  expect(provider.requests.length).toBeGreaterThanOrEqual(4);
  const invalid = await askingAs(customer, {}, { "x-xm-cache-ttl": "soon" });
  expect([invalid.status, ((await invalid.json()) as { error: { param: string } }).error.param]).toEqual([
    400,
    "x-xm-cache-ttl",
  ]);
});

test("a large answer is in object storage, and goes with the entries of its account", async () => {
  const { service, provider } = running;
  const customer = await service.account("100", { limits });
  const manager = await keyOf(running, customer, { scopes: ["inference", "manage"], limits });
  // Random, so that it stays large when it is compressed.
  const text = randomBytes(1_500_000).toString("base64");
  provider.respond({ text, usage: mockUsage() });
  const objects = () => storedTextsOf(running, customer);
  const first = await (await askingAs(customer)).text();
  const hit = await askingAs(customer);
  expect(hit.headers.get("x-xm-cache")).toBe("hit");
  expect(same(await hit.text())).toBe(same(first));
  expect(await objects()).toBe(1);
  await fetch(`${service.baseUrl}/v1/cache`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${manager.key}` },
  });
  expect(await objects()).toBe(0);
});

test("an answer that the balance made shorter is not for others; a key's rights come before a hit", async () => {
  const { service } = running;
  const poor = await service.account("0.001", { limits });
  const found = await inTurn([() => askingAs(poor), () => askingAs(poor)]);
  expect(found).toEqual(["miss", "miss"]);

  const customer = await service.account("10", { limits });
  const narrow = await keyOf(running, customer, { limits, models: ["local/*"] });
  expect(await inTurn([() => askingAs(customer, {}, shared)])).toEqual(["miss"]);
  expect((await askingAs(narrow, {}, shared)).status).toBe(403);
});

test("with an Idempotency-Key, a call is answered from the cache or stored for both", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const under = (key: string) => askingAs(customer, {}, { "idempotency-key": key });
  const [first, again, other] = [await under("one"), await under("one"), await under("two")];
  expect([first, again, other].map(cacheOf)).toMatchObject([
    { "x-xm-cache": "miss" },
    {},
    { "x-xm-cache": "hit", "x-xm-cost-usd": "0.00" },
  ]);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(provider.requests).toHaveLength(1);
  expect(await entriesOf(service, customer)).toHaveLength(1);
});
