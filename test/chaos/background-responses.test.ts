import { createParser } from "eventsource-parser";
import { expect, test } from "vitest";
import type { Server } from "../../infra/embedded/index.ts";
import {
  availableUsd,
  balanceAfter,
  callsOf,
  feed,
  never,
  outcomeOf,
  restartEmpty,
  startProcesses,
  startProvider,
  startTwoApis,
} from "../support/chaos-setup.ts";
import { mockText } from "../support/mock-openai.ts";
import { ownServers, testStores } from "../support/servers.ts";
import {
  type Client,
  type Customer,
  eventually,
  shortApiTimeout,
  shortTimeouts,
  spawnWorker,
} from "../support/service.ts";

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly delta?: string;
  readonly response?: { readonly id: string; readonly status: string; readonly error: unknown };
}

interface Reading {
  readonly id: string;
  readonly events: readonly Event[];
  sees(type: string): Promise<unknown>;
  /** Resolves when the connection has ended, in order or not. */
  readonly ended: Promise<"closed" | "broken">;
}

const anyModel = { NATIVE_FORMATS_ANY_MODEL: "true" };
const path = "/v1/responses";
const delta = "response.output_text.delta";
const asked = { model: "mock/chat", input: "Hello there", max_output_tokens: 100, background: true, stream: true };

function follow(id: string, response: Response): Reading {
  const events: Event[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(JSON.parse(data) as Event) });
  return {
    id,
    events,
    sees: (type) => eventually(() => events.some((event) => event.type === type)),
    ended: feed(parser, response),
  };
}

async function create(customer: Customer): Promise<Reading> {
  const answer = await customer.post(path, asked);
  expect(answer.status).toBe(200);
  return follow((answer.headers.get("location") ?? "").replace(/^.*\//, ""), answer);
}

const get = (client: Client, { key }: Customer, rest: string) =>
  fetch(`${client.baseUrl}${path}/${rest}`, { headers: { authorization: `Bearer ${key}` } });

const resume = async (client: Client, customer: Customer, { id, events }: Reading): Promise<Reading> =>
  follow(id, await get(client, customer, `${id}?stream=true&starting_after=${events.at(-1)?.sequence_number}`));

const ended = (client: Client, customer: Customer, id: string) =>
  eventually(async () => {
    const answer = await get(client, customer, id);
    const response = (await answer.json()) as { status?: string; error: unknown };
    return answer.ok && !["queued", "in_progress"].includes(response.status ?? "") ? response : undefined;
  });

/** Checks that the parts of a stream are one stream, without a gap and without an event twice. */
function expectOne(parts: readonly Reading[], last: string, text: string = expect.any(String)): void {
  const events = parts.flatMap((part) => part.events);
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, n) => n));
  expect(events.at(-1)?.type).toBe(last);
  expect(events.map((event) => event.delta ?? "").join("")).toEqual(text);
}

test("an API killed while it streams: another one goes on where the reader was, and the call is charged once", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { api, client } = await startTwoApis(stores, { ...env, ...anyModel });
  const customer = await api.client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } });
  const first = await create(customer);
  await first.sees(delta);
  api.kill("SIGKILL");
  expect(await first.ended).toBe("broken");
  const second = await resume(client, customer, first);
  gate.resolve();
  expect(await second.ended).toBe("closed");
  expectOne([first, second], "response.completed", mockText);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
  expect(provider.requests).toHaveLength(1);
});

test("a worker killed while it streams: the stream ends with the failure, its number follows, and nothing is charged", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortTimeouts);
  const { worker, client } = await startProcesses(stores, { ...env, ...anyModel });
  const customer = await client.account("1.00");
  provider.respond({ beforeEvent: { 4: never } });
  const reading = await create(customer);
  await reading.sees(delta);
  worker.kill("SIGKILL");
  await spawnWorker(stores, { ...env, ...anyModel });
  expect(await reading.ended).toBe("closed");
  expectOne([reading], "response.failed");
  const again = await resume(client, customer, { ...reading, events: reading.events.slice(0, 3) });
  expect(await again.ended).toBe("closed");
  expect(again.events).toEqual(reading.events.slice(3));
  expect(await ended(client, customer, reading.id)).toMatchObject({
    status: "failed",
    error: { code: "server_error" },
  });
  await client.settled();
  expect(await availableUsd(client, customer)).toBe("1.00");
  expect(provider.requests).toHaveLength(1);
});

const isLost = async (client: Client, customer: Customer, { id }: Reading) => {
  const { status, code } = await outcomeOf(get(client, customer, `${id}?stream=true&starting_after=2`));
  return status === 409 && code === "stream_not_resumable";
};

test("Redis comes back empty: a stream that has ended is read from the stored object, one that ran is refused", async () => {
  const { stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, { ...env, ...anyModel });
  const customer = await client.account("1.00");
  const whole = await create(customer);
  expect(await whole.ended).toBe("closed");
  provider.respond({ beforeEvent: { 4: never } });
  const running = await create(customer);
  await running.sees(delta);
  await restartEmpty(stores);
  // The queue has lost the job, which maintenance ends.
  expect(await ended(client, customer, running.id)).toMatchObject({ status: "failed" });
  const rest = await resume(client, customer, { ...whole, events: whole.events.slice(0, 3) });
  expect(await rest.ended).toBe("closed");
  expect(rest.events).toEqual(whole.events.slice(3));
  expect(await running.ended).toBe("broken");
  expect(await isLost(client, customer, running)).toBe(true);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
});

test.each([
  ["stopped and started", (mongo: Server) => mongo.stop(), (mongo: Server) => mongo.start()],
  ["frozen and resumed", (mongo: Server) => mongo.kill("SIGSTOP"), (mongo: Server) => mongo.kill("SIGCONT")],
])("MongoDB %s: readers get the events, then the end once it is captured, and one charge", async (_, halt, goOn) => {
  const { mongo, stores } = await ownServers({ mongo: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client } = await startProcesses(stores, { ...env, ...anyModel });
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } });
  const reading = await create(customer);
  await reading.sees(delta);
  await halt(mongo);
  gate.resolve();
  await reading.sees("response.output_item.done");
  expect((await get(client, customer, reading.id)).status).toBe(503);
  expect(reading.events.at(-1)?.type).toBe("response.output_item.done");
  await goOn(mongo);
  expect(await reading.ended).toBe("closed");
  expectOne([reading], "response.completed", mockText);
  await client.settled();
  expect(await callsOf(client, customer)).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
});
