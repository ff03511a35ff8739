import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { createParser, type EventSourceParser } from "eventsource-parser";
import type { Redis } from "ioredis";
import mongoose from "mongoose";
import { onTestFinished } from "vitest";
import { type Pool, payloadsOf, pools } from "#jobs";
import { formatUsd } from "#money";
import { silenceMs, toField } from "../../shared/jobs/frames.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { connectRedis } from "../../shared/platform/redis.ts";
import { keysOf, log, queueOn } from "./jobs-setup.ts";
import { type MockOpenai, mockText, startMockOpenai } from "./mock-openai.ts";
import type { Stores } from "./servers.ts";
import {
  apiTimeoutMs,
  type Client,
  type Customer,
  type Environment,
  eventually,
  ready,
  type ServiceProcess,
  spawnApi,
  spawnWorker,
} from "./service.ts";
import { openWire } from "./wire.ts";

export { ready } from "./service.ts";
export const path = "/v1/chat/completions";
/** 1,000 nano-USD per input token, 2,000 per output token. */
const catalogFile = fileURLToPath(new URL("chaos-catalog.json", import.meta.url));
/** The cost of the mock's default response: 9 input and 8 output tokens. */
export const fullCostUsd = "0.000025";
/** The balance after this many default responses, from 1 USD. */
export const balanceAfter = (answers: number) => formatUsd(1_000_000_000n - 25_000n * BigInt(answers));
/** Never resolves: a provider that is silent for the whole test. */
export const never = new Promise<never>(() => {});

export const ask = (more: object = {}) => ({
  model: "mock/chat",
  messages: [{ role: "user", content: "Hello there" }],
  max_tokens: 100,
  ...more,
});

/**
 * A mock provider, and the environment of a service with a single model that it serves. Tests that wait for the
 * death of a worker pass `shortTimeouts`, and of an API only `shortApiTimeout`.
 */
export async function startProvider(more: Environment = {}): Promise<{ provider: MockOpenai; env: Environment }> {
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const env = { CATALOG_FILE: catalogFile, MOCK_BASE_URL: provider.url, MOCK_API_KEY: "key-of-the-mock", ...more };
  return { provider, env };
}

/** One API and one worker process that know of each other. */
export async function startProcesses(
  stores: Stores,
  env: Environment,
  only: { api?: Environment; worker?: Environment; workerStores?: Stores; apiStores?: Stores } = {},
) {
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") process.stderr.write(`${await jobsIn(stores)}\n`);
  });
  const [worker, api] = await Promise.all([
    spawnWorker(only.workerStores ?? stores, { ...env, ...only.worker }),
    spawnApi(only.apiStores ?? stores, { ...env, ...only.api }),
  ]);
  await ready(api.client);
  return { api, worker, client: api.client };
}

/**
 * A worker and two API processes: `api` is the one to damage, `client` belongs to the other. `leaseEnded` resolves when
 * the damaged one is presumed dead.
 */
export async function startTwoApis(
  stores: Stores,
  env: Environment,
  { survivor, ...only }: Parameters<typeof startProcesses>[2] & { survivor?: Environment } = {},
) {
  const { api, worker } = await startProcesses(stores, env, only);
  const redis = redisOf(stores);
  const [lease] = (await keysOf(redis, "reply:*")) as [string];
  const { client } = await spawnApi(stores, { ...env, ...survivor });
  await ready(client);
  return { api, worker, client, redis, leaseEnded: () => leaseEnded(redis, lease) };
}

/** Resolves once the process has begun to stop. */
export async function terminate(process: ServiceProcess): Promise<void> {
  process.kill("SIGTERM");
  await process.line(({ msg }) => msg === "shutting down");
}

