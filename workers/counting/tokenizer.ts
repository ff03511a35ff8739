import { Worker } from "node:worker_threads";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { PdfSize } from "./pdf.ts";

const maxCountMs = 1_000;
/** The first prompt also waits for the thread to start. */
const maxWaitMs = 5_000;
/** Loading the ranks takes 0.2 s, on a busy machine a second or two. */
const maxStartMs = 10_000;
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
  readonly stopWaiting: () => void;
  readonly settle: (counted: Counted | undefined) => void;
}

export interface Tokenizer {
  /** Resolves in the order of the calls; with undefined if too many wait, the time is over, or the thread ended. */
  count(prompt: Countable, signal: AbortSignal): Promise<Counted | undefined>;
  close(): Promise<void>;
}

/** One thread, started at first use and again after it ended. It does not keep the process alive. */
export function createTokenizer({ clock, log }: { clock: Clock; log: Logger }): Tokenizer {
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
    started.on("message", (message: unknown) => {
      if (thread === started) onMessage(message);
    });
    // Error messages may quote a prompt.
    started.on("error", ({ name }: Error) => {
      if (thread === started) replaceThread(name);
    });
    started.on("exit", () => {
      if (thread === started) replaceThread("exited");
    });
    started.unref();
    startTimer(maxStartMs);
    return started;
  }

  /** A count, or the first message, which says that the thread is ready. */
  function onMessage(message: unknown): void {
    stopTimer();
    isReady = true;
    const done = running;
    running = undefined;
    done?.settle(typeof message === "object" ? (message as Counted) : undefined);
    next();
  }

  function replaceThread(reason: string): void {
    log.warn({ reason }, "the counting thread ended");
    // If it did not start, it would not start for the next prompt either.
    if (!isReady) for (const job of waiting) job.settle(undefined);
    void end();
    next();
  }

  async function end(): Promise<void> {
    const [ended, unfinished] = [thread, running];
    thread = undefined;
    running = undefined;
    isReady = false;
    stopTimer();
    unfinished?.settle(undefined);
    await ended?.terminate();
  }

  function next(): void {
    const [job] = waiting;
    if (!job || running || isClosed) return;
    thread ??= start();
    if (!isReady) return;
    job.stopWaiting();
    running = job;
    startTimer(maxCountMs);
    thread.postMessage(job.prompt);
  }

  return {
    count: (prompt, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (isClosed || waiting.size >= maxWaiting) return resolve(undefined);
        const endWait = clock.after(maxWaitMs, () => job.settle(undefined));
        const stopWaiting = () => {
          endWait();
          waiting.delete(job);
        };
        // An aborted count goes on in the thread, within its time limit.
        const onAbort = () => {
          stopWaiting();
          reject(signal.reason);
        };
        const job: Job = {
          prompt,
          stopWaiting,
          settle(counted) {
            stopWaiting();
            signal.removeEventListener("abort", onAbort);
            resolve(counted);
          },
        };
        signal.addEventListener("abort", onAbort, { once: true });
        waiting.add(job);
        next();
      }),
    async close() {
      isClosed = true;
      for (const job of waiting) job.settle(undefined);
      await end();
    },
  };
}
