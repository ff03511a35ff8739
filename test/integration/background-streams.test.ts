import { randomBytes, randomUUID } from "node:crypto";
import { createParser } from "eventsource-parser";
import { describe, expect, test } from "vitest";
import { startApi } from "../../api/start.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createMetrics } from "../../shared/platform/observability/metrics.ts";
import { createEventLogs } from "../../shared/stored-responses/index.ts";
import {
  type Event,
  ended,
  errorOf,
  held,
  idIn,
  idsOf,
  native,
  numbers,
  path,
  read,
  requestOf,
} from "../support/background-setup.ts";
import { formatsService, local } from "../support/formats-service.ts";
import { connect, log } from "../support/jobs-setup.ts";
import { movableClock } from "../support/movable-clock.ts";
import { type Customer, environment, eventually, startAnotherApi } from "../support/service.ts";
import { startWithProvider } from "../support/service-setup.ts";

const running = formatsService({ NATIVE_FORMATS_ANY_MODEL: "true" });
const get = (customer: Customer, rest: string, method?: string) => requestOf(running.service, customer, rest, method);

test("the query of a stream is checked, also beyond the integers of JavaScript", async () => {
  const customer = await running.service.account("1");
  const { model } = local;
  const stream = await customer.openai.responses.create({ model, input: "Hello", background: true, stream: true });
  const [id = ""] = idsOf(await Array.fromAsync(stream));
  const rows: readonly (readonly [string, string])[] = [
    ["stream=yes", "stream"],
    ["stream=true&starting_after=-1", "starting_after"],
    ["stream=true&starting_after=1.5", "starting_after"],
    ["stream=true&starting_after=9223372036854775808", "starting_after"],
    ["stream=true&starting_after=1&starting_after=2", "starting_after"],
    ["stream=true&include_obfuscation=1", "include_obfuscation"],
  ];
  for (const [query, param] of rows)
    expect(await errorOf(get(customer, `${id}?${query}`))).toEqual([400, "invalid_value", param]);
  for (const number of ["9007199254740993", "9223372036854775807"])
    expect(await (await get(customer, `${id}?stream=true&starting_after=${number}`)).text()).toBe("");
  expect((await read(customer.openai, id, 0)).length).toBeGreaterThan(3);
  expect((await get(customer, `${id}?stream=true&include_obfuscation=false`)).status).toBe(200);
});

test("a creator who never reads slows nothing down, and others read the whole stream", async () => {
  const customer = await running.service.account("10");
  const model = native.model;
  running.provider.respond({ text: "word ".repeat(6_000) });
  const unread = await customer.post(path, { model, input: "Hello", background: true, stream: true });
  const id = idIn(unread);
  const response = await ended(customer.openai, id);
  expect(response.output_text).toHaveLength(30_000);
  const events = await read(customer.openai, id);
  expect([numbers(events).at(-1), events.length]).toEqual([events.length - 1, events.length]);
  let unreadEvents = 0;
  const parser = createParser({ onEvent: () => unreadEvents++ });
  parser.feed(await unread.text());
  expect(unreadEvents).toBe(events.length);
});

test("events over 8 MB end the stream and are not kept; the response is, in object storage, until it is deleted", async () => {
  const customer = await running.service.account("10");
  const said = randomBytes(1_600_000).toString("base64");
  running.provider.respond({ text: said });
  const created = await customer.post(path, { model: native.model, input: "Hello", background: true, stream: true });
  const id = idIn(created);
  await expect(created.text()).rejects.toThrow("terminated");
  const response = await ended(customer.openai, id);
  expect([response.status, response.output_text === said]).toEqual(["completed", true]);
  for (const rest of ["", "&starting_after=3"])
    expect(await errorOf(get(customer, `${id}?stream=true${rest}`))).toEqual([409, "stream_not_resumable", null]);
  expect((await get(customer, id, "DELETE")).status).toBe(200);
  expect((await get(customer, id)).status).toBe(404);
  await running.service.settled();
  expect(await customer.ledger("usage")).toHaveLength(1);
});

