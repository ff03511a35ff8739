import type { ClientSession, Collection } from "mongoose";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { MoneyDeps } from "../deps.ts";
import { dayOf, daysLater, firstHourOf, firstShownHour, hourMs } from "./dates.ts";
import { createUsageHours } from "./hours.ts";
import { createKeyTotals } from "./key-totals.ts";
import { sumRows } from "./latency.ts";
import { createLedgerUsage } from "./ledger-usage.ts";
import {
  amounts,
  counts,
  dayDefinition,
  groupFields,
  replaceRows,
  rowsBetween,
  type StoredTagDay,
  type StoredUsageDay,
  tagDayDefinition,
  tagGroupFields,
  unpricedCost,
} from "./rows.ts";
import { createServiceUsage } from "./service-usage.ts";
import { createUsageViews } from "./views.ts";

const states = {
  /** The day. */
  _id: { type: String, required: true },
  version: { type: Number, required: true },
  /** Set once the rows are final. */
  closed: { type: Boolean },
  closedAt: { type: Date },
  /** Set once the fees of its calls with own provider keys are credited, as far as they are. */
  feesCredited: { type: Boolean },
} as const;

export type DayState = DocumentOf<typeof states>;

/** The hours of a day that was just closed remain at least this long, for views and runs that began earlier. */
const hoursRemainMs = hourMs;

/**
 * The collection `usageDays`: what each account used in a day, by key, model and endpoint. The rows of a day are
 * computed from those of its hours when the next day is over, and are final from then on (docs/adr/0025). The collection
 * `usageTagDays` has the same by tag, of the calls with tags.
 */
export function createUsageDays(deps: MoneyDeps) {
  const { mongo, clock } = deps;
  const { collection } = openCollection<StoredUsageDay>(mongo, "usageDays", dayDefinition);
  const { collection: tagRows } = openCollection<StoredTagDay>(mongo, "usageTagDays", tagDayDefinition);
  const { collection: stateOf } = openCollection<DayState>(mongo, "usageDayStates", states);
  const lastClosed = async (session?: ClientSession): Promise<string> =>
    (await stateOf.findOne({ closed: true }, { sort: { _id: -1 }, ...(session && { session }) }))?._id ?? "";
  const hours = createUsageHours(deps, lastClosed);
  const totals = createKeyTotals({ mongo, days: collection, hours: hours.collection, clock });

  async function makeDay(day: string, version: number): Promise<void> {
    const options = { ...longRunning, ...scatter("usage days") };
    const reading = { allowDiskUse: true, readConcern: { level: "majority" } } as const;
    for (const [of, rows, into, fields] of [
      [hours.collection, collection, "usageDays", groupFields],
      [hours.tagRows, tagRows, "usageTagDays", tagGroupFields],
    ] as const) {
      const group = Object.fromEntries(fields.map((field) => [field, `$${field}`]));
      const pipeline = [
        { $match: rowsBetween("hour", firstHourOf(day), firstHourOf(daysLater(day, 1))) },
        { $set: { unpriced: unpricedCost } },
        ...sumRows(group, [...counts, ...amounts]),
        ...replaceRows(into, { day }, rowsOfDay(day), { version, all: true, group: fields }),
      ];
      await (of as Collection<object>).aggregate(pipeline, { ...reading, ...options }).toArray();
      await (rows as Collection<object>).deleteMany({ ...rowsOfDay(day), entries: 0 }, options);
    }
  }

  const rowsOfDay = (day: string) => rowsBetween("day", day, daysLater(day, 1));

  /** Makes the rows of a day final and adds them to the sums of their keys' month. */
  async function closeDay(day: string): Promise<void> {
    const opened = { $setOnInsert: { version: 0 } };
    await stateOf.updateOne({ _id: day }, opened, { upsert: true }).catch(ignoreDuplicate);
    const isOpen = { _id: day, closed: { $ne: true } };
    const claimed = await stateOf.findOneAndUpdate(isOpen, { $inc: { version: 1 } }, { returnDocument: "after" });
    // Another run has closed it, and its hours may be removed.
    if (!claimed) return;
    await makeDay(day, claimed.version);
    await totals.addDay(day);
    await stateOf.updateOne({ _id: day }, { $set: { closed: true, closedAt: new Date(clock.now()) } });
  }

  async function removeHours(): Promise<void> {
    const closedAt = { $lt: new Date(clock.now() - hoursRemainMs) };
    const last = await stateOf.findOne({ closed: true, closedAt }, { sort: { _id: -1 } });
    if (!last) return;
    const [open, shown] = [firstHourOf(daysLater(last._id, 1)), firstShownHour(clock.now())];
    await hours.removeBefore(open < shown ? open : shown);
  }

  /** Sums the last two hours and everything that no run has summed. Safe in any number of concurrent processes. */
  async function sumUsage(signal?: AbortSignal): Promise<void> {
    const yesterday = daysLater(dayOf(clock.now()), -1);
    const closed = await lastClosed();
    let from = closed === "" ? dayOf(0) : daysLater(closed, 1);
    for (;;) {
      const day = (await hours.nextHour(firstHourOf(from)))?.slice(0, 10);
      if (day === undefined || day >= yesterday) break;
      from = daysLater(day, 1);
      // Hours that were already summed are checked again, because an entry may have been late.
      await hours.makeBetween(firstHourOf(day), firstHourOf(from), signal);
      if (signal?.aborted) return;
      await closeDay(day);
    }
    await hours.makeOpen(firstHourOf(from), signal);
    await removeHours();
  }

  return {
    sumUsage,
    /** The last day whose rows are final, or an empty string. */
    lastClosed: () => lastClosed(),
    hours,
    totals,
    ofService: createServiceUsage({ days: collection, hours: hours.collection, lastClosed }),
    /** The collections from which fees of final days are credited. */
    collections: { days: collection, states: stateOf },
    usage: createUsageViews({
      days: collection,
      hours: hours.collection,
      tagDays: tagRows,
      tagHours: hours.tagRows,
      ofLedger: createLedgerUsage(deps),
      lastClosed,
    }),
  };
}
