import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { mockError, mockUsage } from "../support/mock-openai.ts";
import { mockMp3 } from "../support/mock-openai-media.ts";
import {
  askingAs,
  cacheOf,
  chat,
  endFlights,
  following,
  idOf,
  inTurn,
  keptOf,
  keyOf,
  limits,
  on,
  readerOf,
  same,
  shared,
  storedTextsOf,
} from "../support/response-cache-setup.ts";
import { eventually, postWith } from "../support/service.ts";
import { asking, entriesOf, gate, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();

const statuses = async (responses: readonly Promise<Response>[]) =>
  Promise.all(
    responses.map(async (each) => {
      const response = await each;
      return [response.headers.get("x-xm-cache"), response.headers.get("x-xm-cache-coalesced"), await response.text()];
    }),
  );

test("a thousand equal calls at once are one call at the provider, and one charge", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const answer = gate();
  provider.respond({ beforeHeaders: answer.opened });
  const asked = Array.from({ length: 1_000 }, () => askingAs(customer));
  const answers = statuses(asked);
  await provider.request(0);
  answer.open();
  const outcomes = Map.groupBy(await answers, ([cache]) => cache);
  expect(new Set(outcomes.keys())).toEqual(new Set(["hit", "miss"]));
  expect(outcomes.get("miss")).toHaveLength(1);
  const texts = [...outcomes.values()].flat().map(([, , text]) => same(text ?? ""));
  expect(new Set(texts).size).toBe(1);
  const ids = [...outcomes.values()].flat().map(([, , text]) => idOf(text ?? ""));
  expect(new Set(ids).size).toBe(1_000);
  expect(provider.requests).toHaveLength(1);
  expect(await entriesOf(service, customer)).toHaveLength(1);
  expect(await service.settled()).toMatchObject({ ok: true, difference_usd: "0.00" });
});

test("followers of a stream get it as it comes, from its beginning, at every instance", async () => {
  const { service, provider, another } = running;
  const customer = await service.account("10", { limits });
  const there = postWith((await another()).baseUrl, customer.key);
  const limited = await keyOf(running, customer, { models: ["local/chat"], limits });
  const headers = shared;
  const later = gate();
  provider.respond({ beforeEvent: { 3: later.opened } });
  const body = { ...asking(providerModel), stream: true };
  const readers = [readerOf(await customer.post(chat, body, { headers }))];
  const begun = await readers[0]?.until("there");
  const streams = [await customer.post(chat, body, { headers }), await there(chat, body, { headers })];
  // A key that may not call the model gets nothing.
  expect((await limited.post(chat, body, { headers })).status).toBe(403);
  for (const stream of streams) {
    const reader = readerOf(stream);
    readers.push(reader);
    // What the leader had is there before the provider sends more.
    expect(same(await reader.until("there"))).toContain(same(begun ?? ""));
    expect(cacheOf(stream)).toMatchObject({ "x-xm-cache": "hit", "x-xm-cache-coalesced": "true" });
  }
  later.open();
  const texts = await Promise.all(readers.map((reader) => reader.rest()));
  expect(texts[0]).toContain("[DONE]");
  for (const text of texts) expect(same(text)).toBe(same(texts[0] ?? ""));
  expect(provider.requests).toHaveLength(1);
  expect(await entriesOf(service, customer)).toHaveLength(1);
});

test("the leader's disconnect ends nothing that others wait for, and it is charged", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const later = gate();
  provider.respond({ beforeEvent: { 3: later.opened } });
  const leader = new AbortController();
  const body = { ...asking(providerModel), stream: true };
  const first = await customer.post(chat, body, { headers: on, signal: leader.signal });
  await readerOf(first).until("there");
  const second = await customer.post(chat, body, { headers: on });
  const reader = readerOf(second);
  await reader.until("there");
  leader.abort();
  later.open();
  expect(same(await reader.rest())).toContain("[DONE]");
  const [entry, ...more] = await entriesOf(service, customer);
  expect(more).toEqual([]);
  expect(entry).toMatchObject({ request: { status: "succeeded" } });
  expect(provider.requests[0]?.aborted).toBe(false);
});

test("a leader that fails sends each follower on its own way", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const answer = gate();
  provider.respond({ ...mockError(400, "no"), beforeHeaders: answer.opened });
  const first = askingAs(customer);
  await provider.request(0);
  const others = Array.from({ length: 3 }, () => askingAs(customer));
  await following(running, customer, 3);
  answer.open();
  expect((await first).status).toBe(400);
  expect((await statuses(others)).map(([cache]) => cache)).toEqual(["miss", "miss", "miss"]);
  expect(provider.requests).toHaveLength(4);
  expect(await entriesOf(service, customer)).toHaveLength(4);
});

test("a leader whose flight has lapsed, as that of a dead one does, sends each follower on its own way", async () => {
  const { provider, service } = running;
  const customer = await service.account("10", { limits });
  const answer = gate();
  provider.respond({ beforeHeaders: answer.opened });
  const first = askingAs(customer);
  await provider.request(0);
  const others = [askingAs(customer), askingAs(customer)];
  await following(running, customer, 2);
  await endFlights(running, customer);
  expect((await statuses(others)).map(([cache]) => cache)).toEqual(["miss", "miss"]);
  answer.open();
  expect((await first).status).toBe(200);
  expect(provider.requests).toHaveLength(3);
  expect(await entriesOf(service, customer)).toHaveLength(3);
});

