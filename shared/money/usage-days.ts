import { type ClientSession, type InferRawDocType, Schema } from "mongoose";
import { inputKeys, outputKeys, pieceKeys } from "#catalog";
import type { Clock } from "#platform/clock";
import { openCollection, scatter } from "#platform/collection";
import { answered, type Mongo } from "#platform/mongo";
import { createKeyTotals } from "./key-totals.ts";
import { type Ledger, refundPrefix, timeIndex } from "./ledger.ts";
import { dayOf, daysLater, startOf } from "./usage-dates.ts";
import { daySchema, group, type StoredUsageDay } from "./usage-rows.ts";
import { createUsageViews } from "./usage-views.ts";

const states = {
  /** The day. */
  _id: { type: String, required: true },
  version: { type: Number, required: true },
  /** How many entries of the ledger the rows are made from. Absent: a run has begun and not ended. */
  entries: { type: Number },
  /** The rows stand. */
  closed: { type: Boolean },
} as const;
const stateSchema = new Schema(states, { collection: "usageDayStates", strict: "throw", versionKey: false });

type State = InferRawDocType<typeof states>;

/** The entries that usage is made of: with the refunds, all that calls and uploads change of a balance. */
const charges = ["usage", "storage"] as const;
export const refunds = { kind: "refund" } as const;

/** Looks the usage up once, which makes the job a tenth faster than a path from the entry for each key. */
const counted = (keys: readonly string[]) => ({
  $sum: { $let: { vars: { usage: "$request.usage" }, in: { $sum: keys.map((key) => `$$usage.${key}`) } } },
});
/** By the fields of a row. */
const sums = {
  entries: { $sum: 1 },
  calls: { $sum: { $cond: [{ $eq: ["$kind", refunds.kind] }, 0, 1] } },
  failed: { $sum: { $cond: [{ $eq: ["$request.status", "failed"] }, 1, 0] } },
  input: counted(inputKeys),
  output: counted(outputKeys),
  cached: { $sum: "$request.usage.cached_input" },
  units: counted(pieceKeys),
  amount: { $sum: "$amount" },
};
const counts = ["entries", "calls", "failed", "input", "output", "cached", "units"] as const;
const sameGroup = {
  account: "$account",
  ...Object.fromEntries(Object.keys(group).map((field) => [field, `$request.${field}`])),
};

/**
 * The collection `usageDays`: what each account used in a day, by key, model and endpoint. A job makes the rows of today and
 * yesterday from the ledger again and replaces them; those of older days stand, also when their entries are in the archive.
 * An entry, a refund too, counts on the day on which it was decided.
 *
 * A run claims a day by a higher version, and replaces no row of a higher one. The last run that claimed a day records how many
 * entries the ledger had before; the ledger only grows, so with as many entries nothing is to be done. A run after one that
 * did not end writes every row, so that nothing which that one still writes counts; any other writes the rows that changed.
 */
