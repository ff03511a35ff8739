import type { Redis } from "ioredis";
import type { Clock } from "#platform/clock";
import { randomBase62 } from "#platform/ids";

/** A value in Redis that every change of a key, its limits or its account replaces, after MongoDB has the change. */
export interface Epoch {
  /** The value as Redis told it at most `trustMs` ago. Asks Redis only when nobody has heard it since. */
  current(): Promise<string>;
  /** The last value heard, however long ago. */
  last(): string;
  /** What another command brought along that was sent at `sentAt`. */
  heard(value: string, sentAt: number): void;
  replace(): Promise<void>;
}

export const epochKey = "limits:epoch";
const trustMs = 500;

/**
 * Values are random rather than counted: one that Redis lost in a crash never comes back with another meaning.
 * While Redis does not answer, each failed question makes a value of our own, so that nothing remembered under the one
 * before outlives it.
 */
export function createEpoch({ redis, clock }: { redis: Redis; clock: Clock }): Epoch {
  let value = "never heard";
  let knownAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;

  async function ask() {
    const sentAt = clock.now();
    try {
      heard((await redis.get(epochKey)) ?? "", sentAt);
    } catch {
      value = `unknown since ${sentAt}`;
      knownAt = clock.now();
    } finally {
      asking = undefined;
    }
  }

  function heard(told: string, sentAt: number) {
    value = told;
    knownAt = Math.max(knownAt, sentAt);
  }

  return {
    async current() {
      if (clock.now() - knownAt > trustMs) {
        asking ??= ask();
        await asking;
      }
      return value;
    },
    last: () => value,
    heard,
    async replace() {
      await redis.set(epochKey, randomBase62(16));
    },
  };
}
