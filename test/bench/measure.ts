import { setTimeout as wait } from "node:timers/promises";
import { type Outcome, type Pace, runLoad } from "./load.ts";
import type { Behavior } from "./mock.ts";
import { cpuMs, type Measured, machineCpuMs, residentBytes } from "./processes.ts";
import type { Counters, Stores } from "./stores.ts";
import { median, sum } from "./table.ts";
import { requestBody, type Target } from "./workload.ts";

/** What calls are sent to, with the processes that work for them. */
export interface Gateway {
  readonly name: string;
  /** Calls take them in turn; all have the same model. */
  readonly targets: readonly [Target, ...Target[]];
  readonly processes: readonly Measured[];
  readonly stores?: Stores;
}

export interface Scenario {
  readonly title: string;
  readonly stream: boolean;
  readonly pace: Pace;
  readonly provider: Behavior;
  readonly rounds: number;
  readonly durationMs: number;
}

/** One gateway under one scenario's load, once. */
export interface Round {
  readonly scenario: Scenario;
  readonly gateway: Gateway;
  readonly outcome: Outcome;
  readonly seconds: number;
  /** Processor time meanwhile, by the name of the process; of processes with the same name together. */
  readonly cpuMs: Readonly<Record<string, number>>;
  /** Cores used by other programs meanwhile, on average. */
  readonly othersCores: number;
  readonly residentBytes: Readonly<Record<string, number>>;
  readonly stores?: StoreUse;
}

/** What the gateway's stores had to do meanwhile. */
export interface StoreUse {
  readonly counted: Counters;
  /** What Redis held at most, above what it held before. */
  readonly redisMemoryBytes: number;
}

const timeoutMs = 30_000;
/** What a gateway still has to do when the last answer is out belongs to its own round. */
const aftermathMs = 250;
const memorySampleMs = 250;

async function watchStores(stores: Stores): Promise<() => Promise<StoreUse>> {
  const before = await stores.counters();
  const beforeBytes = await stores.redisMemoryBytes();
  let mostBytes = beforeBytes;
  let isOver = false;
  const sampling = (async () => {
    for (; !isOver; await wait(memorySampleMs)) mostBytes = Math.max(mostBytes, await stores.redisMemoryBytes());
  })();
  return async () => {
    isOver = true;
    await sampling;
    const after = await stores.counters();
    const since = (name: keyof Counters) => after[name] - before[name];
    const counted = {
      redisCommands: since("redisCommands"),
      redisScripts: since("redisScripts"),
      redisBytes: since("redisBytes"),
      mongoRequests: since("mongoRequests"),
      journalSyncs: since("journalSyncs"),
    };
    return { counted, redisMemoryBytes: mostBytes - beforeBytes };
  };
}

/** `processes`: all that are measured, those of other gateways too. */
export async function measureRound(
  scenario: Scenario,
  gateway: Gateway,
  processes: readonly Measured[],
): Promise<Round> {
  const { stream, pace, durationMs } = scenario;
  const { targets } = gateway;
  const read = (value: (process: Measured) => number) => {
    const values: Record<string, number> = {};
    for (const process of processes) values[process.name] = (values[process.name] ?? 0) + value(process);
    return values;
  };
  const storeUse = gateway.stores && (await watchStores(gateway.stores));
  const before = read(cpuMs);
  const machineBefore = machineCpuMs();
  const startedAt = performance.now();
  const body = requestBody(targets[0].model, stream);
  const outcome = await runLoad({ targets, body, end: stream ? "data: [DONE]" : "}", pace, durationMs, timeoutMs });
  await wait(aftermathMs);
  const after = read(cpuMs);
  const spent = Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));
  const elapsedMs = performance.now() - startedAt;
  return {
    scenario,
    gateway,
    outcome,
    seconds: elapsedMs / 1_000,
    cpuMs: spent,
    othersCores: Math.max(0, machineCpuMs() - machineBefore - sum(Object.values(spent))) / elapsedMs,
    residentBytes: read(residentBytes),
    ...(storeUse && { stores: await storeUse() }),
  };
}

/**
 * A scenario's rounds, one gateway after the other in every one of them and another one first each time, so that what
 * else happens on the machine hits all alike.
 */
export async function measureScenario(
  scenario: Scenario,
  gateways: readonly Gateway[],
  processes: readonly Measured[],
): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let turn = 0; turn < scenario.rounds; turn++) {
    const first = turn % gateways.length;
    for (const gateway of [...gateways.slice(first), ...gateways.slice(0, first)])
      rounds.push(await measureRound(scenario, gateway, processes));
  }
  return rounds;
}

export const medianRate = (rounds: readonly Round[]): number => median(rounds.map(({ outcome }) => outcome.perSecond));

/** Processor time a call of some of a round's processes. */
export const cpuPerCall = ({ cpuMs: spent, outcome }: Round, names: readonly string[]): number =>
  sum(names.map((name) => spent[name] ?? 0)) / outcome.calls;

/** The names of a gateway's own processes, each once. */
export const ownNames = ({ processes }: Gateway): string[] => [...new Set(processes.map(({ name }) => name))];

export const gatewayCpu = (round: Round): number => cpuPerCall(round, ownNames(round.gateway));

/** Of what was measured in the same turns, so a slow minute of the machine does not show: the median of the turns' ratios. */
export const medianRatio = (
  ours: readonly Round[],
  theirs: readonly Round[],
  value: (round: Round) => number,
): number => median(ours.flatMap((round, turn) => (theirs[turn] ? [value(round) / value(theirs[turn])] : [])));