export function createUsageDays({ mongo, ledger, clock }: { mongo: Mongo; ledger: Ledger; clock: Clock }) {
  const { collection } = openCollection<StoredUsageDay>(mongo, "usageDays", daySchema);
  const totals = createKeyTotals({ mongo, days: collection, clock });
  const { collection: stateOf } = openCollection<State>(mongo, "usageDayStates", stateSchema);

  const inDay = (day: string) => ({
    createdAt: { $gte: new Date(startOf(day)), $lt: new Date(startOf(daysLater(day, 1))) },
  });
  const rowsOfDay = (day: string) => ({ _id: { $gte: { day }, $lt: { day: daysLater(day, 1) } } }) as object;

  /** Refunds name no key and model, but their call. */
  const refunded = (day: string) => [
    { $match: { ...refunds, ...inDay(day) } },
    { $set: { call: { $substrBytes: ["$_id", refundPrefix.length, -1] } } },
    { $lookup: { from: "ledger", localField: "call", foreignField: "_id", as: "call" } },
    { $set: { request: { $mergeObjects: [{ $first: "$call.request" }, { status: "", usage: {} }] } } },
    { $group: { _id: sameGroup, ...sums } },
  ];

  /** Makes the rows of a day in MongoDB, which sends none of them here. A row without entries is to be removed. */
  const rowsOf = (day: string, { version, all }: { version: number; all: boolean }) => [
    { $match: { ...inDay(day), kind: { $in: charges } } },
    { $group: { _id: sameGroup, ...sums } },
    { $unionWith: { coll: "ledger", pipeline: refunded(day) } },
    { $set: { _id: { $mergeObjects: [{ day }, "$_id"] } } },
    {
      $unionWith: {
        coll: "usageDays",
        pipeline: [{ $match: rowsOfDay(day) }, { $project: { had: { entries: "$entries", cost: "$cost" } } }],
      },
    },
    {
      $group: {
        _id: "$_id",
        ...Object.fromEntries([...counts, "amount"].map((field) => [field, { $sum: `$${field}` }])),
        hadEntries: { $sum: "$had.entries" },
        hadCost: { $sum: "$had.cost" },
      },
    },
    ...(all
      ? []
      : [
          {
            $match: {
              $expr: {
                $or: [{ $ne: ["$entries", "$hadEntries"] }, { $ne: [{ $add: ["$amount", "$hadCost"] }, 0] }],
              },
            },
          },
        ]),
    {
      $project: {
        ...Object.fromEntries(["day", ...Object.keys(sameGroup)].map((field) => [field, `$_id.${field}`])),
        ...Object.fromEntries(counts.map((field) => [field, 1])),
        cost: { $toLong: { $subtract: [0, "$amount"] } },
        version: { $literal: version },
      },
    },
    {
      $merge: {
        into: "usageDays",
        whenMatched: [{ $replaceWith: { $cond: [{ $gt: ["$version", version] }, "$$ROOT", "$$new"] } }],
        whenNotMatched: "insert",
      },
    },
  ];

  async function countEntries(day: string, session: ClientSession): Promise<number> {
    const count = { count: "ledger", query: inDay(day), hint: timeIndex, readConcern: { level: "majority" } };
    const { n } = await mongo.db.command({ ...count, ...scatter("usage days") }, { session });
    return Number(n);
  }

  /** Makes the rows of a day, unless they are made from as many entries. */
  async function recompute(day: string, session: ClientSession): Promise<void> {
    const entries = await countEntries(day, session);
    const state = await answered(stateOf.findOne({ _id: day }));
    if (state?.entries === entries) return;
    const claim = { $inc: { version: 1 }, $unset: { entries: "" as const } };
    const claimed = await answered(
      stateOf.findOneAndUpdate({ _id: day }, claim, { upsert: true, returnDocument: "before" }),
    );
    const version = (claimed?.version ?? 0) + 1;
    const pipeline = rowsOf(day, { version, all: claimed != null && claimed.entries == null });
    // In the same session: it sees at least what was counted.
    const options = { session, hint: timeIndex, allowDiskUse: true, readConcern: { level: "majority" } } as const;
    await ledger.collection.aggregate(pipeline, { ...options, ...scatter("usage days") }).toArray();
    await collection.deleteMany({ ...rowsOfDay(day), entries: 0 }, scatter("usage days"));
    await answered(stateOf.updateOne({ _id: day, version }, { $set: { entries } }));
  }

  /** The first day whose rows may still change. */
  async function firstOpenDay(): Promise<string> {
    const closed = await answered(stateOf.findOne({ closed: true }, { sort: { _id: -1 } }));
    return closed ? daysLater(closed._id, 1) : dayOf(0);
  }

  /** The first day with entries, from this one on. */
  async function nextDay(from: string): Promise<string | undefined> {
    const options = { hint: timeIndex, sort: { createdAt: 1, _id: 1 }, ...scatter("usage days") } as const;
    const first = await answered(ledger.collection.findOne({ createdAt: { $gte: new Date(startOf(from)) } }, options));
    return first ? dayOf(first.createdAt) : undefined;
  }

  /** Makes what changed: today and yesterday, and the days since the last run. Any number of processes may do it at once. */
  async function sumUsage(signal?: AbortSignal): Promise<void> {
    const today = dayOf(clock.now());
    const yesterday = daysLater(today, -1);
    let from = await firstOpenDay();
    for (let day = await nextDay(from); day !== undefined && day < yesterday; day = await nextDay(from)) {
      if (signal?.aborted) return;
      await inSession(day);
      await closeDay(day);
      from = daysLater(day, 1);
    }
    await Promise.all([yesterday, today].filter((each) => each >= from).map(inSession));
  }

  const inSession = (day: string) => mongo.connection.withSession((session) => recompute(day, session));

  /** Its rows stand from now on: they go into the sums of their keys' month. */
  async function closeDay(day: string): Promise<void> {
    await totals.addDay(day);
    await answered(stateOf.updateOne({ _id: day }, { $set: { closed: true } }));
  }

  return { collection, sumUsage, totals, usage: createUsageViews(collection) };
}
