import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createProgram, expectOk, freePort, type Program } from "../../infra/embedded/index.ts";
import { sum } from "./table.ts";

/** A process whose processor time and memory are measured. */
export interface Measured {
  readonly name: string;
  readonly pid: number;
}

/** A Node program that serves HTTP on its own loopback port, or does not listen at all. */
export interface NodeServer {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The directory of its log file `<name>.log`. */
  readonly logDir: string;
  /** Polled until it returns 200. */
  readonly readyUrl?: string;
}

export async function startNode({ name, args, env = {}, logDir, readyUrl }: NodeServer): Promise<Program> {
  const program = createProgram({
    name,
    command: process.execPath,
    args,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "production", ...env },
    output: join(logDir, `${name}.log`),
    readyTimeoutMs: 60_000,
    stopTimeoutMs: 40_000,
    ...(readyUrl !== undefined && { isReady: () => expectOk(readyUrl) }),
  });
  await program.start();
  return program;
}

export const freeOrigin = async (): Promise<{ readonly port: number; readonly origin: string }> => {
  const port = await freePort();
  return { port, origin: `http://127.0.0.1:${port}` };
};

export function measured(name: string, { pid }: { readonly pid: number | undefined }): Measured {
  if (pid === undefined) throw new Error(`${name} does not run`);
  return { name, pid };
}

const systemValue = (name: string) => Number(execFileSync("getconf", [name], { encoding: "utf8" }));
const tickMs = 1_000 / systemValue("CLK_TCK");
const pageBytes = systemValue("PAGESIZE");

/** Reads proc(5) from the field `state` on: the name before it may contain spaces and brackets. */
function stat(pid: number): readonly string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** User and system time so far. */
export function cpuMs({ pid }: Measured): number {
  const fields = stat(pid);
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** Processor time of all programs on the machine so far, proc(5): user, nice, system, irq and softirq, and steal. */
export function machineCpuMs(): number {
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  const [, user, nice, system, , , irq, softirq, steal] = line.split(/ +/).map(Number);
  return [user, nice, system, irq, softirq, steal].reduce((total: number, ticks) => total + (ticks ?? 0), 0) * tickMs;
}

/** How often its threads have waited and gone on so far: "voluntary" context switches, proc(5). */
export function wakeUps({ pid }: Measured): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
    try {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
      return Number(/^voluntary_\w+:\s+(\d+)/m.exec(status)?.[1] ?? 0);
    } catch {
      // The thread has ended.
      return 0;
    }
  });
  return sum(threads);
}

export const residentBytes = ({ pid }: Measured): number => Number(stat(pid)[21]) * pageBytes;

export const openDescriptors = ({ pid }: Measured): number => readdirSync(`/proc/${pid}/fd`).length;

export const sampleMs = 50;

/** Tracks the maximum until the returned function is called. */
export function watchMost(read: () => Promise<number> | number): () => number {
  let most = 0;
  const look = async () => {
    most = Math.max(most, await read());
  };
  void look();
  const timer = setInterval(() => void look(), sampleMs);
  return () => {
    clearInterval(timer);
    return most;
  };
}
