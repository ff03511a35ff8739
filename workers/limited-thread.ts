import { Worker } from "node:worker_threads";
import { type Clock, onTimeout } from "#platform/clock";
import type { Logger } from "#platform/logger";

/** Loading the tokenizer's ranks takes 0.2 s, and a second or two on a busy machine. */
const startLimitMs = 10_000;

interface Options {
  readonly name: string;
  /**
   * The module that the thread runs. Its first message says that it is ready; then it answers each task with one message.
   */
  readonly url: URL;
  /** Time limit for one task. */
  readonly limitMs: number;
  /** Time limit for waiting. The first task also waits for the thread to start. */
  readonly waitLimitMs: number;
  readonly maxWaiting: number;
  /** Limit of waiting tasks of one account. */
  readonly maxOfAccount: number;
}

/** Exceeding this ends the thread, not the process. A third of it suffices. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

/** `ended` means that the task took too long or the thread died. `busy` means that the task never got its turn. */
export type Outcome<Result> = { readonly result: Result } | "ended" | "busy";

/** An account whose task took too long waits behind all others for this long: each such attempt takes the thread's whole limit. */
const behindMs = 60_000;

interface Waiting<Task, Result> {
  readonly account: string;
  readonly task: () => Task | Promise<Task>;
  /** Stops waiting and removes the task from the queue. */
  readonly leave: () => void;
  readonly settle: (outcome: Outcome<Result>) => void;
}

/**
 * Runs tasks one after another in a thread, which is terminated when a task takes too long. The thread is started at first
 * use and restarted after it ended. Accounts take turns, those whose tasks took too long after the others. The thread does
 * not keep the process alive.
 */
export function createLimitedThread<Task, Result extends object>(
  { name, url, limitMs, waitLimitMs, maxWaiting, maxOfAccount }: Options,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
) {
  type Job = Waiting<Task, Result>;
  /** Waiting tasks by account; the account whose turn is next comes first. */
  const waiting = new Map<string, Set<Job>>();
  let waitingCount = 0;
  /** Accounts whose tasks took too long, and until when they wait behind the others; the oldest first. */
  const behind = new Map<string, number>();
  let thread: Worker | undefined;
  let isReady = false;
  let running: Job | undefined;
  let stopTimer = () => {};
  let isClosed = false;

  function startTimer(ms: number): void {
    stopTimer();
    stopTimer = onTimeout(clock, ms, () => replaceThread("timeout"));
  }

  function start(): Worker {
    const started = new Worker(url, { name, env: {}, execArgv: [], resourceLimits });
    const on = <T>(event: string, handle: (value: T) => void) =>
      started.on(event, (value: T) => {
        if (thread === started) handle(value);
      });
    on("message", receive);
    // Error messages may quote a prompt.
    on("error", ({ name: reason }: Error) => replaceThread(reason));
    on("exit", () => replaceThread("exited"));
    started.unref();
    startTimer(startLimitMs);
    return started;
  }

  function receive(answer: "ready" | Result): void {
    isReady = true;
    if (answer !== "ready") running?.settle({ result: answer });
    goOn();
  }

  /** The thread is ready for the next task. */
  function goOn(): void {
    stopTimer();
    running = undefined;
    next();
  }

  function refuseAll(): void {
    for (const jobs of waiting.values()) for (const job of jobs) job.settle("busy");
  }

  function replaceThread(reason: string): void {
    log.warn({ thread: name, reason }, "a thread ended");
    // If it did not start, it would not start for the next task either.
    if (!isReady) refuseAll();
    if (running) putBehind(running.account);
    void end("ended");
    next();
  }

  function putBehind(account: string): void {
    const now = clock.now();
    behind.delete(account);
    behind.set(account, now + behindMs);
    for (const [each, until] of behind) if (until <= now) behind.delete(each);
  }

  async function end(outcome: "ended" | "busy"): Promise<void> {
    const [ended, unfinished] = [thread, running];
    thread = undefined;
    running = undefined;
    isReady = false;
    stopTimer();
    unfinished?.settle(outcome);
    await ended?.terminate();
  }

  function next(): void {
    if (running || isClosed || waitingCount === 0) return;
    thread ??= start();
    if (!isReady) return;
    const now = clock.now();
    const inTime = waiting.entries().find(([account]) => (behind.get(account) ?? 0) <= now);
    const [account, jobs] = inTime ?? (waiting.entries().next().value as [string, Set<Job>]);
    const [job] = jobs;
    job?.leave();
    if (waiting.delete(account)) waiting.set(account, jobs);
    running = job;
    startTimer(limitMs);
    if (job) void post(job);
  }

  async function post(job: Job): Promise<void> {
    try {
      const made = job.task();
      const task = made instanceof Promise ? await made : made;
      if (running === job) thread?.postMessage(task);
    } catch (error) {
      // Error messages may quote a prompt.
      const reason = error instanceof Error ? error.name : "unknown";
      log.error({ thread: name, reason }, "a task could not be passed to its thread");
      job.settle("busy");
      if (running === job) goOn();
    }
  }

  return {
    /** `task` is called when its turn comes. */
    async run(task: Job["task"], account: string, signal: AbortSignal): Promise<Outcome<Result>> {
      signal.throwIfAborted();
      const jobs = waiting.get(account) ?? new Set<Job>();
      if (isClosed || waitingCount >= maxWaiting || jobs.size >= maxOfAccount) return "busy";
      const { promise, resolve } = Promise.withResolvers<Outcome<Result>>();
      const stopWaiting = clock.after(waitLimitMs, () => job.settle("busy"));
      const leave = () => {
        stopWaiting();
        if (jobs.delete(job)) waitingCount--;
        if (jobs.size === 0 && waiting.get(account) === jobs) waiting.delete(account);
      };
      const settle = (outcome: Outcome<Result>) => {
        leave();
        resolve(outcome);
      };
      const job: Job = { account, task, leave, settle };
      // An aborted task continues in the thread within its time limit.
      const onAbort = () => settle("busy");
      signal.addEventListener("abort", onAbort, { once: true });
      waiting.set(account, jobs.add(job));
      waitingCount++;
      next();
      const outcome = await promise;
      signal.removeEventListener("abort", onAbort);
      signal.throwIfAborted();
      return outcome;
    },
    async close() {
      isClosed = true;
      refuseAll();
      await end("busy");
    },
  };
}
