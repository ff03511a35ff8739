import type { ClientSession } from "mongoose";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import type { MoneyDeps } from "../deps.ts";
import { taggedIndex, timeIndex, withTags } from "../ledger.ts";
import { daysLater, firstHourOf, hourMs, hourOf, hoursLater, startOfHour } from "./dates.ts";
import { charges, eachTag, entrySums, refundedCalls, settledSum } from "./entries.ts";
import { sumEntries } from "./latency.ts";
import {
  anyTag,
  groupFields,
  hourDefinition,
  replaceRows,
  rowsBetween,
  type StoredTagHour,
  type StoredUsageHour,
  tagGroupFields,
  tagHourDefinition,
} from "./rows.ts";

const states = {
  /** The hour. */
  _id: { type: String, required: true },
  version: { type: Number, required: true },
  /** The number of ledger entries that the rows are computed from. Missing if a run has begun and not ended. */
  entries: { type: Number },
  /** Entries captured before this time are all included in `settled` of the rows. */
  settledUntil: { type: Date },
  /** The version of the last run that ended, unless an earlier version of this program ran it: it wrote no rows by tag. */
  tagged: { type: Number },
  /** Set if the hour ended a while ago, like all hours before it. */
  closed: { type: Boolean },
} as const;
type State = DocumentOf<typeof states>;

/** An entry is in the ledger within this long after its own time, except after an outage. */
const insertedMs = 120_000;

const job = { ...longRunning, ...scatter("usage days") } as const;
/** Sums a key without reading other rows. */
export const hourIndex = { account: 1, key: 1, hour: 1, settled: 1 } as const;
/** The hours of all keys of an account. */
export const accountHourIndex = { account: 1, hour: 1 } as const;
export const tagHourIndex = { account: 1, tag: 1, hour: 1 } as const;

const group = Object.fromEntries(
  groupFields.map((field) => [field, field === "account" ? "$account" : `$request.${field}`]),
);

/**
 * The collection `usageHours`: what each account used in an hour, by key, model and endpoint, for the days that are not
 * final yet and for views of the last days (docs/adr/0025). An entry counts in the hour in which it was captured,
 * including refunds. A run that follows an unfinished run writes every row, so that nothing which that run still writes
 * takes effect. The collection `usageTagHours` has the same by tag, of the calls with tags.
 */
