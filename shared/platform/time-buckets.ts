/**
 * Durations in buckets whose bounds are always the same, so that buckets can be added. Bucket `n` has the times from
 * `growth ** n` to `growth ** (n + 1)` milliseconds. The middle of a bucket is within 5 % of each time in it.
 */
export const growth = 1.1;
/** Has all times above 52 hours. */
export const lastBucket = 200;

/** Times by bucket. A bucket without times is omitted. */
export type Buckets = Readonly<Record<string, number>>;

export const bucketOf = (ms: number): number =>
  Math.min(lastBucket, Math.floor(Math.log(Math.max(1, ms)) / Math.log(growth)));

/** The nearest-rank percentile, as the middle of its bucket. Null without times. */
export function percentileMs(buckets: Buckets, percent: number): number | null {
  const sorted = Object.entries(buckets).toSorted(([one], [other]) => Number(one) - Number(other));
  const total = sorted.reduce((sum, [, times]) => sum + times, 0);
  let rest = Math.ceil((total * percent) / 100);
  for (const [bucket, times] of sorted) {
    rest -= times;
    if (rest <= 0) return Math.round(growth ** (Number(bucket) + 0.5));
  }
  return null;
}