/** The state of unfinished jobs, to explain a failed test. */
async function jobsIn(stores: Stores): Promise<string> {
  const connection = openRedis(stores);
  const listed = pools.map(async (pool) => {
    const queue = queueOn(connection, pool);
    const jobs = (["wait", "prioritized", "active", "delayed"] as const).map(
      async (state) => `${pool} ${state}: ${(await queue.getRanges([state], 0, -1)).join(", ")}`,
    );
    return (await Promise.all(jobs)).join("\n");
  });
  try {
    return (await Promise.all(listed)).join("\n");
  } finally {
    connection.disconnect();
  }
}

export interface Entry {
  readonly id: string;
  readonly kind: string;
  readonly amount_usd: string;
  readonly request: {
    readonly key: string | null;
    readonly status: "succeeded" | "failed" | "cancelled";
    readonly error?: string;
    readonly attempts: readonly Readonly<Record<string, unknown>>[];
    readonly estimated: boolean;
    readonly usage: Readonly<Record<string, number>>;
    readonly shortfall_usd: string;
  };
}

/** The account's calls, oldest first, from any API instance. */
export async function callsOf(client: Client, { id }: Customer, kind = "usage"): Promise<Entry[]> {
  const { data } = await client.admin<{ data: Entry[] }>("GET", `/accounts/${id}/ledger?kind=${kind}&limit=200`);
  return data.toReversed();
}

/** The only call of the account, once it is captured and its hold has ended. */
export async function onlyCall(client: Client, customer: Customer): Promise<Entry> {
  await client.settled();
  return eventually(async () => {
    const [entry, ...more] = await callsOf(client, customer);
    if (more.length > 0) throw new Error("there are several");
    return entry;
  });
}

export async function availableUsd(client: Client, { id }: Customer): Promise<string> {
  return (await client.admin<{ available_usd: string }>("GET", `/accounts/${id}`)).available_usd;
}

export interface ErrorBody {
  readonly error: { readonly message: string; readonly type: string; readonly code: string };
  readonly request_id: string;
}

/** The outcome of a call that was not streamed. */
export async function outcomeOf(answer: Promise<Response>) {
  const response = await answer;
  const body = (await response.json()) as ErrorBody & { choices?: unknown };
  const retryAfter = response.headers.get("retry-after");
  return { status: response.status, code: body.error?.code, retryAfter, body };
}

/** Resolves to true if the connection ended without a response, at either side. */
export const lost = (answer: Promise<Response>): Promise<boolean> =>
  answer.then(
    () => false,
    () => true,
  );

/** True for a response, false for a clear refusal during an outage; anything else is a failure. */
async function isAnswered(answer: Promise<Response>): Promise<boolean> {
  const { status, code, retryAfter, body } = await outcomeOf(answer);
  if (status === 200) return true;
  if (status === 503 && code === "no_capacity" && Number(retryAfter) > 0) return false;
  throw new Error(`${status}: ${JSON.stringify(body)}`);
}

/** Waits until calls run again after an outage. */
export const worksAgain = (customer: Customer) => eventually(() => isAnswered(customer.post(path, ask())));

/** The parts of a chat stream's event that tests check. */
interface ChatEvent extends Partial<ErrorBody> {
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
  readonly usage?: object | null;
}

/** A stream as it arrives. */
export interface Reading {
  readonly events: readonly ChatEvent[];
  text(): string;
  pings(): number;
  /** True once `data: [DONE]` has arrived. */
  done(): boolean;
  /** Resolves once this many events have arrived. */
  sees(count: number): Promise<void>;
  /** Resolves when the connection has ended, in order or not. */
  readonly ended: Promise<"closed" | "broken">;
}

/** Parses the events of a stream. Resolves when the connection has ended, in order or not. */
export async function feed(parser: EventSourceParser, response: Response): Promise<"closed" | "broken"> {
  const decoder = new TextDecoder();
  try {
    for await (const bytes of response.body as ReadableStream<Uint8Array>)
      parser.feed(decoder.decode(bytes, { stream: true }));
    return "closed";
  } catch {
    return "broken";
  }
}

