import { growth, lastBucket } from "#platform/time-buckets";

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
