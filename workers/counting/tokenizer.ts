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
const maxWaiting = 256;
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
  readonly settle: (counted?: Counted) => void;
}

/** One thread for all, started at first use and again after it ended. It keeps no process alive. */
export function createTokenizer({ clock, log }: { clock: Clock; log: Logger }) {
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
    const on = <T>(event: string, handle: (value: T) => void) =>
      started.on(event, (value: T) => {
        if (thread === started) handle(value);
      });
    on("message", receive);
    // Messages of errors may quote a prompt.
    on("error", ({ name }: Error) => lose(name));
    on("exit", () => lose("exited"));
    started.unref();
    watch(startLimitMs);
    return started;
  }

  function receive(answer: "ready" | Counted): void {
    endWatch();
    isReady = true;
    const done = running;
    running = undefined;
    if (answer !== "ready") done?.settle(answer);
    next();
  }

  function lose(why: string): void {
    log.warn({ why }, "the counting thread is lost");
    // One that does not start would not start for the next either.
    if (!isReady) for (const job of waiting) job.settle();
    void end();
    next();
  }

  async function end(): Promise<void> {
    const [ended, unfinished] = [thread, running];
    thread = undefined;
    running = undefined;
    isReady = false;
    endWatch();
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
    watch(limitMs);
    thread.postMessage(job.prompt);
  }

  return {
    /** Undefined where too many wait, or the time is over, or the thread ended. In the order of the calls. */
    async count(prompt: Countable, signal: AbortSignal): Promise<Counted | undefined> {
      signal.throwIfAborted();
      if (isClosed || waiting.size >= maxWaiting) return undefined;
      const { promise, resolve } = Promise.withResolvers<Counted | undefined>();
      const endWait = clock.after(waitLimitMs, () => job.settle());
      const leave = () => {
        endWait();
        waiting.delete(job);
      };
      const settle = (counted?: Counted) => {
        leave();
        resolve(counted);
      };
      const job: Job = { prompt, leave, settle };
      // A thread that counts for an aborted call goes on, and is watched as before.
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
