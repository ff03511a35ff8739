/**
 * Batches in numbers: `npm run bench:batches -- [lines] [rounds]`. Sends batches of `local/embeddings` and of `local/chat`, and
 * beside them live calls at 50 connections with the same body, in alternating rounds. Prints the rates and the memory of API and
 * worker, how fast a file is validated, and what a batch costs live calls that run beside it. Exits with 1 if lines run at
 * less than half the rate of live calls, if a file is validated at less than 20 MB/s, or if the money is not exact. About
 * six minutes with the defaults.
 */

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { runLoad } from "./load.ts";
import { residentBytes } from "./processes.ts";
import { expectSettled, noLimits, openKey, startProcesses } from "./service.ts";
import { connectStores } from "./stores.ts";
import { mebi, median, table, times, whole } from "./table.ts";

const [lines = 50_000, rounds = 1] = process.argv.slice(2).map(Number);
const say = (text: string) => void process.stdout.write(`${text}\n`);
const connections = 50;
const liveMs = 15_000;
const megabyte = 1024 * 1024;
const failures: string[] = [];

const dataDir = join(import.meta.dirname, "../../.data/bench-batches");
await rm(dataDir, { recursive: true, force: true });
await mkdir(dataDir, { recursive: true });
const service = await startProcesses({
  dataDir,
  env: { BATCH_CONCURRENCY_PER_ACCOUNT: "128", LOG_LEVEL: "warn" },
  onProgress: say,
});
const stores = await connectStores(service.storesEnv);
const { key } = await openKey(service.admin, { usd: "1000000", limits: noLimits });
const headers = { authorization: `Bearer ${key}` };

interface Kind {
  readonly endpoint: string;
  readonly body: (n: number) => object;
  readonly end: string;
}
const kinds: Readonly<Record<string, Kind>> = {
  "local/embeddings": {
    endpoint: "/v1/embeddings",
    body: (n) => ({ model: "local/embeddings", input: `The quick brown fox ${n}.` }),
    end: "}",
  },
  "local/chat": {
    endpoint: "/v1/chat/completions",
    body: (n) => ({
      model: "local/chat",
      max_tokens: 50,
      messages: [{ role: "user", content: `The quick brown fox ${n}.` }],
    }),
    end: "}",
  },
};

interface Batch {
  readonly id: string;
  readonly status: string;
  readonly request_counts: { readonly completed: number; readonly failed: number };
  readonly in_progress_at: number;
  readonly x_cost_usd: string;
}

async function send<Body>(method: string, path: string, body?: FormData | object): Promise<Body> {
  const isForm = body instanceof FormData;
  const answer = await fetch(`${service.origin}${path}`, {
    method,
    headers: { ...headers, ...(body && !isForm && { "content-type": "application/json" }) },
    ...(body && { body: isForm ? body : JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Body;
}

async function upload(content: string): Promise<string> {
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob([content]), "in.jsonl");
  return (await send<{ id: string }>("POST", "/v1/files", form)).id;
}

const fileOf = ({ endpoint, body }: Kind, count: number) =>
  Array.from({ length: count }, (_, n) =>
    JSON.stringify({ custom_id: `line-${n}`, method: "POST", url: endpoint, body: body(n) }),
  ).join("\n");

const create = async ({ endpoint }: Kind, file: string) =>
  send<Batch>("POST", "/v1/batches", { input_file_id: file, endpoint, completion_window: "24h" });

async function until(id: string, isReached: (batch: Batch) => boolean): Promise<Batch> {
  for (;;) {
    const batch = await send<Batch>("GET", `/v1/batches/${id}`);
    if (isReached(batch)) return batch;
    if (["failed", "expired", "cancelled"].includes(batch.status)) throw new Error(JSON.stringify(batch));
    await wait(100);
  }
}

/** Lines a second, from the end of the validation to the end of the batch. */
async function runBatch(kind: Kind): Promise<number> {
  const { id } = await create(kind, await upload(fileOf(kind, lines)));
  await until(id, ({ status }) => status !== "validating");
  const startedAt = performance.now();
  const batch = await until(id, ({ status }) => status === "completed");
  const { completed, failed } = batch.request_counts;
  if (completed !== lines || failed !== 0) failures.push(`${id}: ${completed} of ${lines} lines completed`);
  return (lines * 1_000) / (performance.now() - startedAt);
}

const live = (kind: Kind, durationMs = liveMs) =>
  runLoad({
    targets: [
      { origin: service.origin, path: kind.endpoint, headers: { ...headers, "content-type": "application/json" } },
    ],
    body: JSON.stringify(kind.body(1)),
    end: kind.end,
    pace: { kind: "closed", connections },
    durationMs,
    timeoutMs: 30_000,
  });

const memory = () =>
  Object.fromEntries(service.running().map((each) => [each.name, mebi(residentBytes(each))] as const));

/** The size of a file over the time from the creation of its batch to the end of the validation. */
async function validate(kind: Kind): Promise<number> {
  const long = { ...kind, body: (n: number) => ({ ...kind.body(n), user: "x".repeat(3_000) }) };
  const content = fileOf(long, 25_000);
  const file = await upload(content);
  const startedAt = performance.now();
  const { id } = await create(kind, file);
  await until(id, ({ status }) => status !== "validating");
  const seconds = (performance.now() - startedAt) / 1_000;
  await send("POST", `/v1/batches/${id}/cancel`);
  await until(id, ({ status }) => status === "completed").catch(() => undefined);
  return content.length / megabyte / seconds;
}

try {
  const rows: string[][] = [];
  for (const [name, kind] of Object.entries(kinds)) {
    const rates = { lines: [] as number[], live: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      rates.live.push((await live(kind)).perSecond);
      rates.lines.push(await runBatch(kind));
    }
    const ratio = median(rates.lines) / median(rates.live);
    if (ratio < 0.5) failures.push(`${name}: ${times(ratio)} of the live rate`);
    rows.push([name, whole(median(rates.live)), whole(median(rates.lines)), times(ratio)]);
  }
  say(table(["", "live calls a second", "lines a second", "ratio"], rows));
  say(`memory in MiB after ${whole(lines)} lines each: ${JSON.stringify(memory())}`);

  const chat = kinds["local/chat"] as Kind;
  const perSecond = await validate(chat);
  if (perSecond < 20) failures.push(`a file is validated at ${perSecond.toFixed(1)} MB/s`);
  say(`validation: ${perSecond.toFixed(0)} MB/s`);

  const alone = await live(chat);
  const { id } = await create(chat, await upload(fileOf(chat, lines)));
  await until(id, ({ status }) => status !== "validating");
  const beside = await live(chat);
  await send("POST", `/v1/batches/${id}/cancel`);
  await until(id, ({ status }) => status === "completed").catch(() => undefined);
  const rate = beside.perSecond / alone.perSecond;
  const p95 = beside.latencyMs.p95 / alone.latencyMs.p95;
  if (rate < 0.8 || p95 > 2) failures.push("a batch slows live calls down");
  say(`live calls beside a batch: ${times(rate)} the rate, ${times(p95)} the 95th percentile`);
  await expectSettled(service);
  for (const failure of failures) say(`failed: ${failure}`);
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  await stores.close();
  await service.stop();
}
await rm(dataDir, { recursive: true, force: true });
