import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { createCancellations, createReplies } from "#jobs";
import { systemClock } from "#platform/clock";
import { createLogger } from "#platform/logger";
import { createRunning } from "../../workers/running.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  callCounts,
  callsOf,
  isWhole,
  lost,
  never,
  outcomeOf,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
  terminate,
} from "../support/chaos-setup.ts";
import { defaultApiTimeoutMs } from "../support/jobs-setup.ts";
import { testStores } from "../support/servers.ts";
import {
  type Client,
  type Customer,
  environment,
  eventually,
  shortApiTimeout,
  spawnApi,
  spawnProcess,
  spawnWorker,
} from "../support/service.ts";

/** Enough time for calls that can finish, even on a busy machine. */
const graceful = { DRAIN_GRACE: "10" };
/** No time limit matters where every call can finish: the process exits as soon as nothing is open. */
const unhurried = { DRAIN_GRACE: "60" };

test("SIGTERM to a worker: calls that can finish do, the others get an error, waiting jobs go to other workers", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, worker } = await startProcesses(stores, env, {
    worker: { WORKER_CONCURRENCY_CHAT: "3", ...graceful },
  });
  const customer = await client.account("1.00");
  const redis = redisOf(stores);

  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise }, { beforeHeaders: never }, { beforeEvent: { 4: never } });
  const finishing = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  const hopeless = outcomeOf(customer.post(path, ask()));
  await provider.request(1);
  const stream = read(await customer.post(path, ask({ stream: true })));
  await stream.sees(4);
  const waiting = outcomeOf(customer.post(path, ask()));
  await eventually(async () => (await callCounts(redis, "chat")).waiting === 1);

  await terminate(worker);
  gate.resolve();
  expect(await finishing).toMatchObject({ status: 200 });
  expect(await hopeless).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  await stream.ended;
  expect(stream.events.at(-1)?.error).toMatchObject({ code: "no_capacity" });
  expect(stream.done()).toBe(false);
  expect(await worker.exited).toBe(0);
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([false, true, true]);

  await spawnWorker(stores, env);
  expect(await waiting).toMatchObject({ status: 200 });
  await client.settled();
  const calls = await callsOf(client, customer);
  expect(calls.map(({ request }) => request.status).toSorted()).toEqual(["failed", "failed", "succeeded", "succeeded"]);
  // The worker aborted the stream, so it costs nothing.
  expect(await availableUsd(client, customer)).toBe(balanceAfter(2));
});

test("SIGTERM to an API: calls that can finish do, the others are settled at 0, aborted and get an error", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, api } = await startProcesses(stores, env, { api: graceful });
  const customer = await client.account("1.00");

  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } }, { beforeHeaders: never }, { beforeEvent: { 4: never } });
  const finishing = read(await customer.post(path, ask({ stream: true })));
  await finishing.sees(4);
  const hopeless = outcomeOf(customer.post(path, ask()));
  await provider.request(1);
  const stream = read(await customer.post(path, ask({ stream: true })));
  await stream.sees(4);

  await terminate(api);
  await expect(customer.post(path, ask())).rejects.toThrow("fetch failed");
  gate.resolve();
  await finishing.ended;
  expect(isWhole(finishing)).toBe(true);
  expect(await hopeless).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  expect(await stream.ended).toBe("closed");
  expect(stream.events.at(-1)?.error).toMatchObject({ code: "no_capacity" });
  expect(await api.exited).toBe(0);
  await Promise.all(provider.requests.map(({ closed }) => closed));
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([false, true, true]);

  const { client: next } = await spawnApi(stores, env);
  await next.settled();
  expect(await callsOf(next, customer)).toHaveLength(3);
  expect(await availableUsd(next, customer)).toBe(balanceAfter(1));
});

test("SIGTERM to an API: an answer that its caller has not got when the time is over is refunded", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, api } = await startProcesses(stores, env, { api: { DRAIN_GRACE: "1" } });
  const [{ client: next }, customer] = await Promise.all([spawnApi(stores, env), client.account("1.00")]);
  const agent = new Agent();
  onTestFinished(() => agent.destroy());
  const whole = await postOn(agent, client, customer, ask());
  await whole.text();
  // Larger than the buffers of both ends of a connection.
  provider.always({ text: "x".repeat(24 * 1024 * 1024) });
  const slow = await postOn(agent, client, customer, ask());
  expect(slow.status).toBe(200);

  await terminate(api);
  expect(await api.exited).toBe(0);
  await expect(slow.text()).rejects.toThrow("aborted");
  await eventually(async () => (await callsOf(next, customer, "refund")).length > 0);
  await next.settled();
  expect(await availableUsd(next, customer)).toBe(balanceAfter(1));
});

/** Sends a call on a connection of the agent. Resolves with the head of the response. */
async function postOn(agent: Agent, { baseUrl }: Client, { key }: Customer, body: object) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const outgoing = request(`${baseUrl}${path}`, { agent, method: "POST", headers });
  outgoing.end(JSON.stringify(body));
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const { statusCode: status, headers: answered } = incoming;
  return { status, connection: answered.connection, reused: outgoing.reusedSocket, text: () => text(incoming) };
}

