/**
 * Migrations bring MongoDB into the state that a process needs to start. Each module declares its own
 * (`shared/<module>/migrations.ts`); a module's schema has the number of its last migration. Applied ones are in the
 * collection `migrations`, with the cursor of one that is in progress.
 *
 * Every migration can be stopped and repeated, and is safe while the previous version runs. One process runs them,
 * under a lock with an expiry; a process that lost its lock without noticing does no harm, because steps are
 * idempotent.
 */
import type { mongo as driver } from "mongoose";
import { type Clock, sleep } from "../clock.ts";
import { unlessAborted } from "../concurrency/unless-aborted.ts";
import { randomBase62 } from "../ids.ts";
import type { Logger } from "../logger.ts";
import { ignoreDuplicate, type Mongo } from "./connection.ts";

export interface Step {
  readonly db: driver.Db;
  /** The position at which the previous run stopped. */
  readonly cursor: string | undefined;
  /** Must be called after each part to store the cursor. Throws when the run is to stop. */
  readonly save: (cursor: string, changed: number) => Promise<void>;
}

export interface Migration {
  /** Shown by `npm run migrate -- status`. */
  readonly what: string;
  /** Idempotent. */
  readonly run: (step: Step) => Promise<void>;
  /**
   * The oldest schema whose processes work on the result, stored for those that do not know this migration. Defaults to
   * any. Otherwise the migration runs only once all processes are on that schema.
   */
  readonly oldest?: number;
}

export interface ModuleSchema {
  readonly module: string;
  /** The field by which each collection is sharded in a sharded cluster (docs/operations/scaling-mongodb.md). */
  readonly shardKeys?: Readonly<Record<string, string>>;
  /** The reason why each remaining collection is on one shard. */
  readonly unsharded?: Readonly<Record<string, string>>;
  /** Operations that query every shard, by the name in their comment (`scatter`), with the reason. */
  readonly scatter?: Readonly<Record<string, string>>;
  /** Ordered and append-only. Their number is the number of the schema. */
  readonly migrations: readonly Migration[];
}

interface Applied {
  /** `<module>-<number>`. */
  readonly _id: string;
  readonly module: string;
  readonly number: number;
  readonly what: string;
  readonly oldest: number;
  readonly startedAt: Date;
  readonly cursor?: string;
  readonly changed?: number;
  /** Unset while the migration is in progress or stopped. */
  readonly appliedAt?: Date;
}

/** The message says what is wrong and what to do. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

const collectionName = "migrations";
const lockId = "lock";
const lockSeconds = 30;
const heartbeatMs = 5_000;
const waitMs = 500;

const idOf = (module: string, number: number) => `${module}-${number}`;
const readApplied = async ({ db }: Pick<Mongo, "db">): Promise<Map<string, Applied>> => {
  const found = db.collection<Applied>(collectionName).find({ _id: { $ne: lockId } }, { promoteValues: true });
  return new Map((await found.toArray()).map((each) => [each._id, each]));
};

export interface MigrationState {
  readonly id: string;
  readonly what: string;
  readonly state: "applied" | "under way" | "pending" | "unknown";
  readonly appliedAt: Date | undefined;
  /** Number of documents that a backfill changed. */
  readonly changed: number;
}

/** Lists migrations in the order of application, followed by unknown ones of a newer version. */
export async function migrationStates(mongo: Mongo, schemas: readonly ModuleSchema[]): Promise<MigrationState[]> {
  const applied = await readApplied(mongo);
  const known = schemas.flatMap(({ module, migrations }) =>
    migrations.map(({ what }, at) => ({ id: idOf(module, at + 1), what })),
  );
  const ids = new Set(known.map(({ id }) => id));
  const unknown = [...applied.values()].filter(({ _id }) => !ids.has(_id)).map(({ _id, what }) => ({ id: _id, what }));
  return [...known, ...unknown].map(({ id, what }) => {
    const found = applied.get(id);
    const state = !ids.has(id) ? "unknown" : found?.appliedAt ? "applied" : found ? "under way" : "pending";
    return { id, what, state, appliedAt: found?.appliedAt, changed: Number(found?.changed ?? 0) };
  });
}

/**
 * Throws `MigrationError` if a migration of these modules is not applied, or if a newer version applied one with which
 * this version does not work. Other newer migrations are accepted, so that the previous version can be rolled out
 * again.
 */
export async function checkSchema(mongo: Mongo, schemas: readonly ModuleSchema[]): Promise<void> {
  const applied = await readApplied(mongo);
  const pending = schemas.flatMap(({ module, migrations }) =>
    migrations.map((_, at) => idOf(module, at + 1)).filter((id) => !applied.get(id)?.appliedAt),
  );
  if (pending.length > 0)
    throw new MigrationError(
      `The database's schema is too old: ${pending.join(", ")} ${pending.length === 1 ? "is" : "are"} not applied. ` +
        "Run `npm run migrate` (node infra/cli/migrate.ts) and start again.",
    );
  for (const { module, migrations } of schemas) {
    const own = migrations.length;
    const breaking = [...applied.values()].find(
      (each) => each.module === module && each.number > own && each.oldest > own,
    );
    if (breaking)
      throw new MigrationError(
        `The database's schema is too new: ${breaking._id} (${breaking.what}) needs schema ${breaking.oldest} of ${module}, ` +
          `and this version has ${own}. Start a newer version, or restore a backup from before that migration.`,
      );
  }
}

