import type { Collection, Model } from "mongoose";
import type { Mongo } from "./mongo.ts";

/** For scheduled jobs, checks and migrations, which read or write many documents at once. */
export const longRunning = { maxTimeMS: 60_000 } as const;

/**
 * A collection for its owner, whose migrations create it and its indexes. Operations of `model` are cast and checked by the schema, those of `collection` are not.
 * An operation that may take longer than a few seconds says so by `maxTimeMS` (`longRunning`).
 * The schema is passed as a plain object and the document type is named, because inferring it from the schema makes the
 * type check instantiate 120,000 types.
 */
export function openCollection<Stored extends object>({ connection }: Mongo, name: string, schema: object) {
  const model = connection.model(name, schema as never) as unknown as Model<Stored>;
  const collection = model.collection as unknown as Collection<Stored>;
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
