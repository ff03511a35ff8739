import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { runFaults } from "./faults.ts";
import { dataDirOf, logOf, runIn, say } from "./frame.ts";
import { runCalls } from "./load.ts";
import { examine, isBroken } from "./oracles.ts";
import { createPlan } from "./plan.ts";
import { renderRun, toJson } from "./report.ts";

/**
 * npm run chaos -- [--seed 1] [--minutes 3] [--rate 100] [--network namespaces|proxies] [--report file] [--apis 2] [--workers
 * 2]
 *
 * The service in real processes on real stores, under mixed load, while processes, stores, network and providers fail:
 * docs/operations/chaos.md. The same seed, minutes and rate make the same plan. Exits with 1 when an invariant is broken.
 * Everything started here ends with this process, even when it is killed.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string", default: "3" },
    rate: { type: "string", default: "100" },
    network: { type: "string" },
    report: { type: "string" },
    apis: { type: "string", default: "2" },
    workers: { type: "string", default: "2" },
  },
});
const seed = Number(options.seed ?? Math.floor(Math.random() * 1e6));
const [minutes, rate] = [Number(options.minutes), Number(options.rate)];
if (!(minutes > 0 && minutes <= 60)) throw new Error("--minutes: more than 0, at most 60");
if (!(rate > 0 && rate <= 1_000)) throw new Error("--rate: more than 0, at most 1000");
const network = options.network;
if (network !== undefined && network !== "namespaces" && network !== "proxies")
  throw new Error("--network: namespaces or proxies");
const dataDir = dataDirOf("chaos");

const plan = createPlan({ seed, minutes, rate });
say(`--seed ${seed} --minutes ${minutes} --rate ${rate}: ${plan.calls.length} calls, ${plan.faults.length} faults`);
await runIn(dataDir, { apis: Number(options.apis), workers: Number(options.workers), network }, async (world) => {
  say(`Processes and stores are cut off by ${world.network.means}.`);
  const startedAt = Date.now();
  const [{ calls, lateMs }, faults] = await Promise.all([
    runCalls(world, plan.calls, startedAt),
    runFaults(world, plan.faults, startedAt, say),
  ]);
  say(`All calls ended after ${Math.round((Date.now() - startedAt) / 1_000)} s; the latest started ${lateMs} ms late.`);
  const log = await logOf(world, { calls, faults });
  const findings = examine(log);
  say(`\n${renderRun(log, findings)}`);
  if (options.report !== undefined)
    await writeFile(options.report, toJson({ seed, minutes, rate, network: world.network.means, findings, ...log }));
  const broken = isBroken(findings);
  say(broken ? `BROKEN: --seed ${seed}; the logs are in ${dataDir}` : `All invariants hold: --seed ${seed}`);
  return broken;
});
