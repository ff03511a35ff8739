import { writeFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { table } from "../../bench/table.ts";
import { dataDirOf, logOf, runIn, say } from "./frame.ts";
import { createGauges } from "./gauges.ts";
import { runCalls } from "./load.ts";
import { examine, isBroken } from "./oracles.ts";
import { createPlan } from "./plan.ts";
import { renderRun, toJson } from "./report.ts";
import { type Slope, slopeOf } from "./slopes.ts";
import { ended, type World } from "./world.ts";

/**
 * npm run soak -- [--seed 1] [--minutes 20] [--rate 40] [--report file]
 *
 * A steady mixed load, while a worker is replaced every few minutes. Prints the growth of memory, stores and descriptors,
 * and exits with 1 when something grew that may not: docs/operations/chaos.md.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "20" },
    rate: { type: "string", default: "40" },
    report: { type: "string" },
  },
});
const [seed, minutes, rate] = [Number(options.seed), Number(options.minutes), Number(options.rate)];
const durationMs = minutes * 60_000;
const sampleMs = Math.max(5_000, durationMs / 60);
const replaceMs = durationMs / 5;

async function replaceWorkers(world: World, endAt: number): Promise<void> {
  for (let at = Date.now() + replaceMs; at < endAt - 10_000; at += replaceMs) {
    await wait(at - Date.now());
    // The first one runs from the beginning to the end.
    const old = world.running("worker")[1];
    if (!old) throw new Error("there is only one worker");
    const { name } = await world.start("worker");
    old.mayEnd = true;
    await old.program.kill("SIGTERM");
    world.withdraw(old);
    await ended(old);
    await world.remove(old);
    say(`${old.name} was replaced by ${name}`);
  }
}

function render(slopes: readonly Slope[]): string {
  const number = (value: number) => value.toFixed(Math.abs(value) < 10 ? 2 : 0);
  const verdict = ({ byDesign, isFlat }: Slope) => byDesign ?? (isFlat ? "flat" : "GROWS");
  const head = ["", "an hour", "start", "end", "grew by", "noise", "may grow by", ""];
  const rows = slopes.map((slope) => [
    slope.name,
    ...[slope.perHour, slope.start, slope.end, slope.grownBy, slope.noise, slope.mayGrowBy].map(number),
    verdict(slope),
  ]);
  return table(head, rows);
}

const plan = createPlan({ seed, minutes, rate, calm: true });
say(`--seed ${seed} --minutes ${minutes} --rate ${rate}: ${plan.calls.length} calls`);
await runIn(dataDirOf("soak"), { apis: 2, workers: 2, network: "proxies", inspect: true }, async (world) => {
  const startedAt = Date.now();
  const gauges = createGauges(world, startedAt);
  const sample = async () => {
    for (let at = startedAt; at < startedAt + durationMs; at += sampleMs) {
      await wait(Math.max(0, at - Date.now()));
      await gauges.read().catch((error: Error) => say(`a sample is missing: ${error.message}`));
    }
  };
  const [{ calls }] = await Promise.all([
    runCalls(world, plan.calls, startedAt),
    sample(),
    replaceWorkers(world, startedAt + durationMs),
  ]);
  const series = gauges.series();
  const slopes = series.flatMap((each) => slopeOf(each) ?? []);
  const log = await logOf(world, { calls, faults: [] });
  const findings = examine(log);
  say(`\n${renderRun(log, findings)}\n\n${render(slopes)}`);
  if (options.report !== undefined)
    await writeFile(options.report, toJson({ seed, minutes, rate, slopes, series, findings, ...log }));
  const grows = slopes.filter(({ isFlat }) => !isFlat);
  say(grows.length > 0 ? `GROWS: ${grows.map(({ name }) => name).join(", ")}` : "Everything that should be is flat.");
  return grows.length > 0 || isBroken(findings);
});