/** Applies pending migrations, and resolves to their number. Waits while another process applies them. */
export async function migrate(deps: {
  readonly mongo: Mongo;
  readonly schemas: readonly ModuleSchema[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal?: AbortSignal;
  /** Set if no process of the service is running. */
  readonly offline?: boolean;
}): Promise<number> {
  const { mongo, schemas, clock, log, offline = false } = deps;
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, ...(deps.signal ? [deps.signal] : [])]);
  const states = async () => (await migrationStates(mongo, schemas)).filter(({ state }) => state !== "unknown");
  if ((await states()).every(({ state }) => state === "applied")) return 0;

  signal.throwIfAborted();
  const lock = await takeLock(mongo, clock, log, signal);
  const stopHeartbeat = clock.every(heartbeatMs, () => {
    lock.renew().then(
      (isOurs) => isOurs || stopping.abort(new MigrationError("Another process has taken over the migrations.")),
      // The lock is valid until it expires, and the write of the running step will also fail.
      (error: Error) => log.warn({ err: error.message }, "the lock of the migrations could not be renewed"),
    );
  });
  try {
    const before = await readApplied(mongo);
    const isFresh =
      (await mongo.db.listCollections({ name: { $ne: collectionName } }, { nameOnly: true }).toArray()).length === 0;
    let count = 0;
    for (const { module, migrations } of schemas) {
      const running = migrations.filter((_, at) => before.get(idOf(module, at + 1))?.appliedAt).length;
      for (const [at, migration] of migrations.entries()) {
        if (before.get(idOf(module, at + 1))?.appliedAt) continue;
        const { oldest = 0 } = migration;
        if (oldest > running && !isFresh && !offline)
          throw new MigrationError(
            `${idOf(module, at + 1)} breaks processes before schema ${oldest} of ${module}, and the database was at ${running}. ` +
              "Roll out a version in between first, or stop every process and use --offline.",
          );
        await apply({ mongo, clock, log, signal }, module, at + 1, migration);
        count += 1;
      }
    }
    return count;
  } finally {
    stopHeartbeat();
    await lock.release().catch(() => undefined);
  }
}

async function apply(
  { mongo, clock, log, signal }: { mongo: Mongo; clock: Clock; log: Logger; signal: AbortSignal },
  module: string,
  number: number,
  { what, run, oldest = 0 }: Migration,
): Promise<void> {
  const _id = idOf(module, number);
  const records = mongo.db.collection<Applied>(collectionName);
  const started = { module, number, what, oldest, startedAt: new Date(clock.now()) };
  const options = { upsert: true, returnDocument: "after" } as const;
  const found = await records.findOneAndUpdate({ _id }, { $setOnInsert: started }, options);
  log.info({ migration: _id, ...(found?.cursor !== undefined && { from: found.cursor }) }, what);
  const save = async (cursor: string, changed: number) => {
    await records.updateOne({ _id }, { $set: { cursor }, $inc: { changed } });
    signal.throwIfAborted();
  };
  // Does not wait for a command that runs on the server, such as a long index build.
  await unlessAborted(signal, () => run({ db: mongo.db, cursor: found?.cursor, save }));
  await records.updateOne({ _id }, { $set: { appliedAt: new Date(clock.now()) }, $unset: { cursor: "" } });
  log.info({ migration: _id }, "applied");
}

/**
 * Uses the server's clock. The holder renews it; if the holder dies, another process takes over within half a minute.
 */
async function takeLock({ db }: Mongo, clock: Clock, log: Logger, signal: AbortSignal) {
  const owner = randomBase62(16);
  const locks = db.collection<{ _id: string; owner: string; expiresAt: Date }>(collectionName);
  const expiresAt = { $dateAdd: { startDate: "$$NOW", unit: "second", amount: lockSeconds } };
  const isFree = { $lte: ["$expiresAt", "$$NOW"] };
  const take = [
    { $set: { owner: { $cond: [isFree, owner, "$owner"] }, expiresAt: { $cond: [isFree, expiresAt, "$expiresAt"] } } },
  ];
  /** A missing lock has no expiry, which is less than any date. */
  const read = () =>
    locks.findOneAndUpdate({ _id: lockId }, take, { upsert: true, returnDocument: "after" }).catch(ignoreDuplicate);
  for (let isFirst = true; (await read())?.owner !== owner; isFirst = false) {
    if (isFirst) log.info("another process applies migrations; waiting for it");
    await sleep(clock, waitMs, signal);
  }
  return {
    renew: async () => (await locks.updateOne({ _id: lockId, owner }, [{ $set: { expiresAt } }])).matchedCount === 1,
    release: () => locks.deleteOne({ _id: lockId, owner }),
  };
}
