import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

/** A child process that can be started again, and that never outlives the process that started it. */
export interface Program {
  readonly name: string;
  /** Of the program itself; undefined while it does not run. */
  readonly pid: number | undefined;
  /** Resolves when the program is ready; rejects with the reason and the end of its log when it is not. */
  readonly start: () => Promise<void>;
  /** Orderly: SIGTERM, and SIGKILL when that takes too long. Resolves when the program is gone. */
  readonly stop: () => Promise<void>;
  /** Sends any signal, SIGKILL unless told otherwise. After SIGKILL resolves when the program is gone. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
  /** Hears of every end that `stop` did not ask for. */
  readonly onCrash: (listener: (reason: string) => void) => void;
}

export interface ProgramOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where its output goes: a file, emptied at the first start, or a function for each line. */
  readonly output: string | ((line: string) => void);
  readonly onSpawn?: (pid: number) => void;
  /** Resolves when the program answers. Must give up when the signal aborts. */
  readonly ready?: (signal: AbortSignal) => Promise<void>;
  readonly readyTimeoutMs?: number;
  readonly stopTimeoutMs?: number;
}

/**
 * The shell leaves a guard behind and becomes the program itself. The guard reads a pipe whose other end only this
 * process has: when that ends, be it by SIGKILL, the guard ends the program. Being in the program's process group,
 * it also keeps the process id from being given to another. A group of its own spares the program a terminal's Ctrl-C.
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

/** The only way in which a child process is started here. */
export function spawnGuarded(options: Pick<ProgramOptions, "command" | "args" | "env" | "output">, append = false) {
  const { output } = options;
  const file = typeof output === "string" ? openSync(output, append ? "a" : "w", 0o600) : undefined;
  const child = spawn("/bin/sh", ["-c", guarded, "sh", options.command, ...options.args], {
    detached: true,
    env: { ...options.env },
    stdio: ["pipe", file ?? "pipe", file ?? "pipe"],
  });
  if (file !== undefined) closeSync(file);
  // The other end may be gone already: that is the exit event's affair.
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
    // Its last words may come after its exit.
    child.once("close", (code, signal) => resolve(signal === null ? `exit code ${code}` : `${signal}`));
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

/** Tries until it succeeds. When the signal aborts, throws the last failure. An attempt must end by itself. */
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

function logTail(output: ProgramOptions["output"]): string {
  if (typeof output !== "string") return "";
  const lines = readFileSync(output, "utf8").trimEnd().split("\n").slice(-8);
  return lines.join("") === "" ? "" : ` The end of ${output}:\n  ${lines.join("\n  ")}`;
}

export function createProgram(options: ProgramOptions): Program {
  const { name, ready, readyTimeoutMs = 30_000, stopTimeoutMs = 10_000 } = options;
  const listeners: ((reason: string) => void)[] = [];
  let running: (ReturnType<typeof spawnGuarded> & { readonly pid: number; wanted: boolean }) | undefined;
  let startedBefore = false;

  async function start(): Promise<void> {
    if (running) throw new Error(`${name} is running already.`);
    const spawned = spawnGuarded(options, startedBefore);
    startedBefore = true;
    const { pid } = spawned.child;
    if (pid === undefined) throw new Error(`${name} could not be started: ${await spawned.ended}.`);
    const own = { ...spawned, pid, wanted: false };
    running = own;
    options.onSpawn?.(pid);
    const giveUp = new AbortController();
    const late = () => giveUp.abort(new Error(`it did not answer within ${readyTimeoutMs / 1000} s`));
    const timer = globalThis.setTimeout(late, readyTimeoutMs);
    void own.ended.then((reason) => {
      running = undefined;
      giveUp.abort(new Error(`it ended with ${reason}`));
      if (own.wanted) for (const listener of listeners) listener(reason);
    });
    try {
      await ready?.(giveUp.signal);
      own.wanted = true;
    } catch (error) {
      await stop();
      const reason = error instanceof Error ? error.message : String(error);
      const why = giveUp.signal.aborted ? `${giveUp.signal.reason.message} (${reason})` : reason;
      throw new Error(`${name} did not start: ${why}.${logTail(options.output)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  async function stop(): Promise<void> {
    const own = running;
    if (!own) return;
    own.wanted = false;
    signalTo(own.pid, "SIGTERM");
    // A paused program would never see it.
    signalTo(own.pid, "SIGCONT");
    const timer = globalThis.setTimeout(() => killGroup(own.child), stopTimeoutMs);
    await own.ended;
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
      const own = running;
      if (!own) throw new Error(`${name} is not running.`);
      signalTo(own.pid, signal);
      if (signal === "SIGKILL") await own.ended;
    },
    onCrash: (listener) => void listeners.push(listener),
  };
}
