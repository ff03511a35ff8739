import { Worker } from "node:worker_threads";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { PdfSize } from "./pdf.ts";

/** For counting one prompt. */
const limitMs = 1_000;
/** For waiting. The first prompt also waits for the thread to start. */
const waitLimitMs = 5_000;
/** Loading the ranks takes 0.2 s, on a busy machine a second or two. */
const startLimitMs = 10_000;
const maxWaiting = 256;
/** A third of it suffices. More ends the thread, not the process. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

/** What the thread gets of one prompt. */
export interface Countable {
  readonly texts: readonly string[];
  /** In base64. */
  readonly documents: readonly string[];
}

export interface Counted {
  /** Of all texts. */
  readonly tokens: number;
  /** In the order of the documents; undefined for one that could not be read. */
  readonly documents: readonly (PdfSize | undefined)[];
}

interface Job {
  readonly prompt: Countable;
  /** Ends the wait for its turn. */
  readonly leave: () => void;
  readonly settle: (counted?: Counted) => void;
}

/** One thread, started at first use and again after it ended. It does not keep the process alive. */
export function createTokenizer({ clock, log }: { clock: Clock; log: Logger }) {
  const waiting = new Set<Job>();
  let thread: Worker | undefined;
  let isReady = false;
  let running: Job | undefined;
  let stopTimer = () => {};
  let isClosed = false;

  function startTimer(ms: number): void {
    stopTimer();
    stopTimer = clock.after(ms, () => replaceThread("timeout"));
  }

  function start(): Worker {
    const url = new URL("./thread.ts", import.meta.url);
    const started = new Worker(url, { name: "counting", env: {}, execArgv: [], resourceLimits });
    const on = <T>(event: string, handle: (value: T) => void) =>
      started.on(event, (value: T) => {
        if (thread === started) handle(value);
      });
    on("message", receive);
    // Error messages may quote a prompt.
    on("error", ({ name }: Error) => replaceThread(name));
    on("exit", () => replaceThread("exited"));
    started.unref();
    startTimer(startLimitMs);
    return started;
  }

  function receive(answer: "ready" | Counted): void {
    stopTimer();
    isReady = true;
    const done = running;
    running = undefined;
    if (answer !== "ready") done?.settle(answer);
    next();
  }

  function replaceThread(reason: string): void {
    log.warn({ reason }, "the counting thread ended");
    // If it did not start, it would not start for the next prompt either.
    if (!isReady) for (const job of waiting) job.settle();
    void end();
    next();
  }

  async function end(): Promise<void> {
    const [ended, unfinished] = [thread, running];
    thread = undefined;
    running = undefined;
    isReady = false;
    stopTimer();
    unfinished?.settle();
    await ended?.terminate();
  }

  function next(): void {
    const [job] = waiting;
    if (!job || running || isClosed) return;
    thread ??= start();
    if (!isReady) return;
    job.leave();
    running = job;
    startTimer(limitMs);
    thread.postMessage(job.prompt);
  }

  return {
    /** Resolves in the order of the calls; with undefined if too many wait, the time is over, or the thread ended. */
    async count(prompt: Countable, signal: AbortSignal): Promise<Counted | undefined> {
      signal.throwIfAborted();
      if (isClosed || waiting.size >= maxWaiting) return undefined;
      const { promise, resolve } = Promise.withResolvers<Counted | undefined>();
      const stopWaiting = clock.after(waitLimitMs, () => job.settle());
      const leave = () => {
        stopWaiting();
        waiting.delete(job);
      };
      const settle = (counted?: Counted) => {
        leave();
        resolve(counted);
      };
      const job: Job = { prompt, leave, settle };
      // An aborted count goes on in the thread, within its time limit.
      const onAbort = () => settle();
      signal.addEventListener("abort", onAbort, { once: true });
      waiting.add(job);
      next();
      const counted = await promise;
      signal.removeEventListener("abort", onAbort);
      signal.throwIfAborted();
      return counted;
    },
    async close() {
      isClosed = true;
      for (const job of waiting) job.settle();
      await end();
    },
  };
}
