import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureAccounts, noAccounts } from "./accounts.ts";
import { type Bench, processOf, runBench, serviceGateway, theService } from "./bench.ts";
import { cacheGateways, measureCache, renderCache } from "./cache.ts";
import { renderChart } from "./chart.ts";
import { measureExhaustion, payable, renderExhaustion } from "./exhaustion.ts";
import { measureFormats, renderFormats, writeFormatsCatalog } from "./formats.ts";
import { measureConnections, measureLedger, measureOpenStreams, renderHeld, withoutBounds } from "./held.ts";
import { describeMachine } from "./machine.ts";
import { measureRound } from "./measure.ts";
import { measureScaling, measureSpeed, measureStreams, warmUp } from "./parts.ts";
import { portkeyVersion } from "./portkey.ts";
import { profileWhile, summarize, systemCallsWhile } from "./profile.ts";
import { type Results, renderReport } from "./report.ts";
import { kindOf } from "./scenarios.ts";
import { expectSettled, type Service } from "./service.ts";
import { cpuTable, storesTable } from "./tables.ts";
import { measureUploads, renderUploads } from "./uploads.ts";

/**
 * npm run bench -- [--quick] [--parts speed,streams,scaling,accounts] [--gateways direct,portkey,service] [--connections 50]
 *   [--history 10000000]
 * npm run bench -- --uploads | --formats | --held | --cache | --exhaustion | --profile [--cache | --evenly 500]
 *
 * Measures the service alongside Portkey's gateway and direct calls, and writes docs/benchmarks/results.md and its
 * chart; about 25 minutes.
 * `--quick`: few short rounds, printed only. `--parts`: these parts, printed only. `--connections`: this one load, printed only.
 * `--history`: the ledger entries of the account with the longest history, by default a million, printed only.
 * `--uploads`: ten large uploads at once into the service, written to docs/benchmarks/uploads.md.
 * `--formats`: streams of every caller's format to every provider's, written to docs/benchmarks/conversion.md.
 * `--held`: the resources of open streams, ledger entries and processes, written to docs/benchmarks/held.md.
 * `--cache`: hits and misses of the response cache beside calls without it, written to docs/benchmarks/response-cache.md.
 * `--exhaustion`: callers who try to exhaust the service's memory, and the effect on others; printed.
 * `--profile`: the service alone, with a CPU profile of API and worker; at 50 connections, or as `--connections` says, or of
 * this many realistic streams that begin `--evenly`. With `--cache`, of hits. Where `strace` is installed, also the system
 * calls of a call.
 * Everything started here ends with this process, even when it is killed.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    profile: { type: "boolean", default: false },
    uploads: { type: "boolean", default: false },
    formats: { type: "boolean", default: false },
    held: { type: "boolean", default: false },
    cache: { type: "boolean", default: false },
    exhaustion: { type: "boolean", default: false },
    parts: { type: "string" },
    gateways: { type: "string" },
    connections: { type: "string" },
    history: { type: "string" },
    evenly: { type: "string" },
  },
});
const all = ["speed", "streams", "scaling", "accounts"];
const parts = new Set(options.parts?.split(",") ?? (options.connections === undefined ? all : ["speed"]));
for (const part of parts) if (!all.includes(part)) throw new Error(`--parts: ${part} is none of ${all.join(", ")}`);
/** Measures the service alone. */
const chosen = Object.entries({ profile, uploads, formats, held, cache, exhaustion }).find(
  ([name]) => options[name as "profile"],
);
const wanted = new Set((options.gateways ?? (chosen ? "service" : "direct,portkey,service")).split(","));
const isWhole =
  !options.quick &&
  [options.parts, options.gateways, options.connections, options.history].every((each) => each === undefined);
const command = ["npm run bench", ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : [])].join(" ");
const root = join(import.meta.dirname, "../..");
const benchmarks = join(root, "docs/benchmarks");
const say = (text: string) => process.stdout.write(`${text}\n`);

const machineOf = (service: Service | undefined) => [
  new Date().toISOString().slice(0, 10),
  ...describeMachine(service?.servers ?? []),
];

async function compare(bench: Bench): Promise<void> {
  const startedAt = performance.now();
  await warmUp(bench);
  const connections = options.connections === undefined ? undefined : Number(options.connections);
  const longHistory = Number(options.history ?? (options.quick ? 100_000 : 1_000_000));
  const results: Results = {
    command,
    machine: [...machineOf(bench.service), ...(wanted.has("portkey") ? [`@portkey-ai/gateway ${portkeyVersion}`] : [])],
    speed: parts.has("speed") ? await measureSpeed(bench, connections) : [],
    streams: parts.has("streams") ? await measureStreams(bench) : [],
    scaling: parts.has("scaling") ? await measureScaling(bench) : [],
    accounts: parts.has("accounts") ? await measureAccounts(bench, longHistory) : noAccounts,
    checks: bench.checks,
    minutes: (performance.now() - startedAt) / 60_000,
  };
  const text = renderReport(results);
  say(`\n${text}`);
  if (!isWhole) return;
  await writeFile(join(benchmarks, "results.md"), text);
  await writeFile(join(benchmarks, "results.svg"), renderChart([...results.speed, ...results.streams]));
}

