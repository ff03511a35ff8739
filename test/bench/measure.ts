import { setTimeout as wait } from "node:timers/promises";
import { type Outcome, type Pace, runLoad } from "./load.ts";
import { cpuMs, type Measured, machineCpuMs, residentBytes } from "./processes.ts";
import { requestBody, type Target } from "./workload.ts";

export interface Gateway {
  readonly name: "direct" | "portkey" | "service";
  readonly target: Target;
}

export interface Scenario {
  readonly title: string;
  readonly stream: boolean;
  readonly pace: Pace;
  /** How long the mock waits before each answer. */
  readonly delayMs: number;
  readonly rounds: number;
  readonly durationMs: number;
}

/** One gateway under one scenario's load, once. */
export interface Round {
  readonly scenario: Scenario;
  readonly gateway: Gateway["name"];
  readonly outcome: Outcome;
  readonly seconds: number;
  /** Processor time that each process spent meanwhile, by its name. */
  readonly cpuMs: Readonly<Record<string, number>>;
  /** Cores used by other programs meanwhile, on average. */
  readonly othersCores: number;
  readonly residentBytes: Readonly<Record<string, number>>;
}

const timeoutMs = 30_000;
/** What a gateway still has to do when the last answer is out belongs to its own round. */
const aftermathMs = 250;

export async function measureRound(
  scenario: Scenario,
  { name, target }: Gateway,
  processes: readonly Measured[],
): Promise<Round> {
  const { stream, pace, durationMs } = scenario;
  const read = (value: (process: Measured) => number) =>
    Object.fromEntries(processes.map((process) => [process.name, value(process)]));
  const before = read(cpuMs);
  const machineBefore = machineCpuMs();
  const startedAt = performance.now();
  const body = requestBody(target.model, stream);
  const outcome = await runLoad({ ...target, body, end: stream ? "data: [DONE]" : "}", pace, durationMs, timeoutMs });
  await wait(aftermathMs);
  const spent = read((process) => cpuMs(process) - (before[process.name] ?? 0));
  const elapsedMs = performance.now() - startedAt;
  const ownMs = Object.values(spent).reduce((total, value) => total + value, 0);
  return {
    scenario,
    gateway: name,
    outcome,
    seconds: elapsedMs / 1_000,
    cpuMs: spent,
    othersCores: Math.max(0, machineCpuMs() - machineBefore - ownMs) / elapsedMs,
    residentBytes: read(residentBytes),
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
