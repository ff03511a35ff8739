import type { ClientSession } from "mongoose";
import { inputKeys, outputKeys, pieceKeys } from "#catalog";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/collection";
import type { MoneyDeps } from "../deps.ts";
import { refundPrefix, timeIndex } from "../ledger.ts";
import { hourMs, hourOf, hoursLater, startOfHour } from "./dates.ts";
import { groupFields, hourDefinition, replaceRows, type StoredUsageHour } from "./rows.ts";

const states = {
  /** The hour. */
  _id: { type: String, required: true },
  version: { type: Number, required: true },
  /** The number of ledger entries that the rows are made from. Absent if a run has begun and not ended. */
  entries: { type: Number },
  /** Entries decided before this time are all in `settled` of the rows. */
  settledUntil: { type: Date },
  /** The hour ended a while ago, and so have all before. */
  closed: { type: Boolean },
} as const;
type State = DocumentOf<typeof states>;

/** An entry is in the ledger this long after the time that it bears; only after an outage it may take longer. */
const insertedMs = 120_000;

/** The entries that usage is made of: with the refunds, all that calls and uploads change of a balance. */
const charges = ["usage", "storage"] as const;
export const refunds = { kind: "refund" } as const;
/** The sums of a key, without reading other rows. */
export const hourIndex = { account: 1, key: 1, hour: 1, settled: 1 } as const;

/** Looks the usage up once, which makes the job a tenth faster than a path from the entry for each key. */
const counted = (keys: readonly string[]) => ({
  $sum: { $let: { vars: { usage: "$request.usage" }, in: { $sum: keys.map((key) => `$$usage.${key}`) } } },
});
const cost = { $subtract: [0, "$amount"] };
/** Sums by the fields of a row. */
const sumsUntil = (settledUntil: Date) => ({
  entries: { $sum: 1 },
  calls: { $sum: { $cond: [{ $eq: ["$kind", refunds.kind] }, 0, 1] } },
  failed: { $sum: { $cond: [{ $eq: ["$request.status", "failed"] }, 1, 0] } },
  input: counted(inputKeys),
  output: counted(outputKeys),
  cached: { $sum: "$request.usage.cached_input" },
  units: counted(pieceKeys),
  cost: { $sum: cost },
  settled: { $sum: { $cond: [{ $lt: ["$createdAt", settledUntil] }, cost, 0] } },
});
const sameGroup = Object.fromEntries(
  groupFields.map((field) => [field, field === "account" ? "$account" : `$request.${field}`]),
);

/**
 * The collection `usageHours`: what each account used in an hour, by key, model and endpoint, for the days that do not stand yet.
 * An entry, a refund too, counts in the hour in which it was decided.
 *
 * A run claims an hour by a higher version, and replaces no row of a higher one. The last run that claimed an hour records how many
 * entries the ledger had before; the ledger only grows, so with as many entries nothing is to be done. A run after one that
 * did not end writes every row, so that nothing which that one still writes counts; any other writes the rows that changed.
 */
