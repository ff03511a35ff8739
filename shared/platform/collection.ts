import { type Collection, mongo as driver, type Model } from "mongoose";
import { answered, type Mongo } from "./mongo.ts";

/** For scheduled jobs and checks, which read or write many documents at once. */
export const longRunning = { maxTimeMS: 60_000 } as const;
/** How much longer than its `maxTimeMS` an operation may take. */
const graceMs = 1_000;
const operations = [
  "aggregate",
  "bulkWrite",
  "countDocuments",
  "deleteMany",
  "deleteOne",
  "distinct",
  "estimatedDocumentCount",
  "find",
  "findOne",
  "findOneAndDelete",
  "findOneAndReplace",
  "findOneAndUpdate",
  "insertMany",
  "insertOne",
  "replaceOne",
  "updateMany",
  "updateOne",
] as const;
type Operation = (...args: readonly object[]) => Promise<unknown> | driver.AbstractCursor;

/** Limits the time of every operation, of a cursor that of each batch: to its `maxTimeMS`, else to that of `answered`. */
function limitTime(collection: object): void {
  // Mongoose gives the same object each time.
  if (Object.hasOwn(collection, "find")) return;
  const methods = collection as Record<(typeof operations)[number], Operation>;
  for (const name of operations) {
    const run = methods[name].bind(collection);
    methods[name] = (...args) => {
      const { maxTimeMS } = (args.at(-1) ?? {}) as { readonly maxTimeMS?: number };
      const limit = <T>(operation: Promise<T>) =>
        answered(operation, maxTimeMS === undefined ? undefined : maxTimeMS + graceMs);
      const result = run(...args);
      if (!(result instanceof driver.AbstractCursor)) return limit(result);
      const next = result.next.bind(result);
      result.next = () => (result.bufferedCount() > 0 ? next() : limit(next()));
      return result;
    };
  }
}

/**
 * A collection for its owner, whose migrations create it and its indexes. Operations of `model` are cast and checked by the schema, those of `collection` are not.
 * An operation that may take longer than a few seconds says so by `maxTimeMS` (`longRunning`).
 * The schema is passed as a plain object and the document type is named, because inferring it from the schema makes the
 * type check instantiate 120,000 types.
 */
export function openCollection<Stored extends object>({ connection }: Mongo, name: string, schema: object) {
  const model = connection.model(name, schema as never) as unknown as Model<Stored>;
  const collection = model.collection as unknown as Collection<Stored>;
  limitTime(collection);
  return { model, collection };
}

/**
 * For an operation on a sharded collection that every shard has to answer. MongoDB shows the comment in its logs and profiles;
 * the module's schema says why there is none with the shard key (`ModuleSchema.scatter`), and the tests refuse any other.
 */
export const scatter = (name: string) => ({ comment: `scatter: ${name}` });

/** The documents after this one in a list that is ordered newest first. The first condition lets MongoDB use the index. */
export const olderThan = (id: string, createdAt: Date) => ({
  createdAt: { $lte: createdAt },
  $or: [{ createdAt: { $lt: createdAt } }, { _id: { $lt: id } }],
});
