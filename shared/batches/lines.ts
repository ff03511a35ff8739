import type { Collection, mongo as driver } from "mongoose";
import { createPackedTexts, type StoredAnswer } from "#detached-calls";
import type { ErrorFields } from "#errors";
import type { Files } from "#files";
import { groupCommit, type ObserveWrite } from "#platform/concurrency/group-commit";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { LineAnswer, StoredLine, StoredProviderBatch } from "./collections.ts";

const groupLimit = 500;
/** Answers are compressed one by one, and may be large. */
const pageSize = 50;

export const lineIdOf = (batch: string, line: number): string => `${batch}:${line}`;

/** The current try of a line, as its payload names it. */
export interface LineCall {
  readonly account: string;
  /** See `lineIdOf`. */
  readonly line: string;
  readonly requestId: string;
}

interface Ended extends LineCall {
  readonly set: { readonly answer: LineAnswer } | { readonly error: ErrorFields };
}

/** A line with an answer or an error, in the form in which it is recorded. */
export interface EndedLine extends StoredLine {
  /** The answer's JSON. Undefined after an error. */
  readonly text: string | undefined;
}

type ProviderBatchOf = Pick<StoredProviderBatch, "account" | "batch" | "_id">;

const withoutAnswers = { "answer.zstd": 0, payload: 0 } as const;

