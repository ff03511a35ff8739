import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

/** A child process that can be restarted, and that never outlives the process that started it. */
export interface Program {
  readonly name: string;
  readonly pid: number | undefined;
  /** Resolves when the program is ready. Rejects with the reason and the end of its log if it does not become ready. */
  readonly start: () => Promise<void>;
  /** Sends SIGTERM, then SIGKILL after `stopTimeoutMs`. Resolves when the program has ended. */
  readonly stop: () => Promise<void>;
  /** Sends a signal, SIGKILL by default. After SIGKILL it resolves once the program has ended. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
  /** Registers a listener that is called when a program that was ready ends without `stop`. */
  readonly onCrash: (listener: (reason: string) => void) => void;
}

export interface ProgramOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A file that is truncated at the first start, or a function that receives each line. */
  readonly output: string | ((line: string) => void);
  /** Called when the program has started, and with undefined when it has ended. */
  readonly onPid?: (pid: number | undefined) => void;
  /** Rejects while the program is not ready. It is retried until it resolves. */
  readonly isReady?: (() => Promise<unknown>) | undefined;
  readonly readyTimeoutMs?: number;
  readonly stopTimeoutMs?: number;
}

/**
 * The shell starts a guard in the background and then replaces itself with the program. The guard reads a pipe whose
 * other end is open only in this process: when this process ends, even by SIGKILL, the guard ends the program. The
 * guard is in the program's process group, so the group's id is not reused before the guard ends. The group is a new
 * one, so Ctrl-C in a terminal does not reach the program.
 */
const guarded = `
exec 3<&0 </dev/null
(
  PATH=/usr/bin:/bin
  read -r nothing <&3
  kill -TERM $$; kill -CONT $$
  n=0
  while kill -0 $$ && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
  kill -KILL 0
) >/dev/null 2>&1 &
exec 3<&-
exec "$@"`;

/**
 * Arguments of Node for the API and the workers. By default, the young generation grows to 128 MB on large machines; with
 * 32 MB (two halves of 16) the throughput is the same, and each process needs 100 MB less.
 */
export const nodeArgs = ["--max-semi-space-size=16"] as const;

/** Starts a child process that ends with this one. `ended` resolves to the exit code or signal and never rejects. */
export function spawnGuarded(options: Pick<ProgramOptions, "command" | "args" | "env" | "output">, append = false) {
  const { output } = options;
  const file = typeof output === "string" ? openSync(output, append ? "a" : "w", 0o600) : undefined;
  const child = spawn("/bin/sh", ["-c", guarded, "sh", options.command, ...options.args], {
    detached: true,
    env: { ...options.env },
    stdio: ["pipe", file ?? "pipe", file ?? "pipe"],
  });
  if (file !== undefined) closeSync(file);
  // A closed pipe is reported by the exit event.
  child.stdin?.on("error", () => {});
  if (typeof output === "function")
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface({ input: stream }).on("line", output);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", () => {
      killGroup(child);
      child.stdin?.destroy();
    });
    // Output may still arrive after the exit event.
    child.once("close", (code, signal) => resolve(signal === null ? `exit code ${code}` : signal));
  });
  return { child, ended };
}

function killGroup(child: ChildProcess): void {
  if (child.pid !== undefined) signalTo(-child.pid, "SIGKILL");
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Retries until the attempt succeeds. When the signal aborts, throws the last failure, which says what is not ready.
 */
export async function until(attempt: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (signal.aborted) throw error;
      await setTimeout(50);
    }
  }
}

export async function expectOk(url: string): Promise<void> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
}

function logTail(output: ProgramOptions["output"]): string {
  if (typeof output !== "string") return "";
  const lines = readFileSync(output, "utf8").trimEnd().split("\n").slice(-8);
  return lines.join("") === "" ? "" : ` The end of ${output}:\n  ${lines.join("\n  ")}`;
}

export function createProgram(options: ProgramOptions): Program {
  const { name, onPid, isReady, readyTimeoutMs = 30_000, stopTimeoutMs = 10_000 } = options;
  const listeners: ((reason: string) => void)[] = [];
  let running: (ReturnType<typeof spawnGuarded> & { readonly pid: number; shouldRun: boolean }) | undefined;
  let startedBefore = false;

  async function start(): Promise<void> {
    if (running) throw new Error(`${name} is already running.`);
    const spawned = spawnGuarded(options, startedBefore);
    startedBefore = true;
    const { pid } = spawned.child;
    if (pid === undefined) throw new Error(`${name} could not be started: ${await spawned.ended}.`);
    const current = { ...spawned, pid, shouldRun: false };
    running = current;
    onPid?.(pid);
    const deadline = new AbortController();
    const onTimeout = () => deadline.abort(new Error(`it did not answer within ${readyTimeoutMs / 1000} s`));
    const timer = globalThis.setTimeout(onTimeout, readyTimeoutMs);
    void current.ended.then((reason) => {
      running = undefined;
      onPid?.(undefined);
      deadline.abort(new Error(`it ended with ${reason}`));
      if (current.shouldRun) for (const listener of listeners) listener(reason);
    });
    try {
      if (isReady) await until(isReady, deadline.signal);
      current.shouldRun = true;
    } catch (error) {
      await stop();
      const reason = error instanceof Error ? error.message : String(error);
      const why = deadline.signal.aborted ? `${deadline.signal.reason.message} (${reason})` : reason;
      throw new Error(`${name} did not start: ${why}.${logTail(options.output)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  async function stop(): Promise<void> {
    const current = running;
    if (!current) return;
    current.shouldRun = false;
    signalTo(current.pid, "SIGTERM");
    // A program stopped by SIGSTOP does not handle SIGTERM.
    signalTo(current.pid, "SIGCONT");
    const timer = globalThis.setTimeout(() => killGroup(current.child), stopTimeoutMs);
    await current.ended;
    clearTimeout(timer);
  }

  return {
    name,
    get pid() {
      return running?.pid;
    },
    start,
    stop,
    async kill(signal = "SIGKILL") {
      const current = running;
      if (!current) throw new Error(`${name} is not running.`);
      signalTo(current.pid, signal);
      if (signal === "SIGKILL") await current.ended;
    },
    onCrash: (listener) => void listeners.push(listener),
  };
}
