import { chargedAfterDeath, cutByDeath, differenceFromBills, type Findings } from "./oracles.ts";
import type { RunLog } from "./run-log.ts";

function counted(names: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].toSorted(([a], [b]) => a.localeCompare(b));
}

const lines = (title: string, counts: readonly (readonly [string, number | string])[]) =>
  [title, ...counts.map(([name, count]) => `  ${String(count).padStart(7)}  ${name}`), ""].join("\n");

const usd = (nanoUsd: bigint) => `${Number(nanoUsd) / 1e9} USD`;

const most = ({ peakBytes }: RunLog, kind: string) => {
  const sizes = [...peakBytes].flatMap(([name, bytes]) => (name.startsWith(kind) ? [bytes] : []));
  return `${Math.round(Math.max(0, ...sizes) / 1e6)} MB`;
};

/** Removes names and amounts. */
const inGeneral = (message: string) =>
  message
    .replaceAll(/'[^']*'/g, "'...'")
    .replaceAll(/\d+(\.\d+)?/g, "n")
    .slice(0, 110);

/** Renders the run for a person. */
export function renderRun(log: RunLog, findings: Findings): string {
  const { calls, runs, faults, balances } = log;
  const where = (outcome: string) => calls.filter((call) => call.outcome === outcome);
  const difference = differenceFromBills(log);
  const endings = counted(
    calls.map(({ kind, outcome, status }) => `${kind}: ${outcome}${status ? `, ${status}` : ""}`),
  );
  return [
    lines("Faults", counted(faults.map(({ kind }) => kind))),
    lines("Answers of providers", counted(runs.map(({ behavior }) => behavior))),
    lines("Prompts counted for streams that broke off", counted(log.counts.map(({ upstream }) => upstream))),
    lines("Calls", counted(calls.map(({ outcome, replayed }) => (replayed ? `${outcome} again by its key` : outcome)))),
    lines("Ends by endpoint and status", endings),
    lines("Errors by code", counted(where("refused").map(({ code, status }) => `${status} ${code ?? "cut"}`))),
    lines(
      "Errors before the answer by text",
      counted(where("refused").flatMap(({ message }) => (message ? [inGeneral(message)] : []))),
    ),
    lines("Without any answer", counted(where("none").map(({ instance, failure }) => `${instance}: ${failure}`))),
    lines(
      "Invariants",
      Object.entries(findings).map(([name, found]) => [name, found.length] as const),
    ),
    ...Object.entries(findings).flatMap(([name, found]) =>
      found.length === 0 ? [] : [`${name}:`, ...found.slice(0, 10).map((each) => `  ${each}`), ""],
    ),
    `Balances: ${balances.length} accounts, ${usd(balances.reduce((sum, each) => sum + each.availableNanoUsd, 0n))}`,
    `Credits less bills (${difference.billed} calls by the provider's bill, ${difference.byCharge} broken off or without usage by their charge) less balances: ${usd(difference.nanoUsd)}`,
    `JSON cut by an API's death: ${cutByDeath(log).length}, charged: ${chargedAfterDeath(log).length}`,
    `Most memory: ${most(log, "api")} of an API, ${most(log, "worker")} of a worker`,
    `By the service's own check: ${usd(log.checkDifferenceNanoUsd)}`,
  ].join("\n");
}

/** JSON has no bigint. */
export const toJson = (report: object): string =>
  JSON.stringify(report, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value), 1);
