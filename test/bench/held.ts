import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Agent, type ClientRequest, request } from "node:http";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { newRequestId } from "#platform/ids";
import { type Bench, mockState } from "./bench.ts";
import { insertAll } from "./ledger-entries.ts";
import { type Measured, residentBytes } from "./processes.ts";
import type { Service } from "./service.ts";
import { table, whole } from "./table.ts";
import { requestBody } from "./workload.ts";

/**
 * The resources of calls that wait for their provider, and of entries and processes in the stores: the input for sizing
 * machines.
 */

const pollMs = 200;
const settleMs = 3_000;
const silenceMs = 600_000;

/** Settings that let one worker run any number of calls at one upstream. */
export async function withoutBounds(dataDir: string): Promise<Readonly<Record<string, string>>> {
  const overlay = join(dataDir, "overlay.json");
  await writeFile(overlay, JSON.stringify({ upstreams: { openai: { concurrency: 100_000 } } }));
  return { CATALOG_OVERLAY: overlay, WORKER_CONCURRENCY_CHAT: "100000" };
}

interface Reading {
  readonly open: number;
  readonly residentBytes: Readonly<Record<string, number>>;
  readonly sockets: Readonly<Record<string, number>>;
  readonly redisBytes: number;
}

const names = ["api", "worker"] as const;
const descriptors = ({ pid }: Measured) => readdirSync(`/proc/${pid}/fd`).length;

async function read(service: Service, open: number): Promise<Reading> {
  await wait(settleMs);
  const of = (value: (process: Measured) => number) =>
    Object.fromEntries(
      service
        .processes()
        .flatMap((process) => (names.includes(process.name as "api") ? [[process.name, value(process)]] : [])),
    );
  return {
    open,
    residentBytes: of(residentBytes),
    sockets: of(descriptors),
    redisBytes: await service.stores.redisMemoryBytes(),
  };
}

/** Opens streams to a silent provider, in steps. */
export async function measureOpenStreams(
  service: Service,
  { mockOrigin, say }: Pick<Bench, "mockOrigin" | "say">,
  steps: readonly number[],
): Promise<Reading[]> {
  await fetch(mockOrigin, { method: "PUT", body: JSON.stringify({ delayMs: silenceMs, paced: false }) });
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
  const { origin, path, headers, model } = service.target;
  const body = requestBody(model, true);
  const calls: ClientRequest[] = [];
  const readings = [await read(service, 0)];
  for (const wanted of steps) {
    while (calls.length < wanted) {
      const call = request(`${origin}${path}`, { method: "POST", headers, agent });
      call.on("error", () => {}).end(body);
      calls.push(call);
      if (calls.length % 100 === 0) await wait(pollMs);
    }
    for (let open = 0; open < wanted; await wait(pollMs)) open = (await mockState(mockOrigin)).open;
    const reading = await read(service, wanted);
    readings.push(reading);
    say(JSON.stringify(reading));
  }
  for (const call of calls) call.destroy();
  for (let open = 1; open > 0; await wait(pollMs)) open = (await mockState(mockOrigin)).open;
  await fetch(mockOrigin, { method: "PUT", body: JSON.stringify({ delayMs: 0, paced: false }) });
  return readings;
}

interface LedgerSizes {
  readonly entryBytes: number;
  readonly storedBytes: number;
  readonly indexBytes: Readonly<Record<string, number>>;
}

/**
 * Counts entries of real calls, plus enough copies of one call to fill whole pages. The copies make the ledger differ
 * from the balances.
 */