export function createUsageHours(
  { mongo, ledger, clock }: MoneyDeps,
  /** The last final day, or an empty text. */
  lastDay: (session?: ClientSession) => Promise<string>,
) {
  const { collection } = openCollection<StoredUsageHour>(mongo, "usageHours", hourDefinition);
  const { collection: tagRows } = openCollection<StoredTagHour>(mongo, "usageTagHours", tagHourDefinition);
  const { collection: stateOf } = openCollection<State>(mongo, "usageHourStates", states);

  const startsAt = (hour: string) => new Date(startOfHour(hour));
  const endsAt = (hour: string) => new Date(startOfHour(hour) + hourMs);
  const inHour = (hour: string) => ({ createdAt: { $gte: startsAt(hour), $lt: endsAt(hour) } });
  async function countEntries(hour: string, session: ClientSession): Promise<number> {
    const count = { count: "ledger", query: inHour(hour), hint: timeIndex, readConcern: { level: "majority" } };
    const command = { ...count, ...job };
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
      const isSummed = state?.entries === entries && state.tagged === state.version;
      if (isSummed && (!isOver || (state.settledUntil ?? 0) >= endsAt(hour))) return;
      const claim = { $inc: { version: 1 }, $unset: { entries: "" as const } };
      const claimed = await stateOf.findOneAndUpdate({ _id: hour }, claim, { upsert: true, returnDocument: "before" });
      const version = (claimed?.version ?? 0) + 1;
      const all = claimed != null && (claimed.entries == null || claimed.tagged !== claimed.version);
      const rows = rowsBetween("hour", hour, hoursLater(hour, 1));
      const replacing = { version, all };
      // The same session sees at least the entries that were counted.
      const options = { session, allowDiskUse: true, readConcern: { level: "majority" }, ...job } as const;
      const sums = { ...entrySums, settled: settledSum(settledUntil) };
      const pipeline = [
        { $match: { ...inHour(hour), kind: charges } },
        ...sumEntries(group, sums),
        { $unionWith: { coll: "ledger", pipeline: [...refundedCalls(inHour(hour)), ...sumEntries(group, sums)] } },
        ...replaceRows("usageHours", { hour }, rows, { ...replacing, moreAmounts: ["settled"] }),
      ];
      await ledger.collection.aggregate(pipeline, { ...options, hint: timeIndex }).toArray();
      const ofTags = [...eachTag([anyTag]), ...sumEntries({ ...group, tag: "$tag" }, entrySums)];
      const byTag = [
        { $match: { ...inHour(hour), kind: charges, ...withTags } },
        ...ofTags,
        { $unionWith: { coll: "ledger", pipeline: [...refundedCalls(inHour(hour)), ...ofTags] } },
        ...replaceRows("usageTagHours", { hour }, rows, { ...replacing, group: tagGroupFields }),
      ];
      await ledger.collection.aggregate(byTag, { ...options, hint: taggedIndex }).toArray();
      for (const each of [collection, tagRows]) await each.deleteMany({ ...rows, entries: 0 }, job);
      await stateOf.updateOne({ _id: hour, version }, { $set: { entries, settledUntil, tagged: version } });
    });

  const lastClosed = (filter: { tagged?: object } = {}, session?: ClientSession) =>
    stateOf.findOne({ closed: true, ...filter }, { sort: { _id: -1 }, ...(session && { session }) });

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
    // Hours that only an earlier version of this program closed lack sums by tag.
    const closed = await lastClosed({ tagged: { $exists: true } });
    const from = closed && closed._id >= since ? hoursLater(closed._id, 1) : since;
    await makeBetween(from, previous, signal);
    // One after the other, so that entries settled in a later hour are settled in all earlier ones.
    for (const hour of [previous, current]) if (hour >= from && !signal?.aborted) await make(hour);
  }

  /** Sums the charges of keys, each from its own hour, until a time up to which everything is settled. */
  async function settledSince(account: string, from: ReadonlyMap<string, number>, session: ClientSession) {
    const since = new Date(Math.min(...from.values()));
    const closed = await lastClosed({}, session);
    let last = closed?._id ?? "";
    let until = closed ? endsAt(last) : since;
    const unclosed = stateOf.find({ _id: { $gt: last } }, { sort: { _id: 1 }, session });
    for (const { _id, entries, settledUntil } of await unclosed.toArray()) {
      if (entries == null || !settledUntil) break;
      last = _id;
      if (settledUntil > until) until = settledUntil;
      if (settledUntil < endsAt(_id)) break;
    }
    if (until <= since) return { nanoUsd: 0n, until: since };
    // The sums of a key's months have all its final days, so their hours are not read.
    const final = await lastDay(session);
    const open = final === "" ? "" : firstHourOf(daysLater(final, 1));
    const first = hourOf(since) > open ? hourOf(since) : open;
    const rows = collection.find(
      { account, key: { $in: [...from.keys()] }, hour: { $gte: first, $lte: last } },
      { projection: { _id: 0, key: 1, hour: 1, settled: 1 }, hint: hourIndex, session },
    );
    const nanoUsd = (await rows.toArray())
      .filter(({ key, hour }) => startOfHour(hour) >= (from.get(key ?? "") ?? 0))
      .reduce((sum, { settled }) => sum + settled, 0n);
    return { nanoUsd, until };
  }

  async function removeBefore(hour: string): Promise<void> {
    for (const each of [collection, tagRows]) await each.deleteMany({ _id: { $lt: { hour } } } as object, job);
    await stateOf.deleteMany({ _id: { $lt: hour } });
  }

  return { collection, tagRows, nextHour, makeBetween, makeOpen, settledSince, removeBefore };
}

export type UsageHours = ReturnType<typeof createUsageHours>;
