import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureFormats, renderFormats, writeFormatsCatalog } from "./formats.ts";
import { describeMachine } from "./machine.ts";
import { type Gateway, measureRound, measureScenario, type Round, type Scenario } from "./measure.ts";
import { portkeyVersion, startPortkey } from "./portkey.ts";
import { freeOrigin, type Measured, measured, startNode } from "./processes.ts";
import { profileWhile, summarize } from "./profile.ts";
import { medianRate, type Report, renderReport } from "./report.ts";
import { type Service, startService } from "./service.ts";
import { measureUploads, renderUploads } from "./uploads.ts";
import { proveTarget, type Target } from "./workload.ts";

/**
 * npm run bench -- [--quick] [--profile] [--uploads] [--formats] [--gateways direct,portkey,service] [--connections 50]
 *
 * Measures the service beside Portkey's gateway and beside no gateway at all, and writes docs/benchmarks/results.md.
 * `--quick`: few short rounds, printed only. `--connections`: this one load, printed only.
 * `--uploads`: ten large uploads at once into the service, written to docs/benchmarks/uploads.md.
 * `--formats`: streams of every caller's format to every provider's, written to docs/benchmarks/conversion.md.
 * `--profile`: the service alone, with a CPU profile of API and worker.
 * Whatever is started here ends with this process, also when that is killed.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    profile: { type: "boolean", default: false },
    uploads: { type: "boolean", default: false },
    formats: { type: "boolean", default: false },
    gateways: { type: "string" },
    connections: { type: "string" },
  },
});
const wanted = new Set(
  (
    options.gateways ?? (options.profile || options.uploads || options.formats ? "service" : "direct,portkey,service")
  ).split(","),
);
const command = ["npm run bench", ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : [])].join(" ");
const root = join(import.meta.dirname, "../..");
const dataDir = join(root, ".data/bench");
const benchmarks = join(root, "docs/benchmarks");
const say = (text: string) => process.stdout.write(`${text}\n`);

interface Bench {
  readonly gateways: readonly Gateway[];
  readonly processes: readonly Measured[];
  readonly service: Service | undefined;
  readonly setDelay: (delayMs: number) => Promise<void>;
}

async function start(stops: (() => Promise<void>)[]): Promise<Bench> {
  const mockAt = await freeOrigin();
  const mock = await startNode({
    name: "mock",
    args: [join(import.meta.dirname, "mock.ts")],
    env: { PORT: String(mockAt.port) },
    logDir: dataDir,
    readyUrl: mockAt.origin,
  });
  stops.unshift(mock.stop);
  const shared = { mockOrigin: mockAt.origin, logDir: dataDir, onProgress: say };
  const gateways: Gateway[] = [];
  const processes = [measured("generator", process), measured("mock", mock)];
  const add = async (name: Gateway["name"], target: Target, own: readonly Measured[]) => {
    await proveTarget(name, target);
    gateways.push({ name, target });
    processes.push(...own);
  };

  if (wanted.has("direct")) {
    const headers = { "content-type": "application/json", authorization: "Bearer bench" };
    const target = { origin: mockAt.origin, path: "/v1/chat/completions", headers, model: "gpt-4.1-mini" };
    await add("direct", target, []);
  }
  if (wanted.has("portkey")) {
    const portkey = await startPortkey(shared);
    stops.unshift(portkey.stop);
    await add("portkey", portkey.target, portkey.processes);
  }
  let service: Service | undefined;
  if (wanted.has("service")) {
    const env = options.formats ? { CATALOG_FILE: await writeFormatsCatalog(dataDir, mockAt.origin) } : {};
    service = await startService({ ...shared, dataDir, inspect: options.profile, env });
    stops.unshift(service.stop);
    await add("service", service.target, service.processes);
  }
  const setDelay = async (delayMs: number) => {
    await fetch(`${mockAt.origin}/delay`, { method: "PUT", body: String(delayMs) });
  };
  return { gateways, processes, service, setDelay };
}

const kindOf = (stream: boolean) => (stream ? "stream" : "JSON");

function closed(stream: boolean, connections: number): Scenario {
  const [rounds, durationMs] = options.quick ? [2, 1_500] : [5, 4_000];
  const title = `${kindOf(stream)}, ${connections} connection${connections === 1 ? "" : "s"}`;
  return { title, stream, pace: { kind: "closed", connections }, delayMs: 0, rounds, durationMs };
}

/** V8 needs this long to compile the hot code; before that a call costs up to twice as much. */
function warmUp(stream: boolean): Scenario {
  return { ...closed(stream, 50), title: "warm-up", durationMs: options.quick ? 3_000 : 10_000 };
}

function slowProvider(stream: boolean): Scenario {
  const [rounds, durationMs] = options.quick ? [1, 3_000] : [3, 5_000];
  const title = `${kindOf(stream)}, 500 connections, answers after 2 s`;
  return { title, stream, pace: { kind: "closed", connections: 500 }, delayMs: 2_000, rounds, durationMs };
}

function steady(stream: boolean, perSecond: number): Scenario {
  const [rounds, durationMs] = options.quick ? [2, 1_500] : [3, 4_000];
  const title = `${kindOf(stream)}, ${perSecond} calls/s, open loop`;
  return { title, stream, pace: { kind: "open", perSecond }, delayMs: 0, rounds, durationMs };
}

