import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { table, whole } from "../../bench/table.ts";
import { readAftermath } from "./aftermath.ts";
import { createBatches, planBatches, readBatch, untilEnded } from "./batch-load.ts";
import { type BatchFindings, type BatchLog, examineBatches, interruptedParts } from "./batch-oracles.ts";
import { runFaults } from "./faults.ts";
import { dataDirOf, runIn, say } from "./frame.ts";
import { planFaults } from "./plan.ts";
import { createRandom } from "./random.ts";
import { toJson } from "./report.ts";
import type { FaultRecord } from "./run-log.ts";

/**
 * npm run chaos:batches -- [--seed 1] [--lines 50000] [--minutes 45] [--network namespaces|proxies] [--report file] [--apis 2]
 * [--workers 2]
 *
 * Batches of several accounts, of chat and embeddings, while processes, stores, network and providers fail until the last
 * batch has ended: docs/operations/chaos.md. Exits with 1 when an invariant is broken, or if the batches have not ended after
 * `--minutes`.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: "string" },
    lines: { type: "string", default: "50000" },
    minutes: { type: "string", default: "45" },
    network: { type: "string" },
    report: { type: "string" },
    apis: { type: "string", default: "2" },
    workers: { type: "string", default: "2" },
  },
});
const seed = Number(options.seed ?? Math.floor(Math.random() * 1e6));
const [lines, minutes] = [Number(options.lines), Number(options.minutes)];
if (!(lines >= 6 && lines <= 1_000_000)) throw new Error("--lines: at least 6, at most 1000000");
if (!(minutes > 0 && minutes <= 600)) throw new Error("--minutes: more than 0, at most 600");
const network = options.network;
if (network !== undefined && network !== "namespaces" && network !== "proxies")
  throw new Error("--network: namespaces or proxies");

const counted = (names: readonly string[]) =>
  [...Map.groupBy(names.toSorted(), (name) => name)].map(([name, of]) => [name, whole(of.length)]);

function render(log: BatchLog, findings: BatchFindings, faults: readonly FaultRecord[], seconds: number): string {
  const results = log.batches.flatMap((batch) => batch.results);
  const byMarker = Map.groupBy(log.runs, ({ marker }) => marker);
  const again = [...byMarker.values()].filter((runs) => runs.filter(({ billNanoUsd }) => billNanoUsd > 0n).length > 1);
  const cost = log.batches.reduce((total, { costNanoUsd }) => total + costNanoUsd, 0n);
  const charged = log.entries.reduce(
    (total, { kind, amountNanoUsd }) => total - (kind === "usage" ? amountNanoUsd : 0n),
    0n,
  );
  const broken = Object.entries(findings).filter(([, found]) => found.length > 0);
  return [
    table(["fault", "times"], counted(faults.map(({ kind }) => kind))),
    table(
      ["result", "lines"],
      counted(results.map(({ isError, status }) => `${isError ? "error" : "output"} ${status}`)),
    ),
    table(
      ["batches", ""],
      [
        ["batches", whole(log.batches.length)],
        ["lines", whole(results.length)],
        ["seconds", whole(seconds)],
        ["requests to providers", whole(log.runs.length)],
        ["lines that a provider answered more than once", whole(again.length)],
        ["answers that cost nothing", whole(results.filter((each) => !each.isError && each.costNanoUsd === 0n).length)],
        ["parts that were not recorded", whole(interruptedParts(log).length)],
        ["cost of the batches, nano-USD", String(cost)],
        ["charged in the ledger, nano-USD", String(charged)],
        ["difference of the service's own check, nano-USD", String(log.checkDifferenceNanoUsd)],
      ],
    ),
    table(
      ["invariant", "violations"],
      Object.entries(findings).map(([name, found]) => [name, whole(found.length)]),
    ),
    ...broken.map(([name, found]) => [`${name}:`, ...found.slice(0, 10).map((each) => `  ${each}`)].join("\n")),
  ].join("\n\n");
}

const dataDir = dataDirOf("chaos-batches");
/** More of what follows a death happens in the same time. */
const env = { API_TIMEOUT_MS: "10000" };
await runIn(dataDir, { apis: Number(options.apis), workers: Number(options.workers), network, env }, async (world) => {
  say(`--seed ${seed} --lines ${lines}. Processes and stores are cut off by ${world.network.means}.`);
  const created = await createBatches(world, planBatches(seed, lines));
  const startedAt = Date.now();
  const limitMs = minutes * 60_000;
  const ended = new AbortController();
  const planned = planFaults(createRandom(seed), limitMs);
  const [faults] = await Promise.all([
    runFaults(world, planned, startedAt, say, ended.signal),
    untilEnded(world, created, limitMs, say).finally(() => ended.abort()),
  ]);
  const seconds = (Date.now() - startedAt) / 1_000;
  say(`All batches ended after ${Math.round(seconds)} s, and ${faults.length} faults.`);
  const aftermath = await readAftermath(world, { calls: [], faults }, say);
  const batches = await Promise.all(created.map((each) => readBatch(world, each)));
  const { providers, crashes, peakBytes } = world;
  const lineDocuments = await world.stores.mongo.client.db().collection("batchLines").countDocuments({});
  const log = { batches, runs: providers.runs, lineDocuments, crashes, peakBytes, ...aftermath };
  const findings = examineBatches(log);
  say(`\n${render(log, findings, faults, seconds)}\n`);
  if (options.report !== undefined) await writeFile(options.report, toJson({ seed, lines, findings, faults, ...log }));
  const broken = Object.values(findings).some((found) => found.length > 0);
  say(broken ? `BROKEN: --seed ${seed}; the logs are in ${dataDir}` : `All invariants hold: --seed ${seed}`);
  return broken;
});