const speech = "/v1/audio/speech";
const saying = { model: "openai/tts-1", input: "Good day!", voice: "alloy" };
const audio = { headers: { "content-type": "audio/mpeg" }, done: false } as const;

test("speech whose caller left has gaps, and is not stored", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const [rest, caller] = [gate(), new AbortController()];
  const third = Math.floor(mockMp3.length / 3);
  const events = [mockMp3.subarray(0, third), mockMp3.subarray(third, 2 * third), mockMp3.subarray(2 * third)];
  provider.respond({ ...audio, events, beforeEvent: { 1: rest.opened } });
  const first = await customer.post(speech, saying, { headers: on, signal: caller.signal });
  await (first.body as ReadableStream<Uint8Array>).getReader().read();
  caller.abort();
  await eventually(async () => (await keptOf(running, customer, "flight")) === 0);
  rest.open();
  await entriesOf(service, customer);
  const again = await customer.post(speech, saying, { headers: on });
  expect(again.headers.get("x-xm-cache")).toBe("miss");
  expect((await again.arrayBuffer()).byteLength).toBe(mockMp3.length);
});

test("a leader who does not read delays nobody", async () => {
  const { service, provider } = running;
  const customer = await service.account("10", { limits });
  const rest = gate();
  const piece = Buffer.alloc(256 * 1024, 7);
  const events = [mockMp3, ...Array.from({ length: 40 }, () => piece)];
  provider.respond({ ...audio, events, beforeEvent: { 1: rest.opened } });
  const { hostname, port } = new URL(service.baseUrl);
  const leader = connect(Number(port), hostname);
  onTestFinished(() => void leader.destroy());
  const body = JSON.stringify(saying);
  const head = [`POST ${speech} HTTP/1.1`, `host: ${hostname}`, `authorization: Bearer ${customer.key}`];
  const more = ["x-xm-cache: true", "content-type: application/json", `content-length: ${body.length}`, "", body];
  leader.pause().write([...head, ...more].join("\r\n"));
  await provider.request(0);
  const follower = customer.post(speech, saying, { headers: on });
  await following(running, customer, 1);
  rest.open();
  const response = await follower;
  expect(response.headers.get("x-xm-cache")).toBe("hit");
  expect((await response.arrayBuffer()).byteLength).toBe(mockMp3.length + 40 * piece.length);
});

test("a follower whose stream has begun with pings is refused in it", async () => {
  const { service, provider, advance } = running;
  const customer = await service.account("10", { limits });
  const poor = await keyOf(running, customer, { limits: { ...limits, tokens_per_minute: 10 } });
  const answer = gate();
  provider.respond({ ...mockError(400, "no"), beforeHeaders: answer.opened });
  const body = { ...asking(providerModel), stream: true, max_tokens: 5_000 };
  const first = customer.post(chat, body, { headers: shared });
  await provider.request(0);
  const asked = poor.post(chat, body, { headers: shared });
  await following(running, customer, 1);
  advance(15_000);
  const second = await asked;
  expect([second.status, second.headers.get("x-xm-cache")]).toEqual([200, null]);
  answer.open();
  await (await first).text();
  expect(await second.text()).toContain('"rate_limit');
  expect(provider.requests).toHaveLength(1);
});

test("a deletion leaves nothing in object storage, nor does a call that runs meanwhile", async () => {
  const { service, provider } = running;
  const customer = await service.account("100", { limits });
  const manager = await keyOf(running, customer, { scopes: ["inference", "manage"], limits });
  const texts = () => storedTextsOf(running, customer);
  const clear = (query: string) =>
    fetch(`${service.baseUrl}/v1/cache${query}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${manager.key}` },
    });
  const large = { text: randomBytes(1_500_000).toString("base64"), usage: mockUsage() };
  const own = { "x-xm-cache-key": "report" };
  provider.respond(large, large);
  await inTurn([() => askingAs(customer), () => askingAs(customer, {}, own)]);
  await eventually(async () => (await texts()) === 2);
  await clear("?key=report");
  expect(await texts()).toBe(1);
  const answer = gate();
  provider.respond({ ...large, beforeHeaders: answer.opened });
  const pending = inTurn([() => askingAs(customer, {}, own)]);
  await provider.request(2);
  await clear("");
  answer.open();
  expect(await pending).toEqual(["miss"]);
  await eventually(async () => (await texts()) === 0);
  expect(await inTurn([() => askingAs(customer, {}, own)])).toEqual(["miss"]);
});

test("a call that runs during a deletion leaves no entry either", async () => {
  const { service, provider } = running;
  const customer = await service.account("100", { limits });
  const manager = await keyOf(running, customer, { scopes: ["inference", "manage"], limits });
  const answer = gate();
  provider.respond({ beforeHeaders: answer.opened });
  const pending = inTurn([() => askingAs(customer)]);
  await provider.request(0);
  expect(await keptOf(running, customer, "flight")).toBe(1);
  await fetch(`${service.baseUrl}/v1/cache`, { method: "DELETE", headers: { authorization: `Bearer ${manager.key}` } });
  answer.open();
  expect(await pending).toEqual(["miss"]);
  // An entry would be stored with the end of the flight.
  await eventually(async () => (await keptOf(running, customer, "flight")) === 0);
  expect(await keptOf(running, customer, "entry")).toBe(0);
});