test("SIGTERM to an API: not ready at once, it still takes connections until the delay is over, and asks for new ones", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, api } = await startProcesses(stores, env, { api: { DRAIN_DELAY: "8", DRAIN_GRACE: "60" } });
  const customer = await client.account("1.00");
  const agents = Array.from({ length: 3 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  onTestFinished(() => agents.forEach((agent) => agent.destroy()));
  const [ofStream, ofJson, idle] = agents as [Agent, Agent, Agent];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  provider.respond({ beforeEvent: { 4: gates[0].promise } }, { beforeHeaders: gates[1].promise });
  const stream = await postOn(ofStream, client, customer, ask({ stream: true }));
  const json = postOn(ofJson, client, customer, ask());
  await provider.request(1);
  await (await postOn(idle, client, customer, ask())).text();

  await terminate(api);
  const ready = await fetch(`${client.baseUrl}/readyz`);
  expect([ready.status, ready.headers.get("connection")]).toEqual([503, "close"]);
  const next = await postOn(idle, client, customer, ask());
  expect(next).toMatchObject({ status: 200, connection: "close", reused: true });
  await next.text();
  expect(await outcomeOf(customer.post(path, ask()))).toMatchObject({ status: 200 });
  gates[1].resolve();
  // The request came before the signal, the head of its response after it.
  expect(await json).toMatchObject({ status: 200, connection: "close" });
  await (await json).text();
  await eventually(() => lost(fetch(`${client.baseUrl}/healthz`)));

  // The head of the stream was sent before the signal, so its caller may reuse this connection.
  gates[0].resolve();
  expect(await stream.text()).toContain("[DONE]");
  const last = await postOn(ofStream, client, customer, ask());
  expect(last).toMatchObject({ status: 200, connection: "close", reused: true });
  await last.text();
  expect(await api.exited).toBe(0);
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual(Array(6).fill(false));
  const { client: other } = await spawnApi(stores, env);
  await other.settled();
  expect(await availableUsd(other, customer)).toBe(balanceAfter(6));
});

test("a draining worker takes no jobs: another one takes waiting jobs at once, and running ones continue", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, worker } = await startProcesses(stores, env, {
    worker: { WORKER_CONCURRENCY_CHAT: "1", DRAIN_GRACE: "60" },
  });
  const customer = await client.account("1.00");
  const redis = redisOf(stores);
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const running = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  const waiting = outcomeOf(customer.post(path, ask()));
  await eventually(async () => (await callCounts(redis, "chat")).waiting === 1);
  await terminate(worker);
  await eventually(async () => (await redis.zcard("worker:index")) === 0);
  await spawnWorker(stores, env);
  expect(await waiting).toMatchObject({ status: 200 });
  expect(worker.child.exitCode).toBeNull();
  gate.resolve();
  expect(await running).toMatchObject({ status: 200 });
  expect(await worker.exited).toBe(0);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(2));
});

test.for(["api", "workers"] as const)("SIGTERM to the %s while it starts without MongoDB ends it", async (kind) => {
  const stores = await testStores();
  const starting = spawnProcess(kind, environment({ ...stores, MONGODB_URI: "mongodb://127.0.0.1:9/none" }));
  await starting.line(({ msg }) => msg === "error of the MongoDB connection");
  starting.kill("SIGTERM");
  expect(await starting.exited).toBe(0);
});

test("SIGTERM to an API while a body comes in: the call is still taken and answered", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, api } = await startProcesses(stores, env, { api: unhurried });
  const customer = await client.account("1.00");
  const { hostname, port } = new URL(client.baseUrl);
  const body = JSON.stringify(ask());
  const head = [`POST ${path} HTTP/1.1`, `host: ${hostname}`, `authorization: Bearer ${customer.key}`];
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(`${head.join("\r\n")}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`);
  // The key's last use is recorded as soon as the head has arrived.
  await eventually(async () => {
    const { data } = await client.admin<{ data: { last_used_at: number | null }[] }>(
      "GET",
      `/accounts/${customer.id}/keys`,
    );
    return data[0]?.last_used_at != null;
  });

  await terminate(api);
  socket.write(body.slice(10));
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  expect(await api.exited).toBe(0);
  const { client: next } = await spawnApi(stores, env);
  await next.settled();
  expect(provider.requests).toHaveLength(1);
  expect(await availableUsd(next, customer)).toBe(balanceAfter(1));
});

test("a second signal to a worker and to an API exits at once", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client, api, worker } = await startProcesses(stores, { ...env, DRAIN_GRACE: "300" });
  const customer = await client.account("1.00");
  provider.respond({ beforeHeaders: never });
  const call = lost(customer.post(path, ask()));
  await provider.request(0);
  await Promise.all([terminate(worker), terminate(api)]);
  for (const stopping of [worker, api]) {
    // A second signal within a moment counts as the same Ctrl-C. The grace time is longer than this waits.
    await eventually(() => {
      stopping.kill("SIGTERM");
      return stopping.child.exitCode !== null;
    });
    expect(await stopping.exited).toBe(1);
  }
  await call;
});

test("a job that a stopping worker takes after its drain is aborted at once", async () => {
  const stores = await testStores();
  const log = createLogger("test", "silent");
  const deps = { clock: systemClock, log };
  const commands = redisOf(stores);
  const cancellations = createCancellations({ ...deps, subscriber: redisOf(stores), commands });
  const running = createRunning({
    ...deps,
    cancellations,
    replies: createReplies({ ...deps, redis: commands, apiTimeoutMs: defaultApiTimeoutMs }),
  });
  running.abortAll();
  const late = running.begin({ requestId: "req_late", replyTo: "api_1", deadlineAt: Number.POSITIVE_INFINITY });
  expect(late.signal.reason).toMatchObject({ name: "Aborted", cause: "shutdown" });
});