/** Prints a page of results, and writes it unless the rounds were few and short. */
async function publish(page: string, text: string): Promise<void> {
  say(`\n${text}`);
  if (!options.quick) await writeFile(join(benchmarks, page), text);
}

async function uploads(bench: Bench): Promise<void> {
  const service = theService(bench);
  const rounds = await measureUploads(service.target, processOf(service, "api"));
  await expectSettled(service);
  await publish("uploads.md", renderUploads(rounds, command, machineOf(service)));
}

async function formats(bench: Bench): Promise<void> {
  const service = theService(bench);
  const rounds = await measureFormats(service.target, service.processes(), options.quick ? 1 : 5);
  await expectSettled(service);
  await publish("conversion.md", renderFormats(rounds, command, machineOf(service)));
}

/** The figures from which scaling is calculated. */
async function held(bench: Bench): Promise<void> {
  const service = theService(bench);
  for (const stream of [false, true]) await bench.run(bench.scenarios.warmUp(stream), bench.gateways);
  const steps = options.quick ? [200, 400] : [500, 1_000, 2_000];
  const readings = await measureOpenStreams(service, bench, steps);
  await expectSettled(service);
  const connections = await measureConnections(service);
  const ledger = await measureLedger(service, options.quick ? 20_000 : 200_000);
  await publish("held.md", renderHeld({ readings, ledger, connections, command, machine: machineOf(service) }));
}

async function cache(bench: Bench): Promise<void> {
  const results = await measureCache(bench);
  await publish("response-cache.md", renderCache(results, command, machineOf(bench.service)));
}

/** Memory of API and worker, and the latency of other callers. */
async function exhaustion(bench: Bench): Promise<void> {
  const service = theService(bench);
  await bench.run(bench.scenarios.warmUp(false), bench.gateways);
  const rounds = await measureExhaustion(service, bench);
  await expectSettled(service);
  say(`\n${renderExhaustion(rounds, command, machineOf(service))}`);
}

/** The processor time of API and worker by function. */
async function profile(bench: Bench): Promise<void> {
  const { scenarios } = bench;
  const service = theService(bench);
  const { inspectors } = service;
  const gateway = options.cache ? cacheGateways(service).hit : serviceGateway(service);
  const folder = join(root, ".data/bench-profiles");
  await mkdir(folder, { recursive: true });
  const { evenly } = options;
  for (const stream of evenly === undefined ? [false, true] : [true]) {
    const load = evenly
      ? scenarios.paced({ connections: Number(evenly), begun: "evenly" })
      : scenarios.closed(stream, Number(options.connections ?? 50));
    const scenario = { ...load, durationMs: options.quick ? 5_000 : 15_000 };
    await bench.run(scenarios.warmUp(stream), [gateway]);
    const [plain] = await bench.run({ ...scenario, rounds: 1 }, [gateway]);
    if (plain) say(`\n${cpuTable([plain], "portkey")}\n\n${storesTable([plain])}`);
    for (const { name, pid } of gateway.processes.filter(({ name }) => name === "api" || name === "worker"))
      say(await systemCallsWhile(name, pid, measureRound(scenario, gateway, gateway.processes)));
    const round = measureRound(scenario, gateway, gateway.processes);
    const profiles = await Promise.all(inspectors.map(({ port }) => profileWhile(port, round)));
    const { outcome } = await round;
    for (const [index, each] of profiles.entries()) {
      const name = `${inspectors[index]?.name}-${kindOf(stream).toLowerCase()}${options.cache ? "-hits" : ""}`;
      const file = join(folder, `${name}.cpuprofile`);
      await writeFile(file, JSON.stringify(each));
      say(`\n## ${name}: ${outcome.perSecond.toFixed(0)} calls/s under the profiler\n\n${summarize(each)}\n${file}`);
    }
  }
}

await runBench("bench", chosen ? chosen[1] : compare, {
  wanted,
  quick: options.quick,
  inspect: options.profile,
  env: async ({ dataDir, mockOrigin, stops }) => ({
    ...(options.formats && { CATALOG_FILE: await writeFormatsCatalog(dataDir, mockOrigin) }),
    ...(options.held && (await withoutBounds(dataDir))),
    ...(options.exhaustion && (await payable(stops))),
  }),
});
