import { type Collection, type mongo as driver, type InferRawDocType, type Model, Schema } from "mongoose";
import { invalidValue } from "#errors";
import type { Mongo } from "./connection.ts";

/** Used by scheduled jobs, checks and migrations, which read or write many documents at once. */
export const longRunning = { maxTimeMS: 60_000 } as const;

/** MongoDB ends the query of a list by then, instead of reading on for a caller who has been answered. */
const pageTime = { maxTimeMS: 3_000 } as const;

/**
 * The documents of a definition. Optional fields are missing in the database, never null. `Typed` contains fields whose
 * type the definition cannot express.
 */
export type DocumentOf<Definition, Typed extends object = object> = {
  readonly [Name in keyof Omit<InferRawDocType<Definition>, keyof Typed>]: Exclude<
    InferRawDocType<Definition>[Name],
    null
  >;
} & Readonly<Typed>;

/**
 * Opens a collection for its owner, whose migrations create it and its indexes. Operations of `model` are cast and
 * checked by the definition, those of `collection` are not (docs/adr/0030-mongodb-timeouts.md). An operation that may
 * take longer than a few seconds sets `maxTimeMS` (`longRunning`). `Document` must be `DocumentOf` the definition. It
 * is passed explicitly, because inferring it makes the type check instantiate 120,000 types.
 */
export function openCollection<Document extends object>({ connection }: Mongo, name: string, definition: object) {
  const schema = new Schema(definition, { strict: "throw", versionKey: false, minimize: false });
  const model = connection.model(name, schema, name) as unknown as Model<Document>;
  return { model, collection: model.collection as unknown as Collection<Document> };
}

/** Yields the documents of a cursor in lists of at most `size`. */
export async function* inBatches<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/**
 * Marks an operation on a sharded collection that queries every shard. MongoDB shows the comment in its logs and
 * profiles; the module's schema (`ModuleSchema.scatter`) explains why the shard key is missing, and the tests refuse
 * any other.
 */
export const scatter = (name: string) => ({ comment: `scatter: ${name}` });

export interface Page {
  readonly limit: number;
  /** The id of the last item of the previous page. */
  readonly after?: string | undefined;
  /** By creation. Default: `desc`, newest first. */
  readonly order?: "asc" | "desc" | undefined;
}

interface PageQuery<Document> extends driver.FindOptions {
  /** Matches everything whose id `after` may be. */
  readonly owner?: driver.Filter<Document>;
  readonly filter?: driver.Filter<Document>;
  /** Completed by the id of an unknown `after`: "this account has no key". */
  readonly unknown: string;
  /** The form in which the caller sent the id. */
  readonly shownAs?: (id: string) => string;
  /** The index of the page. */
  readonly hint?: driver.Hint;
}

/** Reads a page of a list. Throws 400 for an unknown `after`. */
export async function findPage<Document extends { readonly _id: string; readonly createdAt: Date }>(
  collection: Collection<Document>,
  { limit, after, order = "desc" }: Page,
  { owner = {}, filter = {}, unknown, shownAs = (id) => id, hint, ...options }: PageQuery<Document>,
) {
  const last =
    after === undefined
      ? undefined
      : await collection.findOne({ ...owner, _id: after } as driver.Filter<Document>, options);
  if (last === null) throw invalidValue("after", `after: ${unknown} '${shownAs(after ?? "")}'.`);
  const beyond = order === "asc" ? newerThan : olderThan;
  const rest = last ? { $and: [beyond(last._id, last.createdAt)] } : {};
  const page = { ...owner, ...filter, ...rest } as driver.Filter<Document>;
  const direction = order === "asc" ? 1 : -1;
  const sort = { createdAt: direction, _id: direction } as const;
  return collection.find(page, { ...pageTime, ...options, ...(hint !== undefined && { hint }), sort, limit }).toArray();
}

/** Matches the documents after this one in a list ordered newest first. The first condition is for the index. */
export const olderThan = (id: string, createdAt: Date) => ({
  createdAt: { $lte: createdAt },
  $or: [{ createdAt: { $lt: createdAt } }, { _id: { $lt: id } }],
});

const newerThan = (id: string, createdAt: Date) => ({
  createdAt: { $gte: createdAt },
  $or: [{ createdAt: { $gt: createdAt } }, { _id: { $gt: id } }],
});
