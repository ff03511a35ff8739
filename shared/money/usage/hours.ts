import type { ClientSession } from "mongoose";
import { inputKeys, outputKeys, pieceKeys } from "#catalog";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import type { MoneyDeps } from "../deps.ts";
import { refundPrefix, timeIndex } from "../ledger.ts";
import { hourMs, hourOf, hoursLater, startOfHour } from "./dates.ts";
import { groupFields, hourDefinition, replaceRows, type StoredUsageHour } from "./rows.ts";

const states = {
  /** The hour. */
  _id: { type: String, required: true },
  version: { type: Number, required: true },
  /** The number of ledger entries that the rows are computed from. Missing if a run has begun and not ended. */
  entries: { type: Number },
  /** Entries captured before this time are all included in `settled` of the rows. */
  settledUntil: { type: Date },
  /** Set if the hour ended a while ago, like all hours before it. */
  closed: { type: Boolean },
} as const;
type State = DocumentOf<typeof states>;

/** An entry is in the ledger within this long after its own time, except after an outage. */
const insertedMs = 120_000;

/** The entries from which usage is computed. With the refunds, they are all balance changes of calls and uploads. */
const charges = ["usage", "storage"] as const;
export const refunds = { kind: "refund" } as const;
/** Sums a key without reading other rows. */
export const hourIndex = { account: 1, key: 1, hour: 1, settled: 1 } as const;

/** Resolves the usage once, which makes the job a tenth faster than a path from the entry for each key. */
const counted = (keys: readonly string[]) => ({
  $sum: { $let: { vars: { usage: "$request.usage" }, in: { $sum: keys.map((key) => `$$usage.${key}`) } } },
});
const cost = { $subtract: [0, "$amount"] };
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
 * The collection `usageHours`: what each account used in an hour, by key, model and endpoint, for the days that are not
 * final yet (docs/adr/0025). An entry counts in the hour in which it was captured, including refunds. A run that follows
 * an unfinished run writes every row, so that nothing which that run still writes takes effect.
 */
export function createUsageHours({ mongo, ledger, clock }: MoneyDeps) {
  const { collection } = openCollection<StoredUsageHour>(mongo, "usageHours", hourDefinition);
  const { collection: stateOf } = openCollection<State>(mongo, "usageHourStates", states);

  const startsAt = (hour: string) => new Date(startOfHour(hour));
  const endsAt = (hour: string) => new Date(startOfHour(hour) + hourMs);
  const inHour = (hour: string) => ({ createdAt: { $gte: startsAt(hour), $lt: endsAt(hour) } });
  /** Matches the rows of a range of hours; `until` is exclusive. */
  const rowsBetween = (from: string, until: string) =>
    ({ _id: { $gte: { hour: from }, $lt: { hour: until } } }) as object;

  /** Refunds have no key and model of their own, so they are taken from the call. */
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

  /** Computes the rows of an hour, unless they are based on the same number of entries. */
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
      // The same session sees at least the entries that were counted.
      const options = { session, hint: timeIndex, allowDiskUse: true, readConcern: { level: "majority" } } as const;
      await ledger.collection.aggregate(pipeline, { ...options, ...longRunning, ...scatter("usage days") }).toArray();
      await collection.deleteMany({ ...rows, entries: 0 }, { ...longRunning, ...scatter("usage days") });
      await stateOf.updateOne({ _id: hour, version }, { $set: { entries, settledUntil } });
    });

  const lastClosed = (session?: ClientSession) =>
    stateOf.findOne({ closed: true }, { sort: { _id: -1 }, ...(session && { session }) });

  /** Returns the first hour that has entries, starting from this one. */
  async function nextHour(from: string): Promise<string | undefined> {
    const options = { hint: timeIndex, sort: { createdAt: 1, _id: 1 }, ...scatter("usage days") } as const;
    const first = await ledger.collection.findOne({ createdAt: { $gte: startsAt(from) } }, options);
    return first ? hourOf(first.createdAt) : undefined;
  }

  /** Computes the hours of a past period, in order. */
  async function makeBetween(from: string, until: string, signal?: AbortSignal): Promise<void> {
    for (let hour = await nextHour(from); hour !== undefined && hour < until && !signal?.aborted; ) {
      await make(hour);
      await stateOf.updateOne({ _id: hour }, { $set: { closed: true } });
      hour = await nextHour(hoursLater(hour, 1));
    }
  }

  /** Computes the last two hours, and those since the last run. */
  async function makeOpen(since: string, signal?: AbortSignal): Promise<void> {
    const current = hourOf(clock.now());
    const previous = hoursLater(current, -1);
    const closed = await lastClosed();
    const from = closed && closed._id >= since ? hoursLater(closed._id, 1) : since;
    await makeBetween(from, previous, signal);
    // One after the other, so that entries settled in a later hour are settled in all earlier ones.
    for (const hour of [previous, current]) if (hour >= from && !signal?.aborted) await make(hour);
  }

  /** Sums the charges of keys, each from its own hour, until a time up to which everything is settled. */
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

  async function removeBefore(hour: string): Promise<void> {
    const options = { ...longRunning, ...scatter("usage days") };
    await collection.deleteMany({ _id: { $lt: { hour } } } as object, options);
    await stateOf.deleteMany({ _id: { $lt: hour } });
  }

  return { collection, rowsBetween, nextHour, makeBetween, makeOpen, settledSince, removeBefore };
}

export type UsageHours = ReturnType<typeof createUsageHours>;
