/**
 * The load of the service: calls, failures and charges by minute and by hour, for the operator's overview. Every
 * process counts in memory and adds its counts to Redis every five seconds, so reading them costs the same at any load.
 * It is not a ledger: counts that Redis or a killed process loses are missing here. Owns the Redis keys `{traffic}:*`,
 * which expire.
 */
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import type { Uses } from "#platform/uses";

const fields = ["calls", "failed", "refused", "nanoUsd"] as const;
type Field = (typeof fields)[number];
export type TrafficCount = { readonly [Name in Exclude<Field, "nanoUsd">]: number } & { readonly nanoUsd: bigint };
export interface TrafficPoint extends TrafficCount {
  /** Unix milliseconds at which its minute or hour begins. */
  readonly at: number;
}

const minuteMs = 60_000;
/** The size, number and retention of each kind of bucket. */
const sizes = {
  minute: { ms: minuteMs, count: 60, seconds: 2 * 3_600 },
  hour: { ms: 60 * minuteMs, count: 24, seconds: 26 * 3_600 },
} as const;
type Size = keyof typeof sizes;
const flushMs = 5_000;

const keyOf = (size: Size, at: number) => `{traffic}:${size}:${at}`;
const startOf = (size: Size, at: number) => at - (at % sizes[size].ms);

export type TrafficCounter = ReturnType<typeof createTrafficCounter>;

export function createTrafficCounter() {
  let counts = new Map<Field, bigint>();
  const add = (field: Field, by: bigint) => void counts.set(field, (counts.get(field) ?? 0n) + by);
  return {
    /** Counts a call that ended, in the process that captured its cost, so that it counts as its entry in the ledger says. */
    ended(status: string, nanoUsd: bigint): void {
      add("calls", 1n);
      if (status === "failed") add("failed", 1n);
      if (nanoUsd > 0n) add("nanoUsd", nanoUsd);
    },
    /** Counts a request that was refused before it became a call. */
    refused(): void {
      add("calls", 1n);
      add("refused", 1n);
    },
    take(): ReadonlyMap<Field, bigint> {
      const taken = counts;
      counts = new Map();
      return taken;
    },
    /** Returns counts that could not be written, so that they are written with the next ones. */
    giveBack: (taken: ReadonlyMap<Field, bigint>): void => taken.forEach((by, field) => add(field, by)),
  };
}

/** Adds the counts of this process to the totals. */
export function startTraffic(deps: Uses<"redis" | "clock" | "log"> & { counter: TrafficCounter }) {
  const { counter, redis, clock, log } = deps;

  const flush = oneAtATime(log, "the traffic counts could not be written", async () => {
    const taken = counter.take();
    if (taken.size === 0) return;
    const batch = redis.multi();
    for (const size of Object.keys(sizes) as Size[]) {
      const key = keyOf(size, startOf(size, clock.now()));
      for (const [field, by] of taken) batch.hincrby(key, field, String(by));
      batch.expire(key, sizes[size].seconds);
    }
    try {
      await batch.exec();
    } catch (error) {
      counter.giveBack(taken);
      throw error;
    }
  });
  const stop = clock.every(flushMs, () => void flush());

  /** Oldest first; the last one is the current minute or hour. Rejects while Redis is unavailable. */
  async function read(size: Size): Promise<TrafficPoint[]> {
    const { ms, count } = sizes[size];
    const last = startOf(size, clock.now());
    const starts = Array.from({ length: count }, (_, n) => last - (count - 1 - n) * ms);
    const stored = await Promise.all(starts.map((at) => redis.hmget(keyOf(size, at), ...fields)));
    return starts.map((at, n) => {
      const [calls, failed, refused, nanoUsd] = stored[n] ?? [];
      const number = (text: string | null | undefined) => Number(text ?? 0);
      return {
        at,
        calls: number(calls),
        failed: number(failed),
        refused: number(refused),
        nanoUsd: BigInt(nanoUsd ?? 0),
      };
    });
  }

  return {
    read,
    /** Writes the remaining counts once, unless Redis is unavailable. */
    async stop(): Promise<void> {
      stop();
      if (redis.status === "ready") await flush();
    },
  };
}

export type Traffic = ReturnType<typeof startTraffic>;

export const sumOf = (points: readonly TrafficCount[]): TrafficCount => ({
  calls: points.reduce((sum, { calls }) => sum + calls, 0),
  failed: points.reduce((sum, { failed }) => sum + failed, 0),
  refused: points.reduce((sum, { refused }) => sum + refused, 0),
  nanoUsd: points.reduce((sum, { nanoUsd }) => sum + nanoUsd, 0n),
});
