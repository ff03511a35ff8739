import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Gateway, measureScenario, medianRate, type Round, type Scenario } from "./measure.ts";
import type { MockState } from "./mock.ts";
import { startPortkey } from "./portkey.ts";
import { freeOrigin, type Measured, measured, startNode } from "./processes.ts";
import { createScenarios, type Scenarios } from "./scenarios.ts";
import { type LedgerCheck, type Service, startService } from "./service.ts";
import { sum } from "./table.ts";
import { proveTarget, type Target } from "./workload.ts";

/** The ledger and the balances after a scenario. */
export interface MoneyCheck {
  readonly title: string;
  /** Calls answered in full, and calls paid for. */
  readonly answered: number;
  readonly paid: number;
  readonly failed: number;
  readonly check: LedgerCheck;
}

export const isSettled = ({ answered, paid, failed, check }: MoneyCheck): boolean =>
  check.ok &&
  check.undecided === 0 &&
  check.open_holds === 0 &&
  Number(check.difference_usd) === 0 &&
  (failed > 0 || answered === paid);

/** The running gateways. */
export interface Bench {
  readonly scenarios: Scenarios;
  readonly quick: boolean;
  readonly gateways: readonly Gateway[];
  readonly service: Service | undefined;
  readonly mockOrigin: string;
  /** The checks of all scenarios so far. */
  readonly checks: readonly MoneyCheck[];
  /** Runs a scenario's rounds, then checks the money. */
  readonly run: (scenario: Scenario, gateways: readonly Gateway[]) => Promise<Round[]>;
  /** All processes that run now. */
  readonly processes: () => readonly Measured[];
  readonly say: (text: string) => void;
}

interface BenchOptions {
  /** The names of the gateways to measure. */
  readonly wanted: ReadonlySet<string>;
  readonly quick: boolean;
  readonly inspect: boolean;
  readonly dataDir: string;
  readonly env: (place: Place) => Promise<Readonly<Record<string, string>>>;
  /** Cleanup at the end, run in reverse order. */
  readonly stops: (() => Promise<void>)[];
}

export const serviceGateway = (
  service: Service,
  targets: readonly [Target, ...Target[]] = [service.target],
): Gateway => ({
  name: "service",
  targets,
  processes: service.processes(),
  stores: service.stores,
});

interface Place extends Pick<BenchOptions, "dataDir" | "stops"> {
  readonly mockOrigin: string;
}

const say = (text: string) => void process.stdout.write(`${text}\n`);

/** Starts gateways in an empty directory under `.data`, measures them, and stops them. By default only the service. */
export async function runBench(
  name: string,
  measure: (bench: Bench) => Promise<void>,
  options: Partial<Omit<BenchOptions, "dataDir" | "stops">> = {},
): Promise<void> {
  const dataDir = join(import.meta.dirname, "../../.data", name);
  const stops: BenchOptions["stops"] = [];
  const usual = { wanted: new Set(["service"]), quick: true, inspect: false, env: async () => ({}) };
  await rm(dataDir, { recursive: true, force: true });
  await mkdir(dataDir, { recursive: true });
  try {
    await measure(await startBench({ ...usual, ...options, dataDir, stops }));
  } finally {
    for (const stop of stops) await stop();
  }
  await rm(dataDir, { recursive: true, force: true });
}

export const mockState = async (mockOrigin: string): Promise<MockState> =>
  (await (await fetch(mockOrigin)).json()) as MockState;

export const theService = ({ service }: Bench): Service => {
  if (!service) throw new Error("This needs the service among the gateways.");
  return service;
};

/** The service's only process of this name. */
export function processOf(service: Service, name: string): Measured {
  const found = service.processes().find((each) => each.name === name);
  if (!found) throw new Error(`No ${name} runs.`);
  return found;
}

async function startBench(options: BenchOptions): Promise<Bench> {
  const { wanted, quick, inspect, dataDir, stops } = options;
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
  if (wanted.has("direct")) {
    const headers = { "content-type": "application/json", authorization: "Bearer bench" };
    const target = { origin: mockAt.origin, path: "/v1/chat/completions", headers, model: "gpt-4.1-mini" };
    gateways.push({ name: "direct", targets: [target], processes: [] });
  }
  if (wanted.has("portkey")) {
    const { target, processes, stop } = await startPortkey(shared);
    stops.unshift(stop);
    gateways.push({ name: "portkey", targets: [target], processes });
  }
  for (const { name, targets } of gateways) await proveTarget(name, targets[0]);
  let service: Service | undefined;
  if (wanted.has("service")) {
    service = await startService({
      ...shared,
      dataDir,
      inspect,
      env: await options.env({ mockOrigin: mockAt.origin, dataDir, stops }),
    });
    stops.unshift(service.stop);
    gateways.push(serviceGateway(service));
  }

  const common = [measured("generator", process), measured("mock", mock)];
  const processes = (): Measured[] => [
    ...common,
    ...gateways.flatMap((gateway) => (gateway.stores ? [] : gateway.processes)),
    ...(service?.processes() ?? []),
  ];
  const checks: MoneyCheck[] = [];
  let paidBefore = await (service?.paidCalls() ?? 0);
  async function checkMoney(title: string, rounds: readonly Round[]): Promise<void> {
    if (!service) return;
    const own = rounds.filter(({ gateway }) => gateway.stores);
    const check = await service.check();
    const paid = await service.paidCalls();
    const count = (name: "calls" | "failed") => sum(own.map(({ outcome }) => outcome[name]));
    const checked = { title, answered: count("calls"), failed: count("failed"), paid: paid - paidBefore, check };
    paidBefore = paid;
    checks.push(checked);
    if (!isSettled(checked)) say(`The money is not settled after ${title}: ${JSON.stringify(checked)}`);
  }

  const scenarios = createScenarios(quick);
  async function run(scenario: Scenario, through: readonly Gateway[]): Promise<Round[]> {
    await fetch(mockAt.origin, { method: "PUT", body: JSON.stringify(scenario.provider) });
    const rounds = await measureScenario(scenario, through, processes());
    const rateOf = (gateway: Gateway) => medianRate(rounds.filter((round) => round.gateway === gateway)).toFixed(0);
    say(`${scenario.title}: ${through.map((each) => `${each.name} ${rateOf(each)}/s`).join(", ")}`);
    await checkMoney(scenario.title, rounds);
    return rounds;
  }
  return { scenarios, quick, gateways, service, mockOrigin: mockAt.origin, checks, run, processes, say };
}
