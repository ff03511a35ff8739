import type { Collection, Model } from "mongoose";
import type { Mongo } from "./mongo.ts";

/**
 * A collection for its owner. Operations of `model` are cast and checked by the schema, those of `collection` are not.
 * The schema is passed as a plain object and the document type is named, because inferring it from the schema makes the
 * type check instantiate 120,000 types.
 */
export function openCollection<Stored extends object>({ connection }: Mongo, name: string, schema: object) {
  const model = connection.model(name, schema as never) as unknown as Model<Stored>;
  const collection = model.collection as unknown as Collection<Stored>;
  async function prepare(): Promise<void> {
    await model.createCollection();
    await model.createIndexes();
  }
  return { model, collection, prepare };
}

/** The documents after this one in a list that is ordered newest first. The first condition lets MongoDB use the index. */
export const olderThan = (id: string, createdAt: Date) => ({
  createdAt: { $lte: createdAt },
  $or: [{ createdAt: { $lt: createdAt } }, { _id: { $lt: id } }],
});
