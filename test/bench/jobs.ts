/**
 * Jobs in numbers: `npm run bench:jobs -- [jobs] [accounts] [to run]`. Queues jobs of many accounts in the media pool, and
 * compares submitting, listing and polling with an almost empty queue. A synchronous call must run next although all of
 * them wait. Then runs some of the jobs to their end while workers are killed, and checks that each ended once, was asked
 * for at the provider once, and costs what the ledger says. Exits with 1 if one of these fails, if submitting takes twice
 * as long (median), or if listing or polling takes over 50 ms (99th percentile). About eight minutes with the defaults.
 */

import { mkdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { Agent, request } from "undici";
import { mockMp3 } from "../support/mock-openai-media.ts";
import { noLimits, openKey, startProcesses } from "./service.ts";
import { connectStores } from "./stores.ts";
import { ms, table, times, whole } from "./table.ts";

const [jobs = 100_000, accounts = 100, toRun = 5_000] = process.argv.slice(2).map(Number);
const say = (text: string) => void process.stdout.write(`${text}\n`);
const samples = 300;
const submitters = 50;
const limits = { submitRatio: 2, readMs: 50 };
/** The provider takes this long until the jobs are to run. It then answers after `answerMs`. */
const heldMs = 30_000;
const answerMs = 100;
const workers = 3;
const killEveryMs = 5_000;
const failures: string[] = [];

/** How often the provider was asked for each text, in the order of the first time. */
const asked = new Map<string, number>();
let isHeld = true;
const release: (() => void)[] = [];
const provider = createServer((incoming, answer) => {
  void textOf(incoming).then(async (body) => {
    const { input } = JSON.parse(body) as { input: string };
    asked.set(input, (asked.get(input) ?? 0) + 1);
    const released = new Promise<void>((resolve) => release.push(resolve));
    await (isHeld ? Promise.race([wait(heldMs, undefined, { ref: false }), released]) : wait(answerMs));
    answer.writeHead(200, { "content-type": "audio/mpeg" }).end(mockMp3);
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));

const dataDir = join(import.meta.dirname, "../../.data/bench-jobs");
await rm(dataDir, { recursive: true, force: true });
await mkdir(dataDir, { recursive: true });
const { port } = provider.address() as AddressInfo;
const env = {
  OPENAI_API_KEY: "bench",
  OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
  ASYNC_BACKLOG_LIMIT: String(2 * jobs),
  LOG_LEVEL: "warn",
};
const service = await startProcesses({ dataDir, env, onProgress: say });
const stores = await connectStores(service.storesEnv);
const agent = new Agent({ connections: submitters + 1 });

interface Answer {
  readonly status: number;
  readonly body: { readonly id: string; readonly status: string; readonly queue_position: number | null };
  readonly ms: number;
}

async function call(key: string, method: "GET" | "POST", path: string, body?: object): Promise<Answer> {
  const startedAt = performance.now();
  const answer = await request(`${service.origin}${path}`, {
    dispatcher: agent,
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body && { "content-type": "application/json", prefer: "respond-async" }),
    },
    body: body ? JSON.stringify(body) : null,
  });
  const text = await answer.body.text();
  const { statusCode: status } = answer;
  return { status, body: JSON.parse(text) as Answer["body"], ms: performance.now() - startedAt };
}

const speech = (input: string) => ({ model: "openai/tts-1", voice: "alloy", input });
let submitted = 0;
async function submit(key: string): Promise<Answer> {
  const answer = await call(key, "POST", "/v1/audio/speech", speech(`Job ${++submitted}.`));
  if (answer.status !== 202) throw new Error(`a job was refused: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer;
}

const newAccount = async () => openKey(service.admin, { usd: "100", limits: noLimits });
const at = (values: readonly number[], share: number) =>
  values.toSorted((one, other) => one - other)[Math.min(values.length - 1, Math.floor(share * values.length))] ?? 0;

async function sample(work: (n: number) => Promise<Answer>): Promise<number[]> {
  const taken: number[] = [];
  for (let n = 0; n < samples; n++) taken.push((await work(n)).ms);
  return taken;
}

/** Submits, polls and lists one after the other with an account of its own. */
async function measure() {
  const { key } = await newAccount();
  const ids: string[] = [];
  const submits = await sample(async () => {
    const answer = await submit(key);
    ids.push(answer.body.id);
    return answer;
  });
  const polls = await sample(async (n) => {
    const answer = await call(key, "GET", `/v1/jobs/${ids[n]}`);
    if (answer.body.status === "queued" && answer.body.queue_position === null)
      failures.push(`${ids[n]} waits and has no position`);
    return answer;
  });
  const lists = await sample(() => call(key, "GET", "/v1/jobs?limit=50"));
  return { submits, polls, lists };
}
const waiting = async () =>
  Number(await stores.mongo.collection("detachedCalls").countDocuments({ status: "queued", job: "media" }));

/** Kills one worker after the other until `done`, and starts another in its place. */
async function killWorkers(done: () => Promise<boolean>): Promise<number> {
  let killed = 0;
  while (!(await done())) {
    await wait(killEveryMs);
    const newest = service.running().findLast(({ name }) => name === "worker");
    if (newest) process.kill(newest.pid, "SIGKILL");
    killed++;
    await service.scale(1, workers - 1);
    await service.scale(1, workers);
  }
  return killed;
}

interface EndedJob {
  readonly _id: string;
  readonly account: string;
  readonly status: string;
  readonly costNanoUsd: bigint;
}

/** Compares the jobs that have ended with the ledger. */
async function compareEnded(): Promise<Record<string, number>> {
  const ended = stores.mongo
    .collection("detachedCalls")
    .find({ job: "media", endedAt: { $exists: true } })
    .project<EndedJob>({ account: 1, status: 1, costNanoUsd: 1 });
  const counts: Record<string, number> = {};
  for await (const { _id, account, status, costNanoUsd } of ended) {
    counts[status] = (counts[status] ?? 0) + 1;
    const entry = await stores.mongo.collection<{ _id: string; amount: bigint }>("ledger").findOne({ _id, account });
    if (entry?.amount !== -costNanoUsd) failures.push(`${_id} costs ${costNanoUsd}, and its entry ${entry?.amount}`);
    if (costNanoUsd > 0n !== (status === "completed")) failures.push(`${_id} is ${status} and costs ${costNanoUsd}`);
  }
  return counts;
}

try {
  const few = await measure();
  const before = await stores.redisMemoryBytes();
  const keys = await Promise.all(Array.from({ length: accounts }, newAccount));
  const startedAt = performance.now();
  let left = jobs;
  const fill = async () => {
    while (left > 0) await submit(keys[left-- % accounts]?.key ?? "");
  };
  await Promise.all(Array.from({ length: submitters }, fill));
  const seconds = (performance.now() - startedAt) / 1_000;
  const [queued, after] = [await waiting(), await stores.redisMemoryBytes()];
  say(`${whole(queued)} jobs wait; ${whole(jobs / seconds)} were accepted a second, ${submitters} at a time`);
  say(`Redis: ${whole((after - before) / jobs)} bytes a job`);

  const many = await measure();
  const row = (name: string, of: keyof typeof few) => [
    name,
    ...[few, many].flatMap((each) => [ms(at(each[of], 0.5)), ms(at(each[of], 0.99))]),
    times(at(many[of], 0.5) / at(few[of], 0.5)),
  ];
  say(
    table(
      ["ms", "empty: median", "99 %", "full: median", "99 %", "ratio of medians"],
      [row("submit a job", "submits"), row("poll it, with its position", "polls"), row("list 50 jobs", "lists")],
    ),
  );
  if (at(many.submits, 0.5) >= limits.submitRatio * at(few.submits, 0.5)) failures.push("submitting is too slow");
  for (const read of ["polls", "lists"] as const)
    if (at(many[read], 0.99) >= limits.readMs) failures.push(`${read} are too slow`);

  // A synchronous call of an account with many waiting jobs.
  const busy = keys[0]?.key ?? "";
  const headers = { authorization: `Bearer ${busy}`, "content-type": "application/json" };
  const call = fetch(`${service.origin}/v1/audio/speech`, {
    method: "POST",
    headers,
    body: JSON.stringify(speech("A caller waits.")),
  });
  await wait(1_000);
  const askedBefore = asked.size;
  for (const go of release.splice(0)) go();
  const answer = await call;
  await answer.arrayBuffer();
  const place = [...asked.keys()].indexOf("A caller waits.") - askedBefore + 1;
  say(
    `a synchronous call of an account with ${whole(jobs / accounts)} waiting jobs: ${answer.status}, number ${place} of those that the provider got next`,
  );
  if (answer.status !== 200 || place > 1) failures.push("a synchronous call waited behind jobs");

  isHeld = false;
  for (const go of release.splice(0)) go();
  await service.scale(1, workers);
  const runAt = performance.now();
  const goal = (await waiting()) - toRun;
  const killed = await killWorkers(async () => (await waiting()) <= goal);
  const ranSeconds = (performance.now() - runAt) / 1_000;
  // The jobs of killed workers end once their locks have expired.
  const begun = { status: "in_progress", job: "media", startedAt: { $lt: new Date() } };
  while ((await stores.mongo.collection("detachedCalls").countDocuments(begun)) > 0) await wait(1_000);
  const counts = await compareEnded();
  const repeated = [...asked].filter(([, count]) => count > 1);
  if (repeated.length > 0) failures.push(`${repeated.length} texts were asked for more than once`);
  const { ok, difference_usd } = await service.admin("GET", "/ledger/check");
  if (!ok) failures.push(`the ledger does not match the balances: ${String(difference_usd)}`);
  say(
    `${whole(toRun)} jobs left the queue in ${whole(ranSeconds)} s while ${killed} workers were killed; ended: ${JSON.stringify(counts)}; the provider got ${whole(asked.size)} texts, ${repeated.length} of them twice; difference ${String(difference_usd)}`,
  );
  for (const failure of failures.slice(0, 20)) say(`failed: ${failure}`);
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  await agent.destroy();
  await stores.close();
  await service.stop();
  provider.close();
  provider.closeAllConnections();
}
await rm(dataDir, { recursive: true, force: true });
