import type { Redis } from "ioredis";
import type { Clock } from "#platform/clock";
import { randomBase62 } from "#platform/ids";

export const epochKey = "limits:epoch";
const trustMs = 500;

/**
 * The epoch is a value in Redis that every change of a key, its limits or its account replaces, after MongoDB has the change.
 *
 * Values are random, not counted: one that Redis lost in a crash never comes back with another meaning. While Redis does
 * not answer, each failed read makes a local value, so that nothing cached under the one before outlives it.
 */
export function createEpoch({ redis, clock }: { redis: Redis; clock: Clock }) {
  let last = "never observed";
  let knownAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
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

  /** Notes what a command returned that was sent at `sentAt`. */
  function observe(value: string, sentAt: number): void {
    last = value;
    knownAt = Math.max(knownAt, sentAt);
  }

  return {
    observe,
    /** The value last observed, however long ago. */
    last: () => last,

    /** Reads the value, unless a command of the last `trustMs` has returned it. */
    async update(): Promise<void> {
      if (clock.now() - knownAt <= trustMs) return;
      reading ??= read();
      await reading;
    },

    async replace(): Promise<void> {
      await redis.set(epochKey, randomBase62(16));
    },
  };
}

export type Epoch = ReturnType<typeof createEpoch>;
