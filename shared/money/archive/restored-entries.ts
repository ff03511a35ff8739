import type { mongo as driver } from "mongoose";
import { conflict, notFound } from "#errors";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import { archiveIndex, entryDefinition, type LedgerEntry, listEntries, type StoredEntry, toEntry } from "../ledger.ts";
import { monthStart } from "./archive.ts";
import { type ArchivedLine, entryOf } from "./file.ts";
import type { ArchiveParts, WrittenPart } from "./parts.ts";

const states = ["restoring", "restored", "removing"] as const;
const definition = {
  /** The month. */
  _id: { type: String, required: true },
  state: { type: String, enum: states, required: true },
  /** Restricts the restore to the entries of this account. */
  account: { type: String },
  /** The number of completed parts of the month. */
  parts: { type: Number, required: true },
  requestedAt: { type: Date, required: true },
} as const;
type Restore = DocumentOf<typeof definition>;

export type RestoreState = Pick<Restore, "state" | "account" | "parts">;

const batchSize = 1_000;

/**
 * Archived entries restored for an investigation, in the collection `restoredEntries`, which no balance, check or
 * capture reads. `restores` records the requests, which a scheduled job executes.
 */
export function createRestoredEntries({ mongo, parts, clock }: Uses<"mongo" | "clock"> & { parts: ArchiveParts }) {
  const { model, collection } = openCollection<StoredEntry>(mongo, "restoredEntries", entryDefinition);
  const { collection: wanted } = openCollection<Restore>(mongo, "restores", definition);

  /** Throws 404 for a month without an archive, and 409 while another restore of the month exists. */
  async function request(month: string, account?: string): Promise<void> {
    if ((await parts.findMonth(month)).length === 0) throw notFound("archive");
    const restore = { state: "restoring" as const, parts: 0, requestedAt: new Date(clock.now()) };
    await wanted
      .updateOne({ _id: month }, { $setOnInsert: { ...restore, ...(account && { account }) } }, { upsert: true })
      .catch(ignoreDuplicate);
    const found = await wanted.findOne({ _id: month });
    if (found?.state === "removing" || found?.account !== account)
      throw conflict("This month was restored before. Remove that restore first, and wait until it is removed.");
  }

  /** Throws 404 if nothing of the month is restored. */
  async function requestRemoval(month: string): Promise<void> {
    const removed = await wanted.updateOne({ _id: month }, { $set: { state: "removing" } });
    if (removed.matchedCount === 0) throw notFound("restore");
  }

  async function states(months: readonly string[]): Promise<ReadonlyMap<string, RestoreState>> {
    const found = await wanted.find({ _id: { $in: [...months] } }).toArray();
    return new Map(found.map((restore) => [restore._id, restore]));
  }

  async function insert(lines: readonly ArchivedLine[]): Promise<void> {
    for (let at = 0; at < lines.length; at += batchSize) {
      const some = lines.slice(at, at + batchSize).map(entryOf);
      // Another run may have inserted them.
      await collection.insertMany(some, { ordered: false }).catch(ignoreDuplicate);
    }
  }

  async function remove(month: string): Promise<void> {
    const start = new Date(`${month}-01T00:00:00Z`);
    const createdAt = { $gte: start, $lt: monthStart(start, 1) };
    for (;;) {
      const some = await collection
        .find({ createdAt }, { projection: { _id: 1 }, hint: archiveIndex, limit: batchSize })
        .toArray();
      if (some.length > 0) await collection.deleteMany({ _id: { $in: some.map(({ _id }) => _id) } });
      if (some.length < batchSize) return;
    }
  }

  async function restore(month: Restore, read: (part: WrittenPart) => Promise<ArchivedLine[]>, signal?: AbortSignal) {
    const { _id, account, requestedAt } = month;
    const change = async (set: Partial<Restore>) => {
      const same: driver.Filter<Restore> = { _id, requestedAt, state: "restoring" };
      return (await wanted.updateOne(same, { $set: set })).matchedCount === 1;
    };
    const all = await parts.findMonth(_id);
    for (const [at, part] of all.entries()) {
      if (at < month.parts) continue;
      if (signal?.aborted) return;
      const lines = await read(part);
      await insert(account === undefined ? lines : lines.filter((line) => line.account === account));
      if (await change({ parts: at + 1 })) continue;
      // Removal was requested in the meantime and may already have ended.
      if (!(await wanted.findOne({ _id }))) await remove(_id);
      return;
    }
    await change({ state: "restored" });
  }

  /** Executes the requests. Safe in any number of concurrent processes. */
  async function work(read: (part: WrittenPart) => Promise<ArchivedLine[]>, signal?: AbortSignal): Promise<void> {
    const todo = wanted.find({ state: { $in: ["restoring", "removing"] } }, { sort: { requestedAt: 1 } });
    for (const month of await todo.toArray()) {
      if (month.state === "restoring") await restore(month, read, signal);
      else {
        await remove(month._id);
        await wanted.deleteOne({ _id: month._id, state: "removing" });
      }
    }
  }

  async function entry(id: string): Promise<LedgerEntry | undefined> {
    const stored = await model.findById(id).lean();
    return stored ? toEntry(stored) : undefined;
  }

  return {
    request,
    requestRemoval,
    states,
    work,
    entry,
    list: listEntries(collection),
  };
}