export function read(response: Response): Reading {
  const events: ChatEvent[] = [];
  let done = false;
  let pings = 0;
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === "[DONE]") done = true;
      else events.push(JSON.parse(data) as ChatEvent);
    },
    onComment: () => {
      pings += 1;
    },
  });
  const ended = feed(parser, response);
  return {
    events,
    text: () => events.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join(""),
    pings: () => pings,
    done: () => done,
    sees: async (count) => {
      await eventually(() => events.length >= count);
    },
    ended,
  };
}

/** True for a complete stream of the mock's default response, including the last event. */
export const isWhole = (reading: Reading): boolean => reading.done() && reading.text() === mockText;

/** A connection to the service's own Redis, to inspect and to manipulate it. */
export function redisOf(stores: Stores): Redis {
  const redis = openRedis(stores);
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** Does what a restart of a Redis without persistence does: no client sees the empty server before its connection breaks. */
export async function restartEmpty(stores: Stores): Promise<void> {
  await redisOf(stores).multi().flushdb().call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").exec();
}

// The commands are the same on a cluster.
const openRedis = (stores: Stores) => connectRedis(loadConfig({ ...stores }), "blocking", log) as Redis;

/** A collection of the service, to inspect it. */
export async function openCollection<Document extends object>(stores: Stores, name: string) {
  const connection = await mongoose.createConnection(stores.MONGODB_URI).asPromise();
  onTestFinished(() => connection.close());
  return connection.collection<Document>(name);
}

/** The numbers of a pool's calls in waiting jobs, and in jobs that a worker has. */
export async function callCounts(redis: Redis, pool: Pool): Promise<{ waiting: number; active: number }> {
  const [waiting, active] = await Promise.all([groupsIn(redis, pool, "prioritized"), groupsIn(redis, pool, "active")]);
  return { waiting: waiting.flat().length, active: active.flat().length };
}

/** The payloads of each job in this state. */
export async function groupsIn(redis: Redis, pool: Pool, state: "prioritized" | "active"): Promise<unknown[][]> {
  const queue = queueOn(redis, pool);
  const jobs = await queue.getJobs([state]);
  await queue.close();
  return jobs.map(({ data }) => [...payloadsOf(data)]);
}

/** Resolves once a dead or frozen API instance counts as dead. */
export const leaseEnded = (redis: Redis, lease: string) =>
  eventually(async () => silenceMs(await redis.pttl(lease)) >= apiTimeoutMs);

/**
 * Simulates a worker that died after the capture: its frames to the reply stream (by default the only one) are lost, and
 * later deliveries of the jobs report that.
 */
export async function loseAnswers(redis: Redis, requestIds: readonly string[], stream?: string): Promise<void> {
  const key = stream ?? ((await keysOf(redis, "reply:*"))[0] as string);
  const error = { code: "no_capacity", message: "The worker that ran this call died.", retryAfterSeconds: 1 };
  const words = redis.multi().xtrim(key, "MAXLEN", 0);
  for (const requestId of requestIds) {
    const frame = {
      requestId,
      seq: -1,
      kind: "error",
      data: JSON.stringify(error),
      outcome: { answerLost: true },
    } as const;
    words.xadd(key, "*", ...toField(frame));
  }
  await words.exec();
}

/** A proxy to a server that closes every other connection once the client has sent its first bytes. */
export async function cutWire(address: string): Promise<string> {
  let connections = 0;
  const { url } = await openWire(address, (client, server) => {
    if (connections++ % 2 === 0) client.once("data", () => client.destroy());
    else client.pipe(server).pipe(client);
  });
  return url.href;
}

/** A proxy to a server. While it is held, everything sent is lost; then its connections break. */
export async function heldWire(address: string): Promise<{ address: string; hold(): void; reconnect(): void }> {
  let holding = false;
  const pass = (from: Socket, to: Socket) =>
    from.on("data", (data) => {
      if (!holding) to.write(data);
    });
  const { url, cut } = await openWire(address, (client, server) => {
    pass(client, server);
    pass(server, client);
  });
  return {
    address: url.href,
    hold: () => {
      holding = true;
    },
    reconnect: () => {
      holding = false;
      cut();
    },
  };
}
