import { notFound } from "#errors";
import { scatter } from "#platform/mongo/collection";
import { type Account, toAccount } from "./accounts.ts";
import type { MoneyDeps } from "./deps.ts";

export const withAlert = { alertBelow: { $exists: true } };
export const alertIndex = { alertBelow: 1 } as const;

const alertsPerRun = 500;

/**
 * Balance alerts. An account whose `available` is below its threshold gets `alertSince` once, and loses it when a later
 * check finds the balance at or above the threshold. Any number of processes may check at once. A balance that falls and
 * rises between two checks, for example because of a short call's hold, triggers no alert.
 */
export function createBalanceAlerts({ accounts, clock }: MoneyDeps) {
  const { collection } = accounts;
  const now = () => new Date(clock.now());
  const options = { hint: alertIndex, ...scatter("balance alerts") } as const;

  /** Alerts that have begun, and whose event has not been recorded. */
  async function openAlerts(): Promise<Account[]> {
    const isOpen = { $expr: { $ne: ["$alertSince", "$alertRecorded"] } };
    const filter = { ...withAlert, alertSince: { $exists: true }, ...isOpen } as object;
    const found = collection.find(filter, { ...options, projection: { holds: 0 }, limit: alertsPerRun });
    return (await found.toArray()).map(toAccount);
  }

  /** `onBegun` records the event of an alert. It is called again if it fails, or if the process dies before that is noted. */
  async function watchBalances(onBegun: (account: Account) => Promise<void>): Promise<void> {
    const isBelow = { $lt: ["$available", "$alertBelow"] };
    const begins = { ...withAlert, alertSince: { $exists: false }, $expr: isBelow };
    await collection.updateMany(begins as object, { $set: { alertSince: now() } }, options);
    for (const account of await openAlerts()) {
      await onBegun(account);
      const { id, alertSince } = account;
      // Changes nothing if the alert has ended or begun again since.
      if (alertSince) await collection.updateOne({ _id: id, alertSince }, { $set: { alertRecorded: alertSince } });
    }
    // An alert whose event is not recorded does not end, so that the event is not lost.
    const isOver = { $and: [{ $not: [isBelow] }, { $eq: ["$alertSince", "$alertRecorded"] }] };
    const ends = { ...withAlert, alertSince: { $exists: true }, $expr: isOver };
    await collection.updateMany(ends as object, { $unset: { alertSince: "", alertRecorded: "" } }, options);
  }

  /** Null removes the threshold, undefined changes nothing. An ongoing alert keeps its start time. */
  async function setAlert(id: string, belowNanoUsd: bigint | null | undefined): Promise<Account> {
    const isBelow = { $lt: ["$available", belowNanoUsd] };
    const since = { $cond: [isBelow, { $ifNull: ["$alertSince", now()] }, "$$REMOVE"] };
    const set = { $set: { alertBelow: belowNanoUsd, alertSince: since } };
    const change = belowNanoUsd === null ? { $unset: ["alertBelow", "alertSince", "alertRecorded"] } : set;
    const update = belowNanoUsd === undefined ? [{ $set: { _id: "$_id" } }] : [change];
    const returned = { returnDocument: "after", projection: { holds: 0 } } as const;
    const stored = await collection.findOneAndUpdate({ _id: id }, update, returned);
    if (!stored) throw notFound("account");
    return toAccount(stored);
  }

  return { watchBalances, setAlert };
}
