import type { Redis } from "ioredis";
import type { Clock } from "#platform/clock";
import { randomBase62 } from "#platform/ids";

/** A value in Redis that every change of a key, its limits or its account replaces, after MongoDB has the change. */
export interface Epoch {
  /** The value of at most `trustMs` ago. Asks Redis only if no command has returned it since. */
  current(): Promise<string>;
  /** The value last observed, however long ago. */
  last(): string;
  /** Notes what a command returned that was sent at `sentAt`. */
  observe(value: string, sentAt: number): void;
  replace(): Promise<void>;
}

export const epochKey = "limits:epoch";
const trustMs = 500;

/**
 * Values are random, not counted: one that Redis lost in a crash never comes back with another meaning. While Redis does
 * not answer, each failed read makes a local value, so that nothing cached under the one before outlives it.
 */
export function createEpoch({ redis, clock }: { redis: Redis; clock: Clock }): Epoch {
  let last = "never observed";
  let knownAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function read() {
    const sentAt = clock.now();
    try {
      observe((await redis.get(epochKey)) ?? "", sentAt);
    } catch {
      last = `unknown since ${sentAt}`;
      knownAt = clock.now();
    } finally {
      reading = undefined;
    }
  }

  function observe(value: string, sentAt: number) {
    last = value;
    knownAt = Math.max(knownAt, sentAt);
  }

  return {
    async current() {
      if (clock.now() - knownAt > trustMs) {
        reading ??= read();
        await reading;
      }
      return last;
    },
    last: () => last,
    observe,
    async replace() {
      await redis.set(epochKey, randomBase62(16));
    },
  };
}
