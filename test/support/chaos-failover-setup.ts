import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import { Redis } from "ioredis";
import mongoose from "mongoose";
import { expect, onTestFinished } from "vitest";
import type { Server } from "../../infra/embedded/index.ts";
import { ask, type Entry, fullCostUsd, path, read } from "./chaos-setup.ts";
import { inStep, type Member } from "./failover.ts";
import { mockText } from "./mock-openai.ts";
import { ownRedisPair, type Stores } from "./servers.ts";
import { type Client, type Customer, type Environment, eventually, ready, spawnApi, spawnWorker } from "./service.ts";

/** A primary and a replica behind one address, which routes new connections to the current primary. */
export interface RedisPair {
  readonly address: string;
  primary(): Member;
  replica(): Member;
  /** Routes new connections to the other one; open ones stay where they are. */
  lead(): void;
  /** The number of open connections to the server that the address does not route to. */
  behind(): number;
  /** Closes them. */
  cut(): void;
}

export async function redisPair(): Promise<RedisPair> {
  const servers = await ownRedisPair();
  const members = servers.map((server) => {
    const control = new Redis(server.port, "127.0.0.1", { maxRetriesPerRequest: null });
    control.on("error", () => {});
    onTestFinished(() => control.disconnect());
    return { server, control };
  });
  let leading = 0;
  const open = new Map<Socket, number>();
  const proxy = createServer((client) => {
    const member = leading;
    const redis = connect((members[member] as Member).server.port, "127.0.0.1");
    open.set(client, member);
    const end = () => {
      open.delete(client);
      client.destroy();
      redis.destroy();
    };
    for (const socket of [client, redis]) socket.on("error", end).on("close", end);
    client.pipe(redis).pipe(client);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    for (const socket of open.keys()) socket.destroy();
    proxy.close();
  });
  const remaining = () => [...open].flatMap(([socket, member]) => (member === leading ? [] : [socket]));
  const pair: RedisPair = {
    address: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    primary: () => members[leading] as Member,
    replica: () => members[1 - leading] as Member,
    lead: () => {
      leading = 1 - leading;
    },
    behind: () => remaining().length,
    cut: () => {
      for (const socket of remaining()) socket.destroy();
    },
  };
  await inStep(pair.primary(), pair.replica());
  return pair;
}

/** One server of a replica set, from the test's view. */
export function mongoMember(server: Server) {
  const client = new mongoose.mongo.MongoClient(`mongodb://127.0.0.1:${server.port}/`, {
    directConnection: true,
    serverSelectionTimeoutMS: 500,
    connectTimeoutMS: 500,
  });
  onTestFinished(() => client.close());
  const admin = client.db("admin");
  return {
    server,
    isPrimary: () =>
      admin.command({ hello: 1 }).then(
        ({ isWritablePrimary }) => isWritablePrimary === true,
        () => false,
      ),
    /** Makes a secondary replicate nothing from the primary, so that majority writes wait. */
    hold: (held: boolean) => admin.command({ configureFailPoint: "stopReplProducer", mode: held ? "alwaysOn" : "off" }),
    /** The distance between its last write and the last majority-committed one. */
    uncommitted: async () => {
      const { optimes } = (await admin.command({ replSetGetStatus: 1 })) as unknown as {
        optimes: Record<
          "appliedOpTime" | "lastCommittedOpTime",
          { ts: { getHighBits(): number; getLowBits(): number } }
        >;
      };
      const { appliedOpTime, lastCommittedOpTime } = optimes;
      return (
        appliedOpTime.ts.getHighBits() - lastCommittedOpTime.ts.getHighBits() ||
        appliedOpTime.ts.getLowBits() - lastCommittedOpTime.ts.getLowBits()
      );
    },
    /** It can be elected again after some seconds. */
    stepDown: () => admin.command({ replSetStepDown: 5, secondaryCatchUpPeriodSecs: 2 }),
  };
}

/** Every response stops in its middle: a stream has begun, JSON has not. */
export const heldBy = (gate: Promise<unknown>) => ({ beforeEvent: { 3: gate }, beforeEnd: gate });

/** Two API and two worker processes that know of each other. */
export async function startTwoOfEach(stores: Stores, env: Environment) {
  const workers = [spawnWorker(stores, env), spawnWorker(stores, env)];
  const apis = await Promise.all([spawnApi(stores, env), spawnApi(stores, env)]);
  await Promise.all(workers);
  await Promise.all(apis.map(({ client }) => ready(client)));
  return { bases: apis.map(({ client }) => client.baseUrl), client: apis[0].client };
}

/** Makes the replica take over without the primary's writes from now on. Resolves when it is a separate primary. */
export async function losing(pair: RedisPair): Promise<{ end(): Promise<void> }> {
  const old = pair.primary();
  const next = pair.replica();
  await inStep(old, next);
  await next.control.replicaof("NO", "ONE");
  return {
    /** Routes all connections to it, and discards the old primary's data. */
    async end() {
      pair.lead();
      pair.cut();
      await old.control.replicaof("127.0.0.1", next.server.port);
      await inStep(next, old);
    },
  };
}

