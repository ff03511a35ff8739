import { type Bench, serviceGateway } from "./bench.ts";
import { medianRate, type Round } from "./measure.ts";
import { kindOf, pacedLoads } from "./scenarios.ts";
import type { Target } from "./workload.ts";

export async function warmUp({ scenarios, gateways, run }: Bench): Promise<void> {
  for (const stream of [false, true]) await run(scenarios.warmUp(stream), gateways);
}

/** Every load through every gateway, or only the load given by `connections`. */
export async function measureSpeed(bench: Bench, connections?: number): Promise<Round[]> {
  const { scenarios, gateways, run } = bench;
  const rounds: Round[] = [];
  const measure = async (scenario: Parameters<Bench["run"]>[0]) => {
    const own = await run(scenario, gateways);
    rounds.push(...own);
    return Math.min(...gateways.map((gateway) => medianRate(own.filter((round) => round.gateway === gateway))));
  };
  for (const stream of [false, true]) {
    if (connections !== undefined) {
      await measure(scenarios.closed(stream, connections));
      continue;
    }
    await measure(scenarios.closed(stream, 1));
    await measure(scenarios.closed(stream, 10));
    const slowestPerSecond = await measure(scenarios.closed(stream, 50));
    await measure(scenarios.steady(stream, Math.max(1, Math.round(slowestPerSecond / 2))));
    await measure(scenarios.slowProvider(stream));
  }
  return rounds;
}

/** Streams at the pace of a real model. */
export async function measureStreams({ scenarios, gateways, run }: Bench): Promise<Round[]> {
  const rounds: Round[] = [];
  const through = gateways.filter(({ name }) => name !== "direct");
  for (const load of pacedLoads) rounds.push(...(await run(scenarios.paced(load), through)));
  return rounds;
}

const sizes = [
  { apis: 1, workers: 1 },
  { apis: 1, workers: 2 },
  { apis: 1, workers: 3 },
  { apis: 2, workers: 3 },
] as const;

const count = (number: number, name: string) => `${number} ${name}${number === 1 ? "" : "s"}`;

/** More workers and another API instance, compared with the single process of Portkey's gateway. */
export async function measureScaling(bench: Bench): Promise<Round[]> {
  const { scenarios, gateways, service, quick, run } = bench;
  if (!service) return [];
  const rounds: Round[] = [];
  const portkey = gateways.filter(({ name }) => name === "portkey");
  for (const { apis, workers } of sizes) {
    const [first, ...others] = (await service.scale(apis, workers)).map((origin) => ({ ...service.target, origin }));
    const own = serviceGateway(service, [first as Target, ...others]);
    for (const stream of [false, true]) {
      await run(scenarios.warmUp(stream, 2 + 2 * workers), [own]);
      const title = `${kindOf(stream)}, ${count(apis, "API instance")}, ${count(workers, "worker")}`;
      const scenario = { ...scenarios.closed(stream, 50), rounds: quick ? 1 : 3, title };
      rounds.push(...(await run(scenario, [...portkey, own])));
    }
  }
  await service.scale(1, 1);
  return rounds;
}
