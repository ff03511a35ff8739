/** Steps of migrations. Each can be stopped at any point and repeated, and is safe while the previous version runs. */
import { mongo as driver } from "mongoose";
import { dayMs } from "../clock.ts";
import { longRunning, scatter } from "./collection.ts";
import { isDuplicate } from "./connection.ts";
import { type Migration, MigrationError, type Step } from "./migrations.ts";

export interface CollectionIndexes {
  readonly collection: string;
  readonly indexes: readonly driver.IndexDescription[];
}

const namespaceExists = 48;
const namespaceNotFound = 26;
const indexNotFound = 27;
const hasCode = (error: unknown, ...codes: readonly number[]) =>
  error instanceof driver.MongoServerError && codes.includes(Number(error.code));

/** Building an index on a large collection takes hours. */
const building = { maxTimeMS: dayMs } as const;

/**
 * Creates missing collections and indexes. MongoDB continues to read and write while it builds them. The next run joins
 * a build in progress, or begins again.
 */
export const createCollections = (
  what: string,
  collections: readonly CollectionIndexes[],
): Migration & { readonly collections: readonly CollectionIndexes[] } => ({
  what,
  collections,
  async run({ db }) {
    await Promise.all(
      collections.map(async ({ collection, indexes }) => {
        await db.createCollection(collection, longRunning).catch((error: unknown) => {
          if (!hasCode(error, namespaceExists)) throw error;
        });
        if (indexes.length > 0) await createIndexes(db, collection, indexes);
      }),
    );
  },
});

async function createIndexes(db: driver.Db, collection: string, indexes: readonly driver.IndexDescription[]) {
  try {
    const specs = indexes.map((index) => ({ ...index }));
    await db.collection(collection).createIndexes(specs, building);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    throw new MigrationError(
      `A unique index of \`${collection}\` cannot be built, because documents have the same key. Remove all of them but one, and ` +
        `run it again. MongoDB: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/** Drops indexes that neither this version nor the previous one uses. */
export const dropIndexes = (what: string, collection: string, names: readonly string[]): Migration => ({
  what,
  async run({ db }) {
    for (const name of names)
      await db
        .collection(collection)
        .dropIndex(name, longRunning)
        .catch((error: unknown) => {
          if (!hasCode(error, namespaceNotFound, indexNotFound)) throw error;
        });
  },
});

const pageSize = 2_000;

/**
 * Changes documents by ranges of their ids, and stores its progress. `filter` must match only documents that still need
 * the change, so that a range may be processed twice. Documents inserted in the meantime already have the new shape.
 */
export const backfill = (
  what: string,
  { collection, filter, update }: { collection: string; filter: object; update: object[] },
): Migration => ({
  what,
  async run({ db, cursor, save }: Step) {
    const documents = db.collection<{ _id: string }>(collection);
    for (let after = cursor ?? ""; ; ) {
      const options = {
        projection: { _id: 1 },
        sort: { _id: 1 },
        skip: pageSize - 1,
        ...longRunning,
        ...scatter("migration"),
      } as const;
      const end = (await documents.findOne({ _id: { $gt: after } }, options))?._id;
      const range = end === undefined ? { $gt: after } : { $gt: after, $lte: end };
      const { modifiedCount } = await documents.updateMany({ ...filter, _id: range }, update, {
        ...longRunning,
        ...scatter("migration"),
      });
      await save(end ?? after, modifiedCount);
      if (end === undefined) return;
      after = end;
    }
  },
});