test("Redis loses the events of a running response: no reader gets a gap, and the whole stream can be read at its end", async () => {
  const customer = await running.service.account("1");
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  running.provider.respond({ beforeEvent: { 6: gates[0].promise, 8: gates[1].promise } });
  const asked = { model: native.model, input: "Hello there", background: true, stream: true } as const;
  const stream = (await customer.openai.responses.create(asked))[Symbol.asyncIterator]();
  const seen: Event[] = [];
  const next = async () => {
    const { value, done } = await stream.next();
    if (!done) seen.push(value as Event);
    return !done;
  };
  while (seen.at(-1)?.type !== "response.output_text.delta") await next();
  const [id = ""] = idsOf(seen);
  const redis = await connect(running.stores, "waiting");
  expect(await redis.del(`events:{${customer.id}}:${id.replace("resp_", "req_")}`)).toBe(1);
  const late = await get(customer, `${id}?stream=true&starting_after=2`);
  expect(late.status).toBe(200);
  gates[0].resolve();
  await expect(late.text()).rejects.toThrow("terminated");
  gates[1].resolve();
  // The creator had every event before the loss.
  while (await next());
  expect(numbers(seen)).toEqual(seen.map((_, n) => n));
  await ended(customer.openai, id);
  expect(await read(customer.openai, id, 2)).toEqual(seen.slice(3));
  await running.service.settled();
});

test("an instance that drains disconnects its readers, who read on from another one", async () => {
  const customer = await running.service.account("1");
  const gate = held(6);
  running.provider.respond(gate.answer);
  const created = await customer.post(path, { model: native.model, input: "Hello", background: true, stream: true });
  const id = idIn(created);
  const clock = systemClock;
  const draining = await startApi({
    config: loadConfig(environment(running.stores, { DRAIN_GRACE: "900" })),
    metrics: createMetrics("api", clock),
    clock,
    log,
  });
  const reader = await requestOf({ baseUrl: draining.publicUrl }, customer, `${id}?stream=true`);
  expect(reader.status).toBe(200);
  const drained = (async () => {
    for (const step of draining.shutdown) await step.run();
  })();
  await expect(reader.text()).rejects.toThrow("terminated");
  await drained;
  gate.open();
  expect(await created.text()).toContain("event: response.completed");
  expect((await read(customer.openai, id, 2)).at(-1)?.type).toBe("response.completed");
  await running.service.settled();
});