/** The lines of batches that are in flight: admitted or to be tried again, and not recorded yet. */
export function createLines(deps: {
  collection: Collection<StoredLine>;
  files: Pick<Files, "putAnswer" | "getAnswer" | "deleteAnswer">;
  observe?: ObserveWrite | undefined;
  /** Called with the number of lines whose next try begins. */
  retried?: (count: number) => void;
}) {
  const { collection, files, observe, retried } = deps;
  const texts = createPackedTexts(files);
  type Filter = driver.Filter<StoredLine>;
  type Update = driver.UpdateFilter<StoredLine>;
  type FindOptions = driver.FindOptions;

  const tryOf = ({ account, line, requestId }: LineCall) => ({ account, _id: line, requestId }) as Filter;

  /**
   * Those of these lines that have a result. They are found by their ids: the index of a batch's lines begins with the many
   * that were deleted, and MongoDB steps over each of them for a while.
   */
  function findEnded(account: string, ids: readonly string[], options: FindOptions) {
    const hasResult = { $or: [{ answer: { $exists: true } }, { error: { $exists: true } }] };
    const filter = { account, _id: { $in: [...ids] }, ...hasResult, retryAt: { $exists: false } } as Filter;
    return collection.find(filter, { ...options, hint: { _id: 1 } });
  }

  const idsOf = (lines: readonly Pick<StoredLine, "requestId">[]) => new Set(lines.map(({ requestId }) => requestId));

  async function storedTries(lines: readonly StoredLine[]): Promise<ReadonlySet<string>> {
    const own = { account: lines[0]?.account, _id: { $in: lines.map(({ _id }) => _id) } } as Filter;
    const found = await collection.find(own, { projection: { requestId: 1 } }).toArray();
    const wanted = idsOf(lines);
    return new Set(found.flatMap(({ requestId }) => (wanted.has(requestId) ? [requestId] : [])));
  }

  /** Resolves each with true if its line has an answer of this try. */
  const storeEnd = groupCommit<Ended, boolean>({
    limit: groupLimit,
    observe,
    async write(account, group) {
      const isOpen = { retryAt: { $exists: false }, answer: { $exists: false }, error: { $exists: false } };
      const { matchedCount } = await collection.bulkWrite(
        group.map((each) => {
          const filter = { ...tryOf(each), ...isOpen } as Filter;
          return { updateOne: { filter, update: { $set: each.set } as Update } };
        }),
        { ordered: false },
      );
      const answers = group.filter(({ set }) => "answer" in set);
      if (matchedCount === group.length || answers.length === 0) return group.map(({ set }) => "answer" in set);
      const own = { account, _id: { $in: answers.map(({ line }) => line) }, answer: { $exists: true } } as Filter;
      const answered = idsOf(await collection.find(own, { projection: { requestId: 1 } }).toArray());
      return group.map(({ requestId }) => answered.has(requestId));
    },
  });

  return {
    /**
     * Inserts lines that were admitted. Resolves with the request ids of those that are stored with this try: another
     * process that has the batch meanwhile may have been faster.
     */
    async insert(lines: readonly StoredLine[]): Promise<ReadonlySet<string>> {
      if (lines.length === 0) return new Set();
      const inserted = await collection.insertMany(lines as never, { ordered: false }).catch(ignoreDuplicate);
      return inserted ? idsOf(lines) : storedTries(lines);
    },

    /** The lines in flight, in their order, without the texts of their answers. */
    open: (account: string, batch: string): Promise<StoredLine[]> =>
      collection
        .find({ account, batch } as Filter, { projection: withoutAnswers, sort: { line: 1 } })
        .toArray() as Promise<StoredLine[]>,

    /** The lines in a batch of a provider, without the texts of their answers. */
    ofProviderBatch: ({ account, batch, _id }: ProviderBatchOf): Promise<StoredLine[]> =>
      collection
        .find({ account, batch, providerBatch: _id, retryAt: { $exists: false } } as Filter, {
          projection: { "answer.zstd": 0 },
          sort: { line: 1 },
        })
        .toArray() as Promise<StoredLine[]>,

    /**
     * Stores the answer of a try before its cost is captured. Resolves with false if the line has ended otherwise or is tried
     * again: then the answer must not be charged.
     */
    async storeAnswer(call: LineCall, { text, usage, costNanoUsd, byok }: StoredAnswer): Promise<boolean> {
      const packed = await texts.pack(call.requestId, "answer", text);
      const set = { answer: { ...packed, usage, costNanoUsd, ...(byok && { byok }) } };
      return storeEnd(call.account, call.requestId, { ...call, set });
    },

    /** Stores why a try has failed, before its hold is released. Does nothing if the line has ended or is tried again. */
    async storeError(call: LineCall, error: ErrorFields): Promise<void> {
      await storeEnd(call.account, call.requestId, { ...call, set: { error } });
    },

    /** The stored answer of a try, for a later delivery of its job. */
    async answer(call: LineCall): Promise<StoredAnswer | undefined> {
      const stored = await collection.findOne(tryOf(call), { promoteBuffers: true, projection: { answer: 1 } });
      if (!stored?.answer) return undefined;
      const { usage, costNanoUsd, byok } = stored.answer;
      return {
        usage,
        costNanoUsd,
        ...(byok && { byok }),
        estimated: false,
        text: await texts.unpack(call.requestId, "answer", stored.answer),
      };
    },

    /** The request ids of those of these lines that have a result. */
    async endedTries(account: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
      const found = await findEnded(account, ids, { projection: { requestId: 1 } }).toArray();
      return new Set(found.map(({ requestId }) => requestId));
    },

    /** Yields those of these lines that have a result. */
    async *ended(account: string, ids: readonly string[]): AsyncGenerator<EndedLine> {
      const found = findEnded(account, ids, { promoteBuffers: true, batchSize: pageSize });
      for await (const line of found as AsyncIterable<StoredLine>)
        yield { ...line, text: line.answer && (await texts.unpack(line.requestId, "answer", line.answer)) };
    },

    /** Gives the current tries up. The next ones begin at `retryAt`. */
    async postpone(lines: readonly StoredLine[]): Promise<void> {
      if (lines.length === 0) return;
      await collection.bulkWrite(
        lines.map(({ account, _id, requestId, retryAt }) => ({
          updateOne: {
            filter: { account, _id, requestId } as Filter,
            update: { $set: { retryAt }, $unset: { answer: "", error: "" } } as Update,
          },
        })),
        { ordered: false },
      );
    },

    /** Begins the next try of lines that were postponed. Resolves as `insert`. */
    async beginAgain(lines: readonly StoredLine[]): Promise<ReadonlySet<string>> {
      if (lines.length === 0) return new Set();
      const { matchedCount } = await collection.bulkWrite(
        lines.map(({ account, _id, requestId, instance, deadlineAt, held, lease }) => ({
          updateOne: {
            filter: { account, _id, retryAt: { $exists: true } } as Filter,
            update: {
              $set: { requestId, instance, deadlineAt, held, ...(lease !== undefined && { lease }) },
              $inc: { tries: 1 },
              $unset: { retryAt: "", providerBatch: "", payload: "", ...(lease === undefined && { lease: "" }) },
            } as Update,
          },
        })),
        { ordered: false },
      );
      retried?.(matchedCount);
      return matchedCount === lines.length ? idsOf(lines) : storedTries(lines);
    },

    /** Deletes lines that are recorded. */
    async delete(account: string, batch: string, lines: readonly number[]): Promise<void> {
      if (lines.length === 0) return;
      const filter = { account, batch, line: { $in: lines } } as Filter;
      const large = { ...filter, answer: { $exists: true }, "answer.zstd": { $exists: false } } as Filter;
      const found = await collection.find(large, { projection: { requestId: 1 } }).toArray();
      for (const { requestId } of found) await files.deleteAnswer(requestId);
      await collection.deleteMany(filter);
    },
  };
}

export type Lines = ReturnType<typeof createLines>;
