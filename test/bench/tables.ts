import { availableParallelism } from "node:os";
import type { Outcome } from "./load.ts";
import {
  cpuPerCall,
  type Gateway,
  gatewayCpu,
  medianRate,
  medianRatio,
  ownNames,
  type Round,
  type Scenario,
} from "./measure.ts";
import { mebi, median, ms, sum, table, times, whole } from "./table.ts";

interface Group {
  readonly scenario: Scenario;
  readonly gateway: Gateway;
  readonly rounds: readonly Round[];
}

const common = ["generator", "mock"] as const;

function groupsOf(rounds: readonly Round[]): Group[] {
  const groups = new Map<string, { scenario: Scenario; gateway: Gateway; rounds: Round[] }>();
  for (const round of rounds) {
    const { scenario, gateway } = round;
    const key = `${scenario.title}/${gateway.name}`;
    const group = groups.get(key) ?? { scenario, gateway, rounds: [] };
    group.rounds.push(round);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** The rounds of a scenario through a gateway. */
export const roundsOf = (rounds: readonly Round[], title: string, gateway: string): Round[] =>
  rounds.filter((round) => round.scenario.title === title && round.gateway.name === gateway);

const medianOf = (rounds: readonly Round[], value: (outcome: Outcome) => number) =>
  median(rounds.map(({ outcome }) => value(outcome)));

/** The latency that a gateway adds to a direct call, in ms: the difference of the medians. */
export const addedMs = (
  rounds: readonly Round[],
  title: string,
  gateway: string,
  value: (outcome: Outcome) => number,
): number => medianOf(roundsOf(rounds, title, gateway), value) - medianOf(roundsOf(rounds, title, "direct"), value);

export const latency = ({ latencyMs }: Outcome): number => latencyMs.p50;
export const firstByte = ({ firstByteMs }: Outcome): number => firstByteMs.p50;

/** The number of cores that other programs may use. Above it, rates and latencies are not reproducible. */
const quietCores = 0.1;

export function othersLine(rounds: readonly Round[]): string {
  const cores = rounds.map(({ othersCores }) => othersCores);
  const used = `other programs used ${median(cores).toFixed(2)} cores meanwhile (median), at most ${Math.max(...cores).toFixed(2)}`;
  return median(cores) > quietCores ? `**not a quiet machine, so the bars say little**: ${used}` : used;
}

/** The processor time used in rounds through the service, which shows whether it limits their rates. */
export function coresLine(rounds: readonly Round[]): string {
  const own = rounds.filter(({ gateway }) => gateway.stores);
  const used = own.map(({ cpuMs, seconds }) => sum(Object.values(cpuMs)) / (seconds * 1_000));
  const busiest = own.flatMap(({ cpuMs, seconds, gateway }) =>
    ["api", "worker"].map((name) => {
      const processes = gateway.processes.filter((each) => each.name === name).length;
      return (cpuMs[name] ?? 0) / (processes * seconds * 1_000);
    }),
  );
  const [least, most] = [Math.min(...used), Math.max(...used)].map((cores) => cores.toFixed(2));
  return `all processes together used ${least} to ${most} of the machine's ${availableParallelism()} cores, and an API or worker process at most
${Math.max(...busiest).toFixed(2)} of one`;
}

const quantileNames = ["p50", "p95", "p99"] as const;

export function speedTable(rounds: readonly Round[]): string {
  const hasDirect = rounds.some(({ gateway }) => gateway.name === "direct");
  const head = ["load", "through", "calls/s", "of Portkey's", "p50 ms", "p95", "p99"];
  if (hasDirect) head.push("added p50", "p95", "p99");
  head.push("first byte p50 ms", ...(hasDirect ? ["added"] : []), "failed");
  const rows = groupsOf(rounds).map(({ scenario: { title, stream }, gateway, rounds: own }) => {
    const portkey = gateway.stores ? roundsOf(rounds, title, "portkey") : [];
    const added = (value: (outcome: Outcome) => number) =>
      gateway.processes.length > 0 ? ms(addedMs(rounds, title, gateway.name, value)) : "";
    const rates = own.map(({ outcome }) => outcome.perSecond);
    const quantiles = quantileNames.map((name) => (outcome: Outcome) => outcome.latencyMs[name]);
    return [
      title,
      gateway.name,
      `${whole(median(rates))} (${whole(Math.min(...rates))}-${whole(Math.max(...rates))})`,
      portkey.length > 0 ? times(medianRatio(own, portkey, ({ outcome }) => outcome.perSecond)) : "",
      ...quantiles.map((value) => ms(medianOf(own, value))),
      ...(hasDirect ? quantiles.map(added) : []),
      stream ? ms(medianOf(own, firstByte)) : "",
      ...(hasDirect ? [stream ? added(firstByte) : ""] : []),
      whole(sum(own.map(({ outcome }) => outcome.failed))),
    ];
  });
  return table(head, rows, 2) + failureList(rounds);
}

function failureList(rounds: readonly Round[]): string {
  const lines = rounds.flatMap(({ scenario, gateway, outcome: { failed, failures, firstFailure } }) =>
    failed > 0 ? [`- ${scenario.title}, ${gateway.name}: ${JSON.stringify(failures)}; the first: ${firstFailure}`] : [],
  );
  return lines.length > 0 ? `\n\nFailures, by round:\n\n${lines.join("\n")}` : "";
}

/** The processor time of each gateway compared with another one, named by `beside`. */
export function cpuTable(rounds: readonly Round[], beside: string): string {
  const names = [...new Set(rounds.flatMap(({ gateway }) => ownNames(gateway)))].filter((name) => name !== "S3");
  const head = ["load", "through", ...common, ...names, "gateway in all", `of ${besideTitle(beside)}`, "calls/s"];
  const rows = groupsOf(rounds).flatMap(({ scenario: { title }, gateway, rounds: own }) => {
    const perCall = (name: string) => median(own.map((round) => cpuPerCall(round, [name]))).toFixed(3);
    const mine = ownNames(gateway);
    const others = gateway.name === beside ? [] : roundsOf(rounds, title, beside);
    return [
      [
        title,
        gateway.name,
        ...common.map(perCall),
        ...names.map((name) => (mine.includes(name) ? perCall(name) : "")),
        mine.length > 0 ? median(own.map(gatewayCpu)).toFixed(3) : "",
        others.length > 0 && mine.length > 0 ? times(medianRatio(own, others, gatewayCpu)) : "",
        whole(medianRate(own)),
      ],
    ];
  });
  return table(head, rows, 2);
}

const besideTitle = (gateway: string) => (gateway === "portkey" ? "Portkey's" : `the ${gateway}'s`);

/** The store operations per call. */
export function storesTable(rounds: readonly Round[]): string {
  const head = [
    "load",
    "through",
    "Redis commands",
    "scripts",
    "KB",
    "MongoDB requests",
    "journal syncs",
    "Redis KB while it waits",
    "wake-ups: API",
    "worker",
    "Redis",
    "MongoDB",
  ];
  const rows = groupsOf(rounds).flatMap(({ scenario: { title, pace, provider }, gateway, rounds: own }) => {
    if (!gateway.stores) return [];
    const perCall = (value: (round: Round) => number) => median(own.map((round) => value(round) / round.outcome.calls));
    const counted = (name: keyof NonNullable<Round["stores"]>["counted"]) =>
      perCall(({ stores }) => stores?.counted[name] ?? Number.NaN);
    const isWaiting = pace.kind === "closed" && (provider.delayMs > 0 || provider.paced);
    return [
      [
        title,
        gateway.name,
        counted("redisCommands").toFixed(1),
        counted("redisScripts").toFixed(2),
        (counted("redisBytes") / 1_024).toFixed(1),
        counted("mongoRequests").toFixed(2),
        counted("journalSyncs").toFixed(2),
        isWaiting ? (waitingBytes(own) / 1_024).toFixed(1) : "",
        ...["api", "worker", "Redis", "MongoDB"].map((name) => perCall((round) => round.wakeUps[name] ?? 0).toFixed(2)),
      ],
    ];
  });
  return table(head, rows, 2);
}

/** The Redis memory of a call that waits for its provider. */
export const waitingBytes = (rounds: readonly Round[]): number =>
  median(
    rounds.map(({ scenario: { pace }, stores }) =>
      pace.kind === "closed" ? (stores?.redisMemoryBytes ?? Number.NaN) / pace.connections : Number.NaN,
    ),
  );

export function memoryTable(rounds: readonly Round[]): string {
  const names = [...new Set(rounds.flatMap(({ residentBytes }) => Object.keys(residentBytes)))];
  const rows = names.map((name) => {
    const resident = rounds.flatMap(({ residentBytes }) => residentBytes[name] ?? []);
    const idle = rounds.filter(({ gateway }) => gateway.name === "direct");
    const shareIdle = sum(idle.map(({ cpuMs }) => cpuMs[name] ?? 0)) / sum(idle.map(({ seconds }) => seconds * 1_000));
    const isIdle = idle.length > 0 && !common.some((each) => each === name);
    return [
      name,
      mebi(resident[0] ?? 0),
      mebi(Math.max(...resident)),
      mebi(resident.at(-1) ?? 0),
      isIdle ? `${(shareIdle * 100).toFixed(1)} %` : "",
    ];
  });
  return table(["process", "MB at first", "at most", "at the end", "of a core at rest"], rows);
}
