import { Worker } from "node:worker_threads";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { PdfSize } from "./pdf.ts";

/** Being counted. */
const limitMs = 1_000;
/** Waiting for its turn; the first also for the thread. */
const waitLimitMs = 5_000;
/** Reading the ranks takes 0.2 s, on a busy machine a second or two. */
const startLimitMs = 10_000;
const mostWaiting = 256;
/** A third of it would do; what takes more ends the thread, not the process. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

/** What the thread is given of one prompt. */
export interface Countable {
  readonly texts: readonly string[];
  /** In base64. */
  readonly documents: readonly string[];
}

export interface Counted {
  /** Of the texts. */
  readonly tokens: number;
  /** In the order of the documents; undefined for one that is none. */
  readonly documents: readonly (PdfSize | undefined)[];
}

interface Job {
  readonly prompt: Countable;
  /** Ends the wait for its turn. */
  readonly leave: () => void;
  readonly settle: (counted: Counted | undefined) => void;
}

export interface Tokenizer {
  /** Undefined where too many wait, or the time is over, or the thread ended. In the order of the calls. */
  count(prompt: Countable, signal: AbortSignal): Promise<Counted | undefined>;
  close(): Promise<void>;
}

/** One thread for all, started at first use and again after it ended. It keeps no process alive. */
export function createTokenizer({ clock, log }: { clock: Clock; log: Logger }): Tokenizer {
  const waiting = new Set<Job>();
  let thread: Worker | undefined;
  let isReady = false;
  let running: Job | undefined;
  let endWatch = () => {};
  let isClosed = false;

  function watch(ms: number): void {
    endWatch();
    endWatch = clock.after(ms, () => lose("over its time"));
  }

  function start(): Worker {
    const url = new URL("./thread.ts", import.meta.url);
    const started = new Worker(url, { name: "counting", env: {}, execArgv: [], resourceLimits });
    started.on("message", (said: unknown) => {
      if (thread === started) heard(said);
    });
    // Messages of errors may quote a prompt.
    started.on("error", ({ name }: Error) => {
      if (thread === started) lose(name);
    });
    started.on("exit", () => {
      if (thread === started) lose("exited");
    });
    started.unref();
    watch(startLimitMs);
    return started;
  }

  function heard(said: unknown): void {
    endWatch();
    isReady = true;
    const done = running;
    running = undefined;
    done?.settle(typeof said === "object" ? (said as Counted) : undefined);
    next();
  }

  function lose(why: string): void {
    log.warn({ why }, "the counting thread is lost");
    // One that does not start would not start for the next either.
    if (!isReady) for (const job of waiting) job.settle(undefined);
    void end();
    next();
  }

  async function end(): Promise<void> {
    const [ended, left] = [thread, running];
    thread = undefined;
    running = undefined;
    isReady = false;
    endWatch();
    left?.settle(undefined);
    await ended?.terminate();
  }

  function next(): void {
    const [job] = waiting;
    if (!job || running || isClosed) return;
    thread ??= start();
    if (!isReady) return;
    job.leave();
    running = job;
    watch(limitMs);
    thread.postMessage(job.prompt);
  }

  return {
    count: (prompt, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (isClosed || waiting.size >= mostWaiting) return resolve(undefined);
        const endWait = clock.after(waitLimitMs, () => job.settle(undefined));
        const leave = () => {
          endWait();
          waiting.delete(job);
        };
        // A thread that counts for nobody goes on, and is watched as ever.
        const onAbort = () => {
          leave();
          reject(signal.reason);
        };
        const job: Job = {
          prompt,
          leave,
          settle(counted) {
            leave();
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
