import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { MoneyDeps } from "../deps.ts";
import { dayOf, daysLater, firstHourOf, hourMs } from "./dates.ts";
import { createUsageHours } from "./hours.ts";
import { createKeyTotals } from "./key-totals.ts";
import { counts, dayDefinition, groupFields, replaceRows, type StoredUsageDay } from "./rows.ts";
import { createUsageViews } from "./views.ts";

const states = {
  /** The day. */
  _id: { type: String, required: true },
  version: { type: Number, required: true },
  /** Set once the rows are final. */
  closed: { type: Boolean },
  closedAt: { type: Date },
} as const;

type State = DocumentOf<typeof states>;

/** The hours of a closed day remain this long, for views and runs that began earlier. */
const hoursRemainMs = hourMs;

/**
 * The collection `usageDays`: what each account used in a day, by key, model and endpoint. The rows of a day are
 * computed from those of its hours when the next day is over, and are final from then on (docs/adr/0025).
 */
export function createUsageDays(deps: MoneyDeps) {
  const { mongo, clock } = deps;
  const { collection } = openCollection<StoredUsageDay>(mongo, "usageDays", dayDefinition);
  const { collection: stateOf } = openCollection<State>(mongo, "usageDayStates", states);
  const hours = createUsageHours(deps);
  const totals = createKeyTotals({ mongo, days: collection, hours: hours.collection, clock });

  const lastClosed = async (): Promise<string> =>
    (await stateOf.findOne({ closed: true }, { sort: { _id: -1 } }))?._id ?? "";

  async function makeDay(day: string, version: number): Promise<void> {
    const fields = [...counts, "cost"];
    const pipeline = [
      { $match: hours.rowsBetween(firstHourOf(day), firstHourOf(daysLater(day, 1))) },
      {
        $group: {
          _id: Object.fromEntries(groupFields.map((field) => [field, `$${field}`])),
          ...Object.fromEntries(fields.map((field) => [field, { $sum: `$${field}` }])),
        },
      },
      ...replaceRows("usageDays", { day }, rowsOfDay(day), { version, all: true, amounts: ["cost"] }),
    ];
    const options = { ...longRunning, ...scatter("usage days") };
    const reading = { allowDiskUse: true, readConcern: { level: "majority" } } as const;
    await hours.collection.aggregate(pipeline, { ...reading, ...options }).toArray();
    await collection.deleteMany({ ...rowsOfDay(day), entries: 0 }, options);
  }

  const rowsOfDay = (day: string) => ({ _id: { $gte: { day }, $lt: { day: daysLater(day, 1) } } }) as object;

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
    if (last) await hours.removeBefore(firstHourOf(daysLater(last._id, 1)));
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

  return { sumUsage, hours, totals, usage: createUsageViews({ days: collection, lastClosed }) };
}
