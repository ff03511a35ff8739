/** Steps of migrations. Each can be stopped at any point and repeated, and is safe beside processes of the version before. */
import { mongo as driver } from "mongoose";
import { scatter } from "./collection.ts";
import { type Migration, MigrationError, type Step } from "./migrations.ts";
import { isDuplicate } from "./mongo.ts";

export interface CollectionIndexes {
  readonly collection: string;
  readonly indexes: readonly driver.IndexDescription[];
}

const namespaceExists = 48;
const namespaceNotFound = 26;
const indexNotFound = 27;
const hasCode = (error: unknown, ...codes: readonly number[]) =>
  error instanceof driver.MongoServerError && codes.includes(Number(error.code));

/**
 * Creates collections, and indexes that do not exist. MongoDB builds them beside reads and writes. A build that is interrupted
 * is joined or begun again by the next run.
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
        await db.createCollection(collection).catch((error: unknown) => {
          if (!hasCode(error, namespaceExists)) throw error;
        });
        if (indexes.length > 0) await createIndexes(db, collection, indexes);
      }),
    );
  },
});

async function createIndexes(db: driver.Db, collection: string, indexes: readonly driver.IndexDescription[]) {
  try {
    await db.collection(collection).createIndexes(indexes.map((index) => ({ ...index })));
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    throw new MigrationError(
      `A unique index of \`${collection}\` cannot be built, because documents have the same key. Remove all of them but one, and ` +
        `run it again. MongoDB: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/** For indexes that no process uses any more, also none of the version before. */
export const dropIndexes = (what: string, collection: string, names: readonly string[]): Migration => ({
  what,
  async run({ db }) {
    for (const name of names)
      await db
        .collection(collection)
        .dropIndex(name)
        .catch((error: unknown) => {
          if (!hasCode(error, namespaceNotFound, indexNotFound)) throw error;
        });
  },
});

const pageSize = 2_000;

/**
 * Changes documents by ranges of their ids, and stores how far it came. `filter` must match only documents that are to be
 * changed, and none that was changed, so that a range may be changed twice. Documents that are inserted meanwhile have the new
 * shape already.
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
        ...scatter("migration"),
      } as const;
      const end = (await documents.findOne({ _id: { $gt: after } }, options))?._id;
      const range = end === undefined ? { $gt: after } : { $gt: after, $lte: end };
      const { modifiedCount } = await documents.updateMany({ ...filter, _id: range }, update, scatter("migration"));
      await save(end ?? after, modifiedCount);
      if (end === undefined) return;
      after = end;
    }
  },
});
