/**
 * Cluster-wide counts for the metrics of all API instances. One maintenance worker computes them, so that MongoDB is
 * not queried by every process at every scrape. Owns the Redis hash `gathered`. While Redis is unavailable, or after it
 * has lost its data, the values are missing until the next run. Times are Unix milliseconds, amounts decimal strings of
 * nano-USD.
 */
import { z } from "zod";
import type { Uses } from "#platform/uses";

const key = "gathered";
/** Older counts are outdated: no maintenance worker is running. */
export const maxStatsAgeMs = 120_000;
/** Cached briefly, because a scrape reads the values one after the other. */
const freshMs = 500;

const holds = z.object({ open: z.number(), oldestAt: z.number().optional() });
const found = z.object({ differenceNanoUsd: z.string(), faults: z.number() });

const shapes = {
  counts: z.object({
    at: z.number(),
    holds,
    leases: holds,
    undecided: z.number(),
    uploads: z.record(z.string(), z.number()),
    dueSince: z.number().optional(),
    buybacks: z.record(z.string(), z.number()),
    /** When the oldest batch of each open status was created, and since when one has recorded no line. */
    batches: z.object({ oldestAt: z.record(z.string(), z.number()), stalledSince: z.number().optional() }).optional(),
  }),
  /** Since when the most overdue webhook is due. */
  webhooks: z.object({ at: z.number(), dueSince: z.number().optional() }),
  /** The last complete check of the ledger, and the one in progress, which continues after the account `after`. */
  check: z.object({
    complete: found.extend({ at: z.number() }).optional(),
    current: found.extend({ after: z.string() }).optional(),
  }),
};

export type ClusterCounts = z.infer<typeof shapes.counts>;
export type ClusterCheck = z.infer<typeof shapes.check>;
interface StatsValues {
  readonly counts?: ClusterCounts | undefined;
  readonly check?: ClusterCheck | undefined;
  readonly webhooks?: z.infer<typeof shapes.webhooks> | undefined;
}

export type ClusterStats = ReturnType<typeof createClusterStats>;

export function createClusterStats({ redis, clock }: Uses<"redis" | "clock">) {
  let last: { readonly at: number; readonly values: Promise<StatsValues> } | undefined;

  async function readNow(): Promise<StatsValues> {
    const stored = await redis.hgetall(key);
    // Another version of the worker may have written it.
    const parse = <T>(shape: z.ZodType<T>, text: string | undefined): T | undefined =>
      text === undefined ? undefined : shape.safeParse(JSON.parse(text)).data;
    return {
      counts: parse(shapes.counts, stored["counts"]),
      check: parse(shapes.check, stored["check"]),
      webhooks: parse(shapes.webhooks, stored["webhooks"]),
    };
  }

  return {
    /** Rejects while Redis is unavailable. */
    read(): Promise<StatsValues> {
      const at = clock.now();
      if (!last || at - last.at >= freshMs) last = { at, values: readNow() };
      return last.values;
    },
    async write(values: StatsValues): Promise<void> {
      for (const [name, value] of Object.entries(values)) await redis.hset(key, name, JSON.stringify(value));
    },
  };
}
