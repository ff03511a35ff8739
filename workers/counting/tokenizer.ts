import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { createLimitedThread } from "../limited-thread.ts";
import type { Measured, Readable } from "./media.ts";

const options = {
  name: "counting",
  url: new URL("./thread.ts", import.meta.url),
  limitMs: 1_000,
  waitLimitMs: 5_000,
  maxWaiting: 256,
  maxOfAccount: 256,
};

/** The parts of a prompt that are sent to the thread. */
export interface Countable {
  readonly texts: readonly string[];
  readonly documents: readonly Readable[];
}

export interface CountedTokens {
  /** The total of all texts. */
  readonly tokens: number;
  /** Measurements in the order of the documents; undefined for a document that could not be read. */
  readonly documents: readonly Measured[];
}

export function createTokenizer(deps: { clock: Clock; log: Logger }) {
  const thread = createLimitedThread<Countable, CountedTokens>(options, deps);
  return {
    /** Resolves in the order of the calls, with undefined if too many prompts wait, time runs out, or the thread ends. */
    async count(prompt: Countable, signal: AbortSignal): Promise<CountedTokens | undefined> {
      const outcome = await thread.run(() => prompt, "", signal);
      return typeof outcome === "object" ? outcome.result : undefined;
    },
    close: () => thread.close(),
  };
}
