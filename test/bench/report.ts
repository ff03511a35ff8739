import type { Outcome } from "./load.ts";
import type { Gateway, Round, Scenario } from "./measure.ts";
import type { LedgerCheck } from "./service.ts";

export interface Report {
  readonly rounds: readonly Round[];
  readonly command: string;
  /** What it ran on, line by line. */
  readonly machine: readonly string[];
  readonly books?: { readonly answered: number; readonly paid: number; readonly check: LedgerCheck };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  const high = sorted[Math.floor(middle)] ?? Number.NaN;
  return (low + high) / 2;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const whole = (value: number) => Math.round(value).toLocaleString("en-US");
const ms = (value: number) => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map((_, index) => (index === 0 ? "---" : "--:")), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n");

/** All rounds of one gateway in one scenario. */
interface Group {
  readonly scenario: Scenario;
  readonly gateway: Gateway["name"];
  readonly rounds: readonly Round[];
}

function groupsOf(rounds: readonly Round[]): Group[] {
  const order = ["direct", "portkey", "service"] as const;
  return [...new Set(rounds.map(({ scenario }) => scenario))].flatMap((scenario) =>
    order.flatMap((gateway) => {
      const own = rounds.filter((round) => round.scenario === scenario && round.gateway === gateway);
      return own.length > 0 ? [{ scenario, gateway, rounds: own }] : [];
    }),
  );
}

const medianOf = ({ rounds }: Group, value: (outcome: Outcome) => number) =>
  median(rounds.map(({ outcome }) => value(outcome)));

export const medianRate = (rounds: readonly Round[]): number => median(rounds.map(({ outcome }) => outcome.perSecond));

function speedTable(groups: readonly Group[]): string {
  const beside = ({ scenario }: Group, gateway: Gateway["name"]) =>
    groups.find((group) => group.scenario === scenario && group.gateway === gateway);
  const head = ["load", "through", "calls/s", "of Portkey's", "p50 ms", "p95", "p99"];
  head.push("added p50", "p95", "p99", "first byte p50 ms", "added", "failed");
  const rows = groups.map((group) => {
    const { scenario, gateway, rounds } = group;
    const direct = gateway === "direct" ? undefined : beside(group, "direct");
    const portkey = gateway === "service" ? beside(group, "portkey") : undefined;
    const added = (value: (outcome: Outcome) => number) =>
      direct ? ms(medianOf(group, value) - medianOf(direct, value)) : "";
    const rates = rounds.map(({ outcome }) => outcome.perSecond);
    const percentiles = (["p50", "p95", "p99"] as const).map((name) => (outcome: Outcome) => outcome.latencyMs[name]);
    const firstByte = (outcome: Outcome) => outcome.firstByteMs.p50;
    return [
      scenario.title,
      gateway,
      `${whole(median(rates))} (${whole(Math.min(...rates))}-${whole(Math.max(...rates))})`,
      portkey ? `${(medianRate(rounds) / medianRate(portkey.rounds)).toFixed(2)} x` : "",
      ...percentiles.map((value) => ms(medianOf(group, value))),
      ...percentiles.map(added),
      scenario.stream ? ms(medianOf(group, firstByte)) : "",
      scenario.stream ? added(firstByte) : "",
      whole(sum(rounds.map(({ outcome }) => outcome.failed))),
    ];
  });
  return table(head, rows);
}

const processNames = (rounds: readonly Round[]) => Object.keys(rounds[0]?.cpuMs ?? {});

/** The processes that a call through a gateway passes. */
const takesPart = (gateway: Gateway["name"], process: string) =>
  process === "mock" || process === "generator" || (process === "portkey") === (gateway === "portkey");

function cpuTable(groups: readonly Group[], names: readonly string[]): string {
  const own = (gateway: Gateway["name"]) => names.filter((name) => gateway !== "direct" && takesPart(gateway, name));
  const rows = groups.map(({ scenario, gateway, rounds }) => {
    const calls = sum(rounds.map(({ outcome }) => outcome.calls));
    const perCall = (process: string) => sum(rounds.map(({ cpuMs }) => cpuMs[process] ?? 0)) / calls;
    const isBystander = (name: string) => !takesPart(gateway, name) || (gateway === "direct" && !isCommon(name));
    const all = own(gateway).filter((name) => !isCommon(name));
    return [
      scenario.title,
      gateway,
      ...names.map((name) => (isBystander(name) ? "" : perCall(name).toFixed(3))),
      gateway === "direct" ? "" : sum(all.map(perCall)).toFixed(3),
    ];
  });
  return table(["load", "through", ...names, "gateway in all"], rows);
}

const isCommon = (process: string) => process === "mock" || process === "generator";

function memoryTable(rounds: readonly Round[], names: readonly string[]): string {
  const mb = (bytes: number) => whole(bytes / 1024 / 1024);
  const rows = names.map((name) => {
    const resident = rounds.map(({ residentBytes }) => residentBytes[name] ?? 0);
    const atRest = rounds.filter(({ gateway }) => gateway === "direct" && !isCommon(name));
    const share = sum(atRest.map(({ cpuMs }) => cpuMs[name] ?? 0)) / sum(atRest.map(({ seconds }) => seconds * 1_000));
    return [
      name,
      mb(resident[0] ?? 0),
      mb(Math.max(...resident)),
      mb(resident.at(-1) ?? 0),
      atRest.length > 0 ? `${(share * 100).toFixed(1)} %` : "",
    ];
  });
  return table(["process", "MB at first", "at most", "at the end", "of a core at rest"], rows);
}

function failureList(groups: readonly Group[]): string {
  const lines = groups.flatMap(({ scenario, gateway, rounds }) =>
    rounds.flatMap(({ outcome }) =>
      outcome.failed > 0
        ? [`- ${scenario.title}, ${gateway}: ${JSON.stringify(outcome.failures)}; the first: ${outcome.firstFailure}`]
        : [],
    ),
  );
  return lines.length > 0 ? `\n\nFailures, by round:\n\n${lines.join("\n")}` : "";
}

function booksSection({ books }: Report): string {
  if (!books) return "";
  const { answered, paid, check } = books;
  return `
## The books afterwards

${whole(answered)} calls answered in full, ${whole(paid)} paid for. \`GET /admin/v1/ledger/check\`:

\`\`\`json
${JSON.stringify(check)}
\`\`\`
`;
}

function othersLine(rounds: readonly Round[]): string {
  const cores = rounds.map(({ othersCores }) => othersCores);
  return `other programs used ${median(cores).toFixed(2)} cores meanwhile (median), at most ${Math.max(...cores).toFixed(2)}`;
}

export function renderReport(report: Report): string {
  const { rounds, command, machine } = report;
  const groups = groupsOf(rounds);
  const names = processNames(rounds);
  return `# Measured

Written by \`${command}\`. A ${"`"}direct${"`"} call goes straight to the mock; the service holds, decides and settles money for each call,
Portkey's gateway does not. All processes, the mock and the load generator too, share the machine:

${[...machine, othersLine(rounds)].map((line) => `- ${line}`).join("\n")}

Each number is the median of a load's rounds (${"`"}calls/s${"`"}: with the least and the most); in every round they take turns.
\`added\` is over direct. A ${"`"}first byte${"`"} is that of the body. Streams have 40 chunks and usage, prompts 100 bytes.

## Speed

${speedTable(groups)}${failureList(groups)}

## Processor time, ms a call

${cpuTable(groups, names)}

## Memory

${memoryTable(rounds, names)}
${booksSection(report)}`;
}
