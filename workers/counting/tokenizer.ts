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

/** What the thread gets of one prompt. */
export interface Countable {
  readonly texts: readonly string[];
  readonly documents: readonly Readable[];
}

export interface CountedTokens {
  /** Of all texts. */
  readonly tokens: number;
  /** In the order of the documents; undefined for one that could not be read. */
  readonly documents: readonly Measured[];
}

export function createTokenizer(deps: { clock: Clock; log: Logger }) {
  const thread = createLimitedThread<Countable, CountedTokens>(options, deps);
  return {
    /** Resolves in the order of the calls; with undefined if too many wait, the time is over, or the thread ended. */
    async count(prompt: Countable, signal: AbortSignal): Promise<CountedTokens | undefined> {
      const outcome = await thread.run(() => prompt, "", signal);
      return typeof outcome === "object" ? outcome.result : undefined;
    },
    close: () => thread.close(),
  };
}
