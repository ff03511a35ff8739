import type { Worker } from "node:worker_threads";
import { afterAll, onTestFinished } from "vitest";
import { createLogger } from "../../shared/platform/logger.ts";
import { type Counting, createCounting } from "../../workers/counting/index.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";

/** The additional tokens of each message of ours, and of the beginning of the answer. */
export const framing = { message: 4, answer: 3 };

export const said = (content: unknown) => ({ model: "m", messages: [{ role: "user", content }] });
export const alone = framing.message + framing.answer;
export const never = new AbortController().signal;

/** One thread for all tests of a file: it takes 0.2 s to start. */
export function shareCounting(): Counting {
  const counting = createCounting({ clock: createManualClock(), log: createLogger("test", "silent") });
  afterAll(() => counting.close());
  return counting;
}

interface Started {
  readonly counting: Counting;
  readonly clock: ManualClock;
  readonly threads: readonly Worker[];
  readonly log: () => string;
  /**
   * Resolves when the tokenizer waits for something, within one turn of the event loop, so that no result of the thread
   * arrives in it.
   */
  begun: () => Promise<void>;
}

/** Uses a stopped clock: no limit passes unless the test moves it. */
export function startCounting(): Started {
  const clock = createManualClock();
  const threads: Worker[] = [];
  const onWorker = (worker: Worker) => void threads.push(worker);
  process.on("worker", onWorker);
  let lines = "";
  const log = createLogger("test", "debug", { write: (line) => void (lines += line) });
  const counting = createCounting({ clock, log });
  onTestFinished(() => {
    process.off("worker", onWorker);
    return counting.close();
  });
  return {
    counting,
    clock,
    threads,
    log: () => lines,
    async begun() {
      for (let turns = 0; turns < 1_000 && clock.pending() === 0; turns++) await Promise.resolve();
    },
  };
}