export async function measureLedger({ stores }: Service, copies: number): Promise<LedgerSizes> {
  const ledger = stores.mongo.collection<{ _id: string }>("ledger");
  const read = async () => {
    const [stats] = await ledger.aggregate([{ $collStats: { storageStats: {} } }]).toArray();
    return (stats as { storageStats: Record<string, unknown> }).storageStats;
  };
  const { count: made, size: madeBytes } = await read();
  const call = await ledger.findOne({ kind: "usage", lease: { $exists: true } } as object);
  await insertAll(ledger as never, copies, (index) => ({
    ...call,
    account: `acct_copy${index % 1_000}`,
    _id: newRequestId(),
    createdAt: new Date(Date.now() - 1_000 * (copies - index)),
  }));
  await stores.mongo.admin().command({ fsync: 1 });
  const { count, storageSize, indexSizes } = await read();
  const entries = Number(count);
  return {
    entryBytes: Number(madeBytes) / Number(made),
    storedBytes: Number(storageSize) / entries,
    indexBytes: Object.fromEntries(
      Object.entries(indexSizes as Record<string, number>).map(([name, bytes]) => [name, Number(bytes) / entries]),
    ),
  };
}

/** Connections to the stores for each additional process of each kind. */
export async function measureConnections(service: Service) {
  const count = () => service.stores.connections();
  const base = await count();
  /** A new worker has started once it no longer opens connections: nothing else reports it. */
  const grown = async (apis: number, workers: number, before: typeof base) => {
    await service.scale(apis, workers);
    let now = await count();
    for (let last = before; now.redis === before.redis || now.redis !== last.redis || now.mongo !== last.mongo; ) {
      await wait(settleMs);
      [last, now] = [now, await count()];
    }
    return now;
  };
  const api = await grown(2, 1, base);
  const both = await grown(2, 2, api);
  await service.scale(1, 1);
  return {
    api: { redis: api.redis - base.redis, mongo: api.mongo - base.mongo },
    worker: { redis: both.redis - api.redis, mongo: both.mongo - api.mongo },
  };
}

const inKb = (bytes: number) => (bytes / 1024).toFixed(1);

export function renderHeld(results: {
  readonly readings: readonly Reading[];
  readonly ledger: LedgerSizes;
  readonly connections: Awaited<ReturnType<typeof measureConnections>>;
  readonly command: string;
  readonly machine: readonly string[];
}): string {
  const { readings, ledger, connections, command, machine } = results;
  const [first, half] = readings;
  const last = readings.at(-1);
  if (!first || !half || !last) throw new Error("Nothing was read.");
  /** The increase per call beyond the first step, which also fills caches and grows the heap. */
  const slope = (value: (reading: Reading) => number) => (value(last) - value(half)) / (last.open - half.open);
  return `# What is held, measured

Written by \`${command}\`. Streams whose provider is silent, a ledger entry, and the connections of one process more:
[scaling](../operations/scaling.md) computes machines from these. Counts are exact; memory is that of the resident set, so it includes
what the garbage collector has not returned.

${machine.map((line) => `- ${line}`).join("\n")}

${table(
  ["open streams", "API, MB", "worker, MB", "API descriptors", "worker descriptors", "Redis, MB"],
  readings.map((each) => [
    whole(each.open),
    ...names.map((name) => whole((each.residentBytes[name] ?? 0) / 1024 ** 2)),
    ...names.map((name) => whole(each.sockets[name] ?? 0)),
    (each.redisBytes / 1024 ** 2).toFixed(1),
  ]),
)}

${table(
  ["of one open stream more", "API", "worker", "Redis"],
  [
    [
      "memory, KB",
      ...names.map((name) => inKb(slope((each) => each.residentBytes[name] ?? 0))),
      inKb(slope((each) => each.redisBytes)),
    ],
    ["descriptors", ...names.map((name) => slope((each) => each.sockets[name] ?? 0).toFixed(2)), ""],
  ],
)}

${table(
  ["connections of one process at rest", "Redis", "MongoDB"],
  names.map((name) => [name, String(connections[name].redis), String(connections[name].mongo)]),
)}

${table(
  ["of a ledger entry", "bytes"],
  [
    ["document", whole(ledger.entryBytes)],
    ["on disk, compressed (copies of one entry: real ones take more)", whole(ledger.storedBytes)],
    ...Object.entries(ledger.indexBytes).map(([name, bytes]) => [`index \`${name}\``, whole(bytes)]),
  ],
)}
`;
}
