import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostileInput, Target } from "./input.ts";
import type { Held } from "./loop-monitor.ts";

/** Measurements by process: api, workers, and idle, which only shows how busy the machine is. */
type Taken = Readonly<Record<string, Held>>;

export interface Watch {
  /** The environment of the watched processes. */
  readonly env: Readonly<Record<string, string>>;
  /** The measurements since the last call. */
  readonly take: () => Promise<Taken>;
  readonly stop: () => Promise<void>;
}

/** Starts an idle process; other processes are watched from their start with `env`. */
export async function startWatch(): Promise<Watch> {
  const dir = await mkdtemp(join(tmpdir(), "inference-loops-"));
  const monitor = new URL("loop-monitor.ts", import.meta.url).href;
  const env = { NODE_OPTIONS: `--import=${monitor}`, LOOP_MONITOR_DIR: dir };
  const idle: ChildProcess = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], {
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  const takeFrom = async (port: string) => (await (await fetch(`http://127.0.0.1:${port}`)).json()) as Held;
  return {
    env,
    async take() {
      const names = readdirSync(dir);
      const held = await Promise.all(names.map((name) => takeFrom(readFileSync(join(dir, name), "utf8"))));
      return Object.fromEntries(names.map((name, at) => [name, held[at] as Held]));
    },
    async stop() {
      idle.kill("SIGKILL");
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export interface Figures {
  readonly name: string;
  readonly process: string;
  /** Medians of the maxima of its rounds. */
  readonly delayMs: number;
  readonly heldMs: number;
  readonly idleDelayMs: number;
  /** The status of the last response. */
  readonly status: number;
}

const processes = ["api", "workers"];

export const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Measures how long the input blocked each process, in this many rounds, or in a single one below `enoughMs`. */
export async function measure(
  { name, prepare }: HostileInput,
  target: Target,
  { take }: Watch,
  rounds: number,
  enoughMs = 0,
): Promise<Figures[]> {
  const sendOnce = await prepare(target);
  const all: Taken[] = [];
  let status = 0;
  for (let round = 0; round < rounds; round++) {
    await take();
    status = await sendOnce();
    all.push(await take());
    if (processes.every((process) => (all[0]?.[process]?.heldMs ?? Infinity) < enoughMs)) break;
  }
  const median = (process: string, of: keyof Held) => medianOf(all.map((taken) => taken[process]?.[of] ?? Number.NaN));
  return processes.map((process) => ({
    name,
    process,
    delayMs: median(process, "delayMs"),
    heldMs: median(process, "heldMs"),
    idleDelayMs: median("idle", "delayMs"),
    status,
  }));
}

/** busy means that the loop was delayed because other processes used the processors. */
export function judge({ delayMs, heldMs }: Figures, limitMs: number): "held" | "busy" | "free" {
  if (heldMs > limitMs) return "held";
  return delayMs > limitMs ? "busy" : "free";
}
