/**
 * Times of calls in buckets whose bounds are the same in every row, so that buckets can be added. Bucket `n` has the times
 * from `growth ** n` to `growth ** (n + 1)` milliseconds. The middle of a bucket is within 5 % of each time in it.
 */
const growth = 1.1;
/** Has all times above 52 hours. */
const lastBucket = 200;

/** Calls by bucket. A bucket without calls is omitted. */
export type Buckets = Readonly<Record<string, number>>;

/**
 * The time to the first token of a stream, and the whole time of any other call that succeeded. Null for calls without
 * either, and for uploads.
 */
const latencyMs = {
  $cond: [
    { $eq: ["$kind", "usage"] },
    {
      $ifNull: [
        "$request.firstTokenMs",
        { $cond: [{ $eq: ["$request.status", "succeeded"] }, "$request.totalMs", null] },
      ],
    },
    null,
  ],
};

/** The bucket of a ledger entry, or null. */
const bucketOfEntry = {
  $let: {
    vars: { ms: latencyMs },
    in: {
      $cond: [
        { $isNumber: "$$ms" },
        {
          $toString: {
            $min: [lastBucket, { $floor: { $divide: [{ $ln: { $max: [1, "$$ms"] } }, Math.log(growth)] } }],
          },
        },
        null,
      ],
    },
  },
};

type Sums = Readonly<Record<string, object>>;

const hasBucket = { $gt: ["$_id.bucket", null] };

/** Groups that also have a `bucket` in their `_id`, and their number of `timed` calls, become groups with `latency`. */
const collectBuckets = (fields: readonly string[], names: readonly string[]) => [
  {
    $group: {
      _id: Object.fromEntries(fields.map((field) => [field, `$_id.${field}`])),
      ...Object.fromEntries(names.map((name) => [name, { $sum: `$${name}` }])),
      latency: { $push: { $cond: [hasBucket, { k: "$_id.bucket", v: "$timed" }, "$$REMOVE"] } },
    },
  },
  { $set: { latency: { $arrayToObject: "$latency" } } },
];

/** Sums ledger entries by group, with the buckets of each group. */
export const sumEntries = (group: Readonly<Record<string, unknown>>, sums: Sums) => [
  { $group: { _id: { ...group, bucket: bucketOfEntry }, ...sums, timed: { $sum: 1 } } },
  ...collectBuckets(Object.keys(group), Object.keys(sums)),
];

/** Sums rows by fields of theirs, with the buckets of each group. */
export const sumRows = (group: Readonly<Record<string, unknown>>, names: readonly string[]) => [
  { $set: { part: { $concatArrays: [[{}], { $objectToArray: { $ifNull: ["$latency", {}] } }] } } },
  { $unwind: "$part" },
  {
    $group: {
      _id: { ...group, bucket: "$part.k" },
      ...Object.fromEntries(
        names.map((name) => [name, { $sum: { $cond: [{ $gt: ["$part.k", null] }, 0, `$${name}`] } }]),
      ),
      timed: { $sum: "$part.v" },
    },
  },
  ...collectBuckets(Object.keys(group), names),
];

/** The nearest-rank percentile, as the middle of its bucket. Null without calls. */
export function percentileMs(buckets: Buckets, percent: number): number | null {
  const sorted = Object.entries(buckets).toSorted(([one], [other]) => Number(one) - Number(other));
  const total = sorted.reduce((sum, [, calls]) => sum + calls, 0);
  let rest = Math.ceil((total * percent) / 100);
  for (const [bucket, calls] of sorted) {
    rest -= calls;
    if (rest <= 0) return Math.round(growth ** (Number(bucket) + 0.5));
  }
  return null;
}