export function createUsageHours({ mongo, ledger, clock }: MoneyDeps) {
  const { collection } = openCollection<StoredUsageHour>(mongo, "usageHours", hourDefinition);
  const { collection: stateOf } = openCollection<State>(mongo, "usageHourStates", states);

  const startsAt = (hour: string) => new Date(startOfHour(hour));
  const endsAt = (hour: string) => new Date(startOfHour(hour) + hourMs);
  const inHour = (hour: string) => ({ createdAt: { $gte: startsAt(hour), $lt: endsAt(hour) } });
  /** The rows of the hours from the first one until before the second one. */
  const rowsBetween = (from: string, until: string) =>
    ({ _id: { $gte: { hour: from }, $lt: { hour: until } } }) as object;

  /** Refunds name no key and model, but their call. */
  const refunded = (hour: string, sums: object) => [
    { $match: { ...refunds, ...inHour(hour) } },
    { $set: { call: { $substrBytes: ["$_id", refundPrefix.length, -1] } } },
    { $lookup: { from: "ledger", localField: "call", foreignField: "_id", as: "call" } },
    { $set: { request: { $mergeObjects: [{ $first: "$call.request" }, { status: "", usage: {} }] } } },
    { $group: { _id: sameGroup, ...sums } },
  ];

  async function countEntries(hour: string, session: ClientSession): Promise<number> {
    const count = { count: "ledger", query: inHour(hour), hint: timeIndex, readConcern: { level: "majority" } };
    const command = { ...count, ...longRunning, ...scatter("usage days") };
    const { n } = await mongo.db.command(command, { session });
    return Number(n);
  }

  /** Makes the rows of an hour, unless they are made from as many entries. */
  const make = (hour: string): Promise<void> =>
    mongo.inSession(async (session) => {
      const now = clock.now();
      const entries = await countEntries(hour, session);
      const state = await stateOf.findOne({ _id: hour });
      const settledUntil = new Date(Math.min(now - insertedMs, endsAt(hour).getTime()));
      const isOver = settledUntil >= endsAt(hour);
      if (state?.entries === entries && (!isOver || (state.settledUntil ?? 0) >= endsAt(hour))) return;
      const claim = { $inc: { version: 1 }, $unset: { entries: "" as const } };
      const claimed = await stateOf.findOneAndUpdate({ _id: hour }, claim, { upsert: true, returnDocument: "before" });
      const version = (claimed?.version ?? 0) + 1;
      const all = claimed != null && claimed.entries == null;
      const rows = rowsBetween(hour, hoursLater(hour, 1));
      const sums = sumsUntil(settledUntil);
      const pipeline = [
        { $match: { ...inHour(hour), kind: { $in: charges } } },
        { $group: { _id: sameGroup, ...sums } },
        { $unionWith: { coll: "ledger", pipeline: refunded(hour, sums) } },
        ...replaceRows("usageHours", { hour }, rows, { version, all, amounts: ["cost", "settled"] }),
      ];
      // In the same session: it sees at least what was counted.
      const options = { session, hint: timeIndex, allowDiskUse: true, readConcern: { level: "majority" } } as const;
      await ledger.collection.aggregate(pipeline, { ...options, ...longRunning, ...scatter("usage days") }).toArray();
      await collection.deleteMany({ ...rows, entries: 0 }, { ...longRunning, ...scatter("usage days") });
      await stateOf.updateOne({ _id: hour, version }, { $set: { entries, settledUntil } });
    });

  const lastClosed = (session?: ClientSession) =>
    stateOf.findOne({ closed: true }, { sort: { _id: -1 }, ...(session && { session }) });

  /** The first hour from this one on that has entries. */
  async function nextHour(from: string): Promise<string | undefined> {
    const options = { hint: timeIndex, sort: { createdAt: 1, _id: 1 }, ...scatter("usage days") } as const;
    const first = await ledger.collection.findOne({ createdAt: { $gte: startsAt(from) } }, options);
    return first ? hourOf(first.createdAt) : undefined;
  }

  /** Makes the hours of a time that has passed, in their order. */
  async function makeBetween(from: string, until: string, signal?: AbortSignal): Promise<void> {
    for (let hour = await nextHour(from); hour !== undefined && hour < until && !signal?.aborted; ) {
      await make(hour);
      await stateOf.updateOne({ _id: hour }, { $set: { closed: true } });
      hour = await nextHour(hoursLater(hour, 1));
    }
  }

  /** Makes the last two hours, and those since the last run. */
  async function makeOpen(since: string, signal?: AbortSignal): Promise<void> {
    const current = hourOf(clock.now());
    const previous = hoursLater(current, -1);
    const closed = await lastClosed();
    const from = closed && closed._id >= since ? hoursLater(closed._id, 1) : since;
    await makeBetween(from, previous, signal);
    // One after the other: what a later hour has settled is settled in all before.
    for (const hour of [previous, current]) if (hour >= from && !signal?.aborted) await make(hour);
  }

  /** The charges of keys, each from its own hour, until a time up to which all is settled. */
  async function settledSince(account: string, from: ReadonlyMap<string, number>, session: ClientSession) {
    const since = new Date(Math.min(...from.values()));
    const closed = await lastClosed(session);
    let last = closed?._id ?? "";
    let until = closed ? endsAt(last) : since;
    const open = stateOf.find({ _id: { $gt: last } }, { sort: { _id: 1 }, session });
    for (const { _id, entries, settledUntil } of await open.toArray()) {
      if (entries == null || !settledUntil) break;
      last = _id;
      if (settledUntil > until) until = settledUntil;
      if (settledUntil < endsAt(_id)) break;
    }
    if (until <= since) return { nanoUsd: 0n, until: since };
    const rows = collection.find(
      { account, key: { $in: [...from.keys()] }, hour: { $gte: hourOf(since), $lte: last } },
      { projection: { _id: 0, key: 1, hour: 1, settled: 1 }, hint: hourIndex, session },
    );
    const nanoUsd = (await rows.toArray())
      .filter(({ key, hour }) => startOfHour(hour) >= (from.get(key ?? "") ?? 0))
      .reduce((sum, { settled }) => sum + settled, 0n);
    return { nanoUsd, until };
  }

  /** Removes what was made before an hour. */
  async function removeBefore(hour: string): Promise<void> {
    const options = { ...longRunning, ...scatter("usage days") };
    await collection.deleteMany({ _id: { $lt: { hour } } } as object, options);
    await stateOf.deleteMany({ _id: { $lt: hour } });
  }

  return { collection, rowsBetween, nextHour, makeBetween, makeOpen, settledSince, removeBefore };
}

export type UsageHours = ReturnType<typeof createUsageHours>;
