import type { Collection, Model } from "mongoose";
import type { Mongo } from "./mongo.ts";

/**
 * A collection for its owner: what goes by the model is cast and checked by the schema, what goes by the collection is not.
 * Mongoose's own signature compares the schema with every other that there may be: 120,000 types, which each part of the
 * type check makes for itself. So it is passed as a plain object, and what is stored is named.
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

/** In a list by age, newest first: what comes behind this one. The first bound is the index's. */
export const olderThan = (id: string, createdAt: Date) => ({
  createdAt: { $lte: createdAt },
  $or: [{ createdAt: { $lt: createdAt } }, { _id: { $lt: id } }],
});
