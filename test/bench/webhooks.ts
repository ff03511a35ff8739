/**
 * What dead receivers of webhooks do to another one: `npm run bench:webhooks -- [dead endpoints] [accounts]`. One worker sends to
 * endpoints that accept connections and never answer, and to one that answers at once. Prints how long that one's events
 * take from their record until they arrive, before each dead endpoint has failed once, and afterwards. Exits with 1 over the
 * limits: 20 s before, 2 s afterwards (99th percentile). About two minutes.
 */

import { mkdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createQueues } from "#jobs";
import { systemClock } from "#platform/clock";
import { loadConfig } from "#platform/config";
import { createLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo/connection";
import { connectRedis, startRedis } from "#platform/redis";
import { createSecrets } from "#secrets";
import { createWebhooks } from "#webhooks";
import { startDeadServer, webhookEnvironment } from "../support/webhook-receiver.ts";
import { startProcesses } from "./service.ts";

const [deadEndpoints = 1_000, accounts = 100] = process.argv.slice(2).map(Number);
const say = (text: string) => void process.stdout.write(`${text}\n`);
const everyMs = 100;
const afterMs = 30_000;
const limitsMs = { before: 20_000, after: 2_000 };

const dataDir = join(import.meta.dirname, "../../.data/bench-webhooks");
await rm(dataDir, { recursive: true, force: true });
await mkdir(dataDir, { recursive: true });
const env = await webhookEnvironment();
const service = await startProcesses({ dataDir, env, onProgress: say });
const dead = await startDeadServer();
const clock = systemClock;
const log = createLogger("bench", "warn");
const config = loadConfig({ ...service.storesEnv, ...env });
const mongo = await connectMongo(config.MONGODB_URI, clock, log);
const redis = connectRedis(config, "fail-fast", log);
await startRedis(redis);
const queues = createQueues({ redis, log });
const webhooks = createWebhooks({ mongo, secrets: createSecrets(config), clock });
webhooks.whenDue((receivers) => void queues.enqueueReceivers(receivers));

/** When each event of the good endpoint was recorded, by its object; deleted when it arrives. */
const sentAt = new Map<string, number>();
let times: number[] = [];
const good = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    response.writeHead(204).end();
    const { data } = JSON.parse(Buffer.concat(parts).toString()) as { data: { id: string } };
    const since = sentAt.get(data.id);
    if (since !== undefined) times.push(performance.now() - since);
    sentAt.delete(data.id);
  });
});
await new Promise<void>((resolve) => good.listen(0, "127.0.0.1", resolve));

let recorded = 0;
async function record(account: string): Promise<void> {
  const objectId = `job_${++recorded}`;
  if (account === "acct_good") sentAt.set(objectId, performance.now());
  await webhooks.record({
    account,
    type: "job.completed",
    objectId,
    createdAt: new Date(),
    data: () => ({ id: objectId }),
  });
}

const account = (n: number) => `acct_${n % accounts}`;
const recordDead = async () => {
  for (let n = 0; n < accounts; n++) await record(account(n));
};
const isDone = async () =>
  (await mongo.db.collection("webhookEndpoints").countDocuments({ failingSince: { $exists: true } })) === deadEndpoints;

/** Records an event for the good endpoint every 100 ms until `done`, and waits until all have arrived. */
async function phase(name: keyof typeof limitsMs, done: () => Promise<boolean>): Promise<boolean> {
  times = [];
  const startedAt = performance.now();
  while (!(await done())) {
    await record("acct_good");
    await wait(everyMs);
  }
  while (sentAt.size > 0) await wait(everyMs);
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  const shown = `median ${seconds(at(0.5))}, 99 % ${seconds(at(0.99))}, slowest ${seconds(at(1))}`;
  say(
    `${name}: ${sorted.length} events in ${seconds(performance.now() - startedAt)}: ${shown}; dead connections: ${dead.open()}`,
  );
  return at(0.99) < limitsMs[name];
}

try {
  const events = ["job.*"];
  for (let n = 0; n < deadEndpoints; n++) await webhooks.endpoints.create(account(n), { url: dead.url(n), events });
  const { port } = good.address() as AddressInfo;
  await webhooks.endpoints.create("acct_good", { url: `http://127.0.0.1:${port}/`, events });
  say(`${deadEndpoints} dead endpoints of ${accounts} accounts, one that answers`);
  await recordDead();
  const isQuickBefore = await phase("before", isDone);
  const until = performance.now() + afterMs;
  await recordDead();
  const isQuickAfter = await phase("after", async () => performance.now() > until);
  process.exitCode = isQuickBefore && isQuickAfter ? 0 : 1;
} finally {
  await queues.close();
  redis.disconnect();
  await mongo.close();
  await service.stop();
  dead.close();
  good.close();
  good.closeAllConnections();
}
await rm(dataDir, { recursive: true, force: true });
