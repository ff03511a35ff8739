import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { expect, onTestFinished } from "vitest";
import { type ArchivedLine, readArchiveFile } from "../../shared/money/archive/file.ts";
import type { WrittenPart } from "../../shared/money/archive/parts.ts";
import {
  type ArchiveObjects,
  createArchiveObjects,
  createMoney,
  type Money,
  moneySchema,
} from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { randomBase62 } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { createMovableClock } from "./money-setup.ts";
import { migrated } from "./schema.ts";
import { type Stores, testStores } from "./servers.ts";

export const log = createLogger("test", "silent");
export const sizes = { partEntries: 5, partBytes: 1_000_000, batchEntries: 3 };
export const retentionDays = 40;
export const claimMs = 600_000;

/** A separate database and bucket, on January 2, 2026. */
export async function startArchive() {
  const stores: Stores = { ...(await testStores()), S3_BUCKET: `archive-${randomBase62(16).toLowerCase()}` };
  const config = loadConfig({ ...stores });
  const s3 = connectS3(config);
  await s3.send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET }));
  const clock = createMovableClock();
  clock.later(Date.parse("2026-01-02T00:00:00Z") - clock.now());
  const mongo = await connectMongo(stores.MONGODB_URI, clock, log);
  onTestFinished(() => mongo.close());
  const objects = createArchiveObjects(config);
  const money = createMoney({ mongo, clock, log });
  await migrated(mongo, [moneySchema]);
  const archive = money.createArchive({ objects, retentionDays, sizes });

  /** Counts everything, then moves the clock until all past months are old enough. */
  async function grow({ days = 75 } = {}): Promise<void> {
    await money.checkpoint();
    clock.later(days * dayMs);
  }
  return { stores, clock, mongo, money, objects, archive, s3, grow };
}

const stored = <Fields extends object>({ connection }: Mongo, name: string) =>
  connection.collection<{ _id: string } & Fields>(name);

/** The entries in verified files. */
export async function archivedLines(mongo: Mongo, objects: ArchiveObjects): Promise<ArchivedLine[]> {
  const state = { $in: ["deleting", "archived"] };
  const parts = await stored<WrittenPart>(mongo, "archives")
    .find({ state } as object)
    .toArray();
  const lines = await Promise.all(
    parts.map(async (part) => {
      const known = seen.get(part._id) ?? (await readArchiveFile(part._id, await objects.get(part._id), part));
      seen.set(part._id, known);
      return known;
    }),
  );
  return lines.flat();
}
/** A verified file never changes. */
const seen = new Map<string, ArchivedLine[]>();

export const ledgerIds = async (mongo: Mongo): Promise<string[]> =>
  (await stored(mongo, "ledger").find({}).toArray()).map(({ _id }) => _id);

export async function expectExact(money: Money): Promise<void> {
  for (const full of [false, true])
    expect(await money.check({ full })).toMatchObject({ ok: true, differenceNanoUsd: 0n });
}

class Killed extends Error {}
/** Afterwards the process does nothing more. */
const refuse = () => Promise.reject(new Killed("the process was killed"));

/** A process that is killed before its nth operation of a store: all values of n cover every await. */
export function mortal(mongo: Mongo, objects: ArchiveObjects, lives: number) {
  let operations = 0;
  const isDead = () => operations > lives;
  const dying = <Result>(work: () => Promise<Result>) => (operations++ < lives ? work() : refuse());
  /** Functions of the object that return promises can be killed. */
  const wrap = <Target extends object>(target: Target, names?: readonly string[]): Target =>
    new Proxy(target, {
      get(of, name) {
        const value = Reflect.get(of, name) as unknown;
        if (typeof value !== "function") return value;
        if (names && !names.includes(String(name))) return value.bind(of);
        return (...args: unknown[]) => dying(async () => (await value.apply(of, args)) as unknown);
      },
    });
  const collectionOperations = ["insertOne", "insertMany", "updateOne", "deleteOne", "deleteMany", "findOne"];
  const more = ["findOneAndUpdate", "bulkWrite"];
  const connection = new Proxy(mongo.connection, {
    get(of, name) {
      if (name !== "model") {
        const value = Reflect.get(of, name) as unknown;
        return typeof value === "function" ? value.bind(of) : value;
      }
      return (...args: [string, never]) => {
        const model = of.model(...args);
        const collection = wrap((model as { collection: object }).collection, [...collectionOperations, ...more]);
        return new Proxy(model as object, {
          get: (real, key) => (key === "collection" ? collection : Reflect.get(real, key)),
        });
      };
    },
  });
  return { mongo: { ...mongo, connection } as Mongo, objects: wrap(objects), isDead };
}
