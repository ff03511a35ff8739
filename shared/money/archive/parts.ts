import type { ClientSession, mongo as driver } from "mongoose";
import { randomBase62 } from "#platform/ids";
import { type DocumentOf, openCollection, type Page } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import type { Contents } from "./file.ts";

const states = ["writing", "deleting", "archived", "abandoned"] as const;

const definition = {
  /** The month and a random name, such as `2026-01/4fT...`. It is also the name of the file in storage. */
  _id: { type: String, required: true },
  month: { type: String, required: true },
  /** Deleting: the file was read back, and its entries are being deleted. Abandoned: the file is to be removed. */
  state: { type: String, enum: states, required: true },
  /** Set for the part in progress (writing or deleting), of which there is at most one. */
  open: { type: Boolean },
  /** The run that works on the part, and the time until which no other run takes it over. */
  claim: { type: String, required: true },
  claimedUntil: { type: Date, required: true },
  startedAt: { type: Date, required: true },
  archivedAt: { type: Date },
  /** The version of the file format. */
  version: { type: Number, required: true },
  entries: { type: Number },
  amount: { type: BigInt },
  bytes: { type: Number },
  sha256: { type: String },
  from: { type: Date },
  to: { type: Date },
} as const;

export type Part = DocumentOf<typeof definition>;
/** A part whose file was verified. */
export type WrittenPart = Part & Contents;

export const isWritten = (part: Part): part is WrittenPart => part.state === "deleting" || part.state === "archived";

const version = 1;
/** Many times the duration of a part. A run that takes longer is taken over and notices that. */
const claimMs = 600_000;

export type ArchiveParts = ReturnType<typeof createArchiveParts>;

/**
 * The collection `archives`: the files of archived entries. Every change is a compare-and-set of one document, so that
 * a run that was taken over changes nothing.
 */
export function createArchiveParts({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { collection } = openCollection<Part>(mongo, "archives", definition);
  const after = (ms: number) => new Date(clock.now() + ms);

  async function change(filter: driver.Filter<Part>, update: driver.UpdateFilter<Part>): Promise<boolean> {
    return (await collection.updateOne(filter, update)).matchedCount === 1;
  }
  const own = ({ _id, claim }: Part, state: Part["state"]) => ({ _id, claim, state });

  async function sumMonths(month: driver.Filter<Part>["month"], limit: number): Promise<ArchivedMonth[]> {
    const sums = collection.aggregate<Omit<ArchivedMonth, "id"> & { _id: string }>([
      { $match: { month, state: { $in: ["deleting", "archived"] } } },
      {
        $group: {
          _id: "$month",
          parts: { $sum: 1 },
          entries: { $sum: "$entries" },
          nanoUsd: { $sum: "$amount" },
          bytes: { $sum: "$bytes" },
          archivedAt: { $max: "$archivedAt" },
        },
      },
      { $sort: { _id: -1 } },
      { $limit: limit },
    ]);
    const months = await sums.toArray();
    return months.map(({ _id, parts, entries, bytes, ...month }) => ({
      ...month,
      id: _id,
      parts: Number(parts),
      entries: Number(entries),
      bytes: Number(bytes),
    }));
  }

  /** Newest first. */
  const listMonths = ({ limit, after: seen }: Page): Promise<ArchivedMonth[]> =>
    sumMonths(seen === undefined ? { $gt: "" } : { $lt: seen }, limit);

  const sumMonth = async (month: string): Promise<ArchivedMonth | undefined> => (await sumMonths(month, 1))[0];

  return {
    /** Returns undefined if another part is in progress. */
    async begin(month: string, session: ClientSession): Promise<Part | undefined> {
      const claim = randomBase62(16);
      const times = { startedAt: after(0), claimedUntil: after(claimMs) };
      const part = {
        _id: `${month}/${randomBase62(12)}`,
        month,
        state: "writing",
        open: true,
        claim,
        version,
      } as const;
      try {
        await collection.insertOne({ ...part, ...times }, { session });
        return { ...part, ...times };
      } catch (error) {
        if (isDuplicate(error)) return undefined;
        throw error;
      }
    },

    findOpen: async (): Promise<Part | undefined> => (await collection.findOne({ open: true })) ?? undefined,

    /** Takes over a part whose run ended without finishing it. */
    async takeOver({ _id, claim, state }: Part): Promise<Part | undefined> {
      const set = { $set: { claim: randomBase62(16), claimedUntil: after(claimMs) } };
      const free = { _id, claim, state, claimedUntil: { $lte: after(0) } };
      return (await collection.findOneAndUpdate(free, set, { returnDocument: "after" })) ?? undefined;
    },

    /** Returns false if the part was taken over. */
    markVerified: (part: Part, contents: Contents) =>
      change(own(part, "writing"), { $set: { state: "deleting", ...contents } }),

    markArchived: (part: Part) =>
      change(
        { _id: part._id, state: "deleting" },
        { $set: { state: "archived", archivedAt: after(0) }, $unset: { open: "" } },
      ),

    abandon: (part: Part) => change(own(part, "writing"), { $set: { state: "abandoned" }, $unset: { open: "" } }),

    findAbandoned: (): Promise<Part[]> => collection.find({ state: "abandoned" }, { limit: 100 }).toArray(),

    async removeAbandoned({ _id }: Part): Promise<void> {
      await collection.deleteOne({ _id, state: "abandoned" });
    },

    /** Returns the verified files of a month, in an order that is stable when one is added. */
    async findMonth(month: string): Promise<WrittenPart[]> {
      const verified = { month, state: { $in: ["deleting" as const, "archived" as const] } };
      const found = await collection.find(verified, { sort: { startedAt: 1, _id: 1 } }).toArray();
      return found.filter(isWritten);
    },

    listMonths,
    sumMonth,
  };
}

export interface ArchivedMonth {
  /** `2026-01`. */
  readonly id: string;
  readonly parts: number;
  readonly entries: number;
  /** The sum of the entries' amounts, which is negative because they are costs. */
  readonly nanoUsd: bigint;
  readonly bytes: number;
  /** The time of the last part; null while its entries are deleted. */
  readonly archivedAt: Date | null;
}
