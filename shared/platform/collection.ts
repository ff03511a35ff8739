import { type Collection, type InferRawDocType, type Model, Schema } from "mongoose";
import type { Mongo } from "./mongo.ts";

/** For scheduled jobs, checks and migrations, which read or write many documents at once. */
export const longRunning = { maxTimeMS: 60_000 } as const;

/** The documents of a definition. Optional fields are absent in the database, never null. `Typed`: fields whose type it cannot express. */
export type DocumentOf<Definition, Typed extends object = object> = {
  readonly [Name in keyof Omit<InferRawDocType<Definition>, keyof Typed>]: Exclude<
    InferRawDocType<Definition>[Name],
    null
  >;
} & Readonly<Typed>;

/**
 * A collection for its owner, whose migrations create it and its indexes. Operations of `model` are cast and checked by the
 * definition, those of `collection` are not (docs/adr/0030-mongodb-timeouts.md). An operation that may take longer than a few seconds
 * says so by `maxTimeMS` (`longRunning`). `Document` is `DocumentOf` the definition: it is named, because inferring it here makes the
 * type check instantiate 120,000 types.
 */
export function openCollection<Document extends object>({ connection }: Mongo, name: string, definition: object) {
  const schema = new Schema(definition, { strict: "throw", versionKey: false, minimize: false });
  const model = connection.model(name, schema, name) as unknown as Model<Document>;
  return { model, collection: model.collection as unknown as Collection<Document> };
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