test("an account has at most 500 readers at an instance, all of whom get the rest, and reads are counted", async () => {
  // A ping would be in the texts of those readers alone who had waited for so long.
  const env = { RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "55", PING_INTERVAL_MS: "600000" };
  const { service, provider, stores } = await startWithProvider(env);
  const customer = await service.account("1");
  const gate = held(6);
  provider.respond(gate.answer);
  const asked = { model: native.model, input: "Hello there", background: true, stream: true };
  const created = await customer.post(path, asked);
  const id = idIn(created);
  const open = () =>
    fetch(`${service.baseUrl}${path}/${id}?stream=true`, { headers: { authorization: `Bearer ${customer.key}` } });
  const readers = await Promise.all(Array.from({ length: 499 }, open));
  expect(new Set(readers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(await errorOf(open())).toEqual([429, "rate_limit_exceeded", null]);
  // Those who wait for a job count with them.
  const job = `${service.baseUrl}/v1/jobs/${id.replace("resp_", "job_")}`;
  const wait = () => fetch(`${job}?wait=60`, { headers: { authorization: `Bearer ${customer.key}` } });
  expect(await errorOf(wait())).toEqual([429, "rate_limit_exceeded", null]);
  expect(await errorOf(customer.post(path, asked))).toEqual([429, "rate_limit_exceeded", null]);
  gate.open();
  const texts = await Promise.all([created, ...readers].map((reader) => reader.text()));
  expect(texts[0]).toContain("event: response.completed");
  expect(new Set(texts).size).toBe(1);
  const other = await service.account("1");
  // Ten requests a minute: fewer than are sent, however long they take.
  const strict = await startAnotherApi(stores, { env: { RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "1" } });
  const polls = Array.from({ length: 100 }, () =>
    fetch(`${strict.baseUrl}${path}/${id}`, { headers: { authorization: `Bearer ${other.key}` } }),
  );
  const statuses = new Set((await Promise.all(polls)).map(({ status }) => status));
  expect(statuses).toEqual(new Set([404, 429]));
  await provider.close();
});

describe("the log of events", () => {
  const event = (number: number, bytes: number) => `event: x\ndata: {"n":${number},"x":"${"x".repeat(bytes)}"}\n\n`;

  async function openLogs(limits: { logBytes: number; accountBytes: number }) {
    const { clock, advance } = movableClock();
    const redis = await connect(running.stores, "waiting");
    const logs = createEventLogs({ redis, clock, log, limits });
    const account = `acct_${randomUUID()}`;
    const write = async (requestId: string, ...sizes: readonly number[]) => {
      const writer = logs.open({ account, requestId }, clock.now() + 1_000);
      for (const [n, bytes] of sizes.entries()) {
        writer.append(event(2 + n, bytes));
        advance(25);
      }
      await writer.close();
      return writer;
    };
    return {
      logs,
      account,
      advance,
      write,
      read: (id: string, after = 1) => logs.read({ account, requestId: id }, after, 16),
    };
  }

  test("is read after each number, ends once, and takes nothing from a second writer", async () => {
    const { read, write } = await openLogs({ logBytes: 10_000, accountBytes: 10_000 });
    const writer = await write("req_1", 10, 10, 10);
    const entries = await read("req_1");
    expect(entries.at(-1)).toEqual({ kind: "end", number: 5 });
    const texts = entries.flatMap((entry) => (entry.kind === "events" ? [entry] : []));
    expect(texts.map(({ text }) => text).join("")).toBe([2, 3, 4].map((n) => event(n, 10)).join(""));
    expect([texts[0]?.first, texts.at(-1)?.last, await writer.text()]).toEqual([
      2,
      4,
      texts.map(({ text }) => text).join(""),
    ]);
    expect(await read("req_1", 4)).toEqual([{ kind: "end", number: 5 }]);
    expect(await read("req_1", 5)).toEqual([]);
    await write("req_1", 20);
    expect(await read("req_1")).toEqual(entries);
  });

  test("is given up over its own limit and over the account's, which ended logs leave after ten minutes", async () => {
    const { advance, read, write } = await openLogs({ logBytes: 1_000, accountBytes: 1_500 });
    const large = await write("req_1", 400, 400, 400, 10);
    expect([await read("req_1"), await large.text()]).toEqual([[{ kind: "over" }], undefined]);
    await write("req_2", 800);
    expect(await read("req_2")).toMatchObject([{ kind: "events" }, { kind: "end", number: 3 }]);
    await write("req_3", 800);
    expect(await read("req_3")).toEqual([{ kind: "over" }]);
    advance(600_000);
    await write("req_4", 800);
    expect(await read("req_4")).toMatchObject([{ kind: "events" }, { kind: "end", number: 3 }]);
  });

  test("that only Redis knows is ended after its last event, and one that is missing stays so", async () => {
    const { account, logs, read } = await openLogs({ logBytes: 1_000, accountBytes: 1_000 });
    const name = { account, requestId: "req_1" };
    await logs.close(name);
    expect(await read("req_1")).toEqual([]);
    logs.open(name, 0).append(event(2, 10));
    await eventually(async () => (await read("req_1")).length > 0);
    await logs.close(name);
    await logs.close(name, 7);
    expect(await read("req_1", 2)).toEqual([{ kind: "end", number: 3 }]);
  });
});
