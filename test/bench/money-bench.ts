import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMoney, moneySchema } from "#money";
import { type Clock, systemClock } from "#platform/clock";
import { createLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo/connection";
import { migrate } from "#platform/mongo/migrations";
import { cacheDirOf, findBinaries, startMongo } from "../../infra/embedded/index.ts";
import { type Measured, measured } from "./processes.ts";

/** The arrangement of the commands that measure the money module on a ledger of their own. */

export const print = (line: string) => process.stdout.write(`${line}\n`);
export const accountId = (at: number) => `acct_${String(at).padStart(9, "0")}`;

/** The money module on a migrated database. */
export async function openMoney(uri: string, clock: Clock = systemClock) {
  const log = createLogger("bench", "error");
  const mongo = await connectMongo(uri, clock, log);
  await migrate({ mongo, schemas: [moneySchema], clock, log });
  /** Another instance, with empty caches. */
  const create = () => createMoney({ mongo, clock, log });
  return { mongo, money: create(), create };
}

/** Runs a measurement in a directory that is removed at its end. */
export async function inFolder(work: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "inference-bench-"));
  try {
    await work(dataDir);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Runs a measurement on its own MongoDB. */
export const onMongo = (measure: (uri: string, mongod: Measured) => Promise<void>): Promise<void> =>
  inFolder(async (dataDir) => {
    const env = { ...process.env, REDIS_URL: "not wanted", S3_ENDPOINT: "not wanted", MONGODB_URI: "" };
    const { mongo: binary = "" } = await findBinaries({ env, cacheDir: cacheDirOf(env) });
    const server = await startMongo({ binary, dataDir });
    try {
      await measure(server.env["MONGODB_URI"] ?? "", measured("MongoDB", server));
    } finally {
      await server.stop();
    }
  });
