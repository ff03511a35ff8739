import { setTimeout as wait } from "node:timers/promises";
import { type Outcome, type Pace, runLoad } from "./load.ts";
import type { Behavior } from "./mock.ts";
import { cpuMs, type Measured, machineCpuMs, residentBytes, wakeUps } from "./processes.ts";
import type { Counters, Stores } from "./stores.ts";
import { median, sum } from "./table.ts";
import { requestBody, type Target } from "./workload.ts";

/** The target of calls, with the processes that serve it. */
export interface Gateway {
  readonly name: string;
  /** The targets, used in turn; all have the same model. */
  readonly targets: readonly [Target, ...Target[]];
  readonly processes: readonly Measured[];
  readonly stores?: Stores;
  /** Changes the body of each call. */
  readonly change?: (body: string) => string;
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
  /** Processor time during the round, by process name; processes with the same name are added up. */
  readonly cpuMs: Readonly<Record<string, number>>;
  /** The threads of a process that went on after waiting, by process name. */
  readonly wakeUps: Readonly<Record<string, number>>;
  /** The average number of cores used by other programs during the round. */
  readonly othersCores: number;
  readonly residentBytes: Readonly<Record<string, number>>;
  readonly stores?: StoreUse;
}

/** The work of the gateway's stores during the round. */
export interface StoreUse {
  readonly counted: Counters;
  /** The peak of Redis memory, above its initial value. */
  readonly redisMemoryBytes: number;
}

const timeoutMs = 30_000;
/** Work that a gateway finishes after the last response counts towards its own round. */
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

/** `processes` are all measured processes, including those of other gateways. */
export async function measureRound(
  scenario: Scenario,
  gateway: Gateway,
  processes: readonly Measured[],
): Promise<Round> {
  const { stream, pace, durationMs } = scenario;
  const { targets, change } = gateway;
  const read = (value: (process: Measured) => number) => {
    const values: Record<string, number> = {};
    for (const process of processes) values[process.name] = (values[process.name] ?? 0) + value(process);
    return values;
  };
  const storeUse = gateway.stores && (await watchStores(gateway.stores));
  const wokenBefore = read(wakeUps);
  const before = read(cpuMs);
  const machineBefore = machineCpuMs();
  const startedAt = performance.now();
  const usual = requestBody(targets[0].model, stream);
  const body = change ? () => change(usual) : usual;
  const outcome = await runLoad({ targets, body, end: stream ? "data: [DONE]" : "}", pace, durationMs, timeoutMs });
  await wait(aftermathMs);
  const after = read(cpuMs);
  const since = (now: Record<string, number>, then: Record<string, number>) =>
    Object.fromEntries(Object.entries(now).map(([name, value]) => [name, value - (then[name] ?? 0)]));
  const spent = since(after, before);
  const elapsedMs = performance.now() - startedAt;
  return {
    scenario,
    gateway,
    outcome,
    seconds: elapsedMs / 1_000,
    cpuMs: spent,
    wakeUps: since(read(wakeUps), wokenBefore),
    othersCores: Math.max(0, machineCpuMs() - machineBefore - sum(Object.values(spent))) / elapsedMs,
    residentBytes: read(residentBytes),
    ...(storeUse && { stores: await storeUse() }),
  };
}

/**
 * Runs a scenario's rounds through one gateway after the other, starting with a different one each round, so that other
 * load on the machine affects all of them alike.
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

/** Processor time per call of some of a round's processes. */
export const cpuPerCall = ({ cpuMs: spent, outcome }: Round, names: readonly string[]): number =>
  sum(names.map((name) => spent[name] ?? 0)) / outcome.calls;

/** The distinct names of a gateway's own processes. */
export const ownNames = ({ processes }: Gateway): string[] => [...new Set(processes.map(({ name }) => name))];

export const gatewayCpu = (round: Round): number => cpuPerCall(round, ownNames(round.gateway));

/** The median of the ratios within each turn, so that a slow minute of the machine does not show. */
export const medianRatio = (
  ours: readonly Round[],
  theirs: readonly Round[],
  value: (round: Round) => number,
): number => median(ours.flatMap((round, turn) => (theirs[turn] ? [value(round) / value(theirs[turn])] : [])));
