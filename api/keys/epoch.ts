import { setImmediate as endOfTurn } from "node:timers/promises";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";

/** Matches every epoch, for a caller that was not looked up or has just been refreshed. */
export const anyEpoch = "any";

const epochKey = "limits:epoch";
const trustMs = 500;

/**
 * The epoch is a value in Redis. Every change of a key, its limits or its account replaces it, after MongoDB has the change.
 *
 * Values are random rather than counted, so that a value lost in a crash of Redis never returns with another meaning. While
 * Redis does not answer, each failed read creates a local value, so that nothing cached under the previous one stays valid.
 */
export function createEpoch({ redis, clock }: Uses<"redis" | "clock">) {
  let last = "never observed";
  let knownAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  let joined: Promise<string> | undefined;

  const get = async () => (await redis.get(epochKey)) ?? "";

  async function readAfterTurn(): Promise<string> {
    await endOfTurn();
    joined = undefined;
    const sentAt = clock.now();
    const value = await get();
    observe(value, sentAt);
    return value;
  }

  async function read(): Promise<void> {
    const sentAt = clock.now();
    try {
      observe(await get(), sentAt);
    } catch {
      last = `unknown since ${sentAt}`;
      knownAt = clock.now();
    } finally {
      reading = undefined;
    }
  }

  /** Records the value returned by a command that was sent at `sentAt`. */
  function observe(value: string, sentAt: number): void {
    last = value;
    knownAt = Math.max(knownAt, sentAt);
  }

  return {
    /** The value last observed, however long ago. */
    last: () => last,

    /** Reads the value unless it was read within the last `trustMs`. */
    async update(): Promise<void> {
      if (clock.now() - knownAt <= trustMs) return;
      reading ??= read();
      await reading;
    },

    /** Resolves to the value, read after this call. Calls in one turn of the event loop share a command. */
    current: (): Promise<string> => (joined ??= readAfterTurn()),

    async replace(): Promise<void> {
      await redis.set(epochKey, randomBase62(16));
    },
  };
}

export type Epoch = ReturnType<typeof createEpoch>;