/** The outcome of a call from its caller's view. */
export interface Ended {
  readonly requestId: string | null;
  readonly stream: boolean;
  readonly status: number;
  readonly code: string | undefined;
  /** The response arrived in full. */
  readonly answered: boolean;
  /** Part of a stream arrived. */
  readonly begun: boolean;
}

/** The longest wait for a response or an error: four times the documented limit for a quiet machine. */
const patienceMs = 60_000;

/** The answer of a second attempt, with as many words as the first. */
export const otherText = mockText.toUpperCase();
const texts = [mockText, otherText];

async function callOnce(base: string, { key }: Customer, stream: boolean): Promise<Ended> {
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(ask({ stream })),
    signal: AbortSignal.timeout(patienceMs),
  });
  const { status } = response;
  const requestId = response.headers.get("x-request-id");
  if (stream && status === 200) {
    const reading = read(response);
    if ((await reading.ended) === "broken") throw new Error(`the stream of ${requestId} broke off`);
    const code = reading.events.find(({ error }) => error)?.error?.code;
    const answered = reading.done() && texts.includes(reading.text());
    return { requestId, stream, status, code, answered, begun: reading.text() !== "" };
  }
  const { error } = (await response.json()) as { error?: { code: string } };
  const retryAfter = response.headers.get("retry-after");
  if (status !== 200)
    expect({ status, error, retryAfter }).toMatchObject({ retryAfter: expect.stringMatching(/^[1-9]/) });
  return { requestId, stream, status, code: error?.code, answered: status === 200, begun: false };
}

/** Callers who call repeatedly, each at one of the addresses; half of the calls are streams. */
export interface Load {
  readonly ended: readonly Ended[];
  /** Resolves once this many more calls of both kinds have been answered at each address. */
  answers(more: number): Promise<void>;
  /** Resolves with all calls, once the last of them has ended. Rejects if one got neither a response nor an error. */
  stop(): Promise<readonly Ended[]>;
}

export function startLoad(bases: readonly string[], customer: Customer, callers: number): Load {
  const ended: Ended[] = [];
  const counts = new Map<string, number>();
  let over = false;
  const run = async (caller: number) => {
    const base = bases[caller % bases.length] as string;
    const stream = caller % (2 * bases.length) < bases.length;
    const kind = `${base} ${stream}`;
    counts.set(kind, 0);
    while (!over) {
      const call = await callOnce(base, customer, stream);
      ended.push(call);
      if (call.answered) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      await setTimeout(call.answered ? 20 : 100);
    }
  };
  const callersEnded = Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)));
  callersEnded.catch(() => {});
  return {
    ended,
    async answers(more) {
      const before = new Map(counts);
      const reached = eventually(() => [...counts].every(([kind, count]) => count >= (before.get(kind) ?? 0) + more));
      await Promise.race([reached, callersEnded]);
    },
    async stop() {
      over = true;
      await callersEnded;
      return ended;
    },
  };
}

/** The rounding error of a floating-point sum. */
const tiny = 1e-12;

/** Expects one charge for every response, none for an error, and no remaining hold. */
export async function expectBooks(client: Client, customer: Customer, calls: readonly Ended[]): Promise<void> {
  for (const { status, code, answered } of calls)
    if (!answered) expect({ status, code }).toEqual({ status: status === 200 ? 200 : 503, code: "no_capacity" });
  const check = await client.settled();
  expect(check).toMatchObject({ ok: true, open_holds: 0, undecided: 0 });
  expect(Number(check.difference_usd)).toBe(0);
  const charges = new Map<string, number>();
  for (const { id, kind, amount_usd } of await entriesOf(client, customer)) {
    const requestId = id.replace(/^refund:/, "");
    if (kind === "usage") expect(charges.has(requestId)).toBe(false);
    if (kind !== "credit") charges.set(requestId, (charges.get(requestId) ?? 0) - Number(amount_usd));
  }
  for (const call of calls) {
    const charged = charges.get(call.requestId ?? "") ?? 0;
    // A stream that broke off costs its delivered part.
    const most = call.answered || call.begun ? Number(fullCostUsd) : 0;
    const least = call.answered ? most : 0;
    if (charged < least - tiny || charged > most + tiny)
      throw new Error(`${JSON.stringify(call)} was charged ${charged}`);
    charges.delete(call.requestId ?? "");
  }
  for (const [id, charged] of charges)
    if (charged > tiny) throw new Error(`${id} was charged ${charged} for no caller`);
}

/** All entries of the account, oldest first. */
async function entriesOf(client: Client, { id }: Customer): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let after = ""; ; ) {
    const page = await client.admin<{ data: Entry[]; next: string | null }>(
      "GET",
      `/accounts/${id}/ledger?limit=200${after}`,
    );
    entries.push(...page.data);
    if (page.next === null) return entries.toReversed();
    after = `&after=${page.next}`;
  }
}