async function measure({ gateways, processes, setDelay }: Bench): Promise<{ warmUps: Round[]; rounds: Round[] }> {
  const rounds: Round[] = [];
  const run = async (scenario: Scenario) => {
    await setDelay(scenario.delayMs);
    const own = await measureScenario(scenario, gateways, processes);
    rounds.push(...own);
    const rateOf = ({ name }: Gateway) => medianRate(own.filter(({ gateway }) => gateway === name));
    say(`${scenario.title}: ${gateways.map((each) => `${each.name} ${rateOf(each).toFixed(0)}/s`).join(", ")}`);
    return Math.min(...gateways.map(rateOf));
  };
  const warmUps: Round[] = [];
  for (const stream of [false, true])
    for (const gateway of gateways) warmUps.push(await measureRound(warmUp(stream), gateway, processes));
  for (const stream of [false, true]) {
    if (options.connections !== undefined) {
      await run(closed(stream, Number(options.connections)));
      continue;
    }
    await run(closed(stream, 1));
    await run(closed(stream, 10));
    const slowestPerSecond = await run(closed(stream, 50));
    await run(steady(stream, Math.max(1, Math.round(slowestPerSecond / 2))));
    await run(slowProvider(stream));
  }
  return { warmUps, rounds };
}

const callsThrough = (name: Gateway["name"], rounds: readonly Round[]) =>
  rounds.reduce((total, { gateway, outcome }) => total + (gateway === name ? outcome.calls : 0), 0);

async function compare(bench: Bench): Promise<void> {
  const { service } = bench;
  const { warmUps, rounds } = await measure(bench);
  const provingCalls = 2;
  const machine = [
    new Date().toISOString().slice(0, 10),
    ...describeMachine(service?.stores ?? []),
    ...(wanted.has("portkey") ? [`@portkey-ai/gateway ${portkeyVersion}`] : []),
  ];
  const answered = callsThrough("service", [...warmUps, ...rounds]) + provingCalls;
  const books = service && { answered, paid: await service.paidCalls(), check: await service.check() };
  const report: Report = { rounds, command, machine, ...(books && { books }) };
  const text = renderReport(report);
  say(`\n${text}`);
  if (!options.quick && options.connections === undefined) await writeFile(join(benchmarks, "results.md"), text);
}

/** The API's memory under large uploads. */
async function uploads({ service }: Bench): Promise<void> {
  const api = service?.processes.find(({ name }) => name === "api");
  if (!service || !api) throw new Error("--uploads needs the service among the gateways");
  const rounds = await measureUploads(service.target, api);
  const { ok, open_holds } = await service.check();
  if (!ok || open_holds > 0) throw new Error("The books are not in order after the uploads.");
  const machine = [new Date().toISOString().slice(0, 10), ...describeMachine(service.stores)];
  const text = renderUploads(rounds, command, machine);
  say(`\n${text}`);
  await writeFile(join(benchmarks, "uploads.md"), text);
}

/** The cost of conversion between formats. */
async function formats({ service }: Bench): Promise<void> {
  if (!service) throw new Error("--formats needs the service among the gateways");
  const rounds = await measureFormats(service.target, service.processes, options.quick ? 1 : 5);
  const { ok, open_holds } = await service.check();
  if (!ok || open_holds > 0) throw new Error("The books are not in order after the streams.");
  const machine = [new Date().toISOString().slice(0, 10), ...describeMachine(service.stores)];
  const text = renderFormats(rounds, command, machine);
  say(`\n${text}`);
  if (!options.quick) await writeFile(join(benchmarks, "conversion.md"), text);
}

/** Where API and worker spend their time at 50 connections. */
async function profile({ gateways, processes, service }: Bench): Promise<void> {
  const gateway = gateways.find(({ name }) => name === "service");
  if (!gateway || !service) throw new Error("--profile needs the service among the gateways");
  const folder = join(root, ".data/bench-profiles");
  await mkdir(folder, { recursive: true });
  for (const stream of [false, true]) {
    const scenario = { ...closed(stream, 50), durationMs: options.quick ? 5_000 : 15_000 };
    await measureRound(warmUp(stream), gateway, processes);
    const round = measureRound(scenario, gateway, processes);
    const profiles = await Promise.all(service.inspectors.map(({ port }) => profileWhile(port, round)));
    const { outcome } = await round;
    for (const [index, each] of profiles.entries()) {
      const name = `${service.inspectors[index]?.name}-${kindOf(stream).toLowerCase()}`;
      const file = join(folder, `${name}.cpuprofile`);
      await writeFile(file, JSON.stringify(each));
      say(`\n## ${name}: ${outcome.perSecond.toFixed(0)} calls/s under the profiler\n\n${summarize(each)}\n${file}`);
    }
  }
}

const stops: (() => Promise<void>)[] = [];
await rm(dataDir, { recursive: true, force: true });
await mkdir(dataDir, { recursive: true });
try {
  const bench = await start(stops);
  await (options.uploads ? uploads : options.formats ? formats : options.profile ? profile : compare)(bench);
} finally {
  for (const stop of stops) await stop();
}
await rm(dataDir, { recursive: true, force: true });
