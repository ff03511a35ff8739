/**
 * Measures speed and memory of archiving the ledger: `node test/bench/archive.ts [entries] [accounts]`. It starts and
 * fills its own MongoDB and S3 server, and prints a line for each measurement.
 */
import { createArchiveObjects } from "#money";
import { dayMs } from "#platform/clock";
import { loadConfig } from "#platform/config";
import { startEmbedded } from "../../infra/embedded/index.ts";
import { costOfStored, insertAll, storedCall, storedCredit } from "./ledger-entries.ts";
import { accountId, inFolder, openMoney, print } from "./money-bench.ts";
import { watchMost } from "./processes.ts";

const [entries = 1_000_000, accounts = 10_000] = process.argv.slice(2).map(Number);
const retentionDays = 35;
const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`;

async function measure(env: Readonly<Record<string, string>>): Promise<void> {
  const { mongo, money } = await openMoney(env["MONGODB_URI"] ?? "");
  const collection = (name: string) => mongo.connection.collection<{ _id: string }>(name);
  const each = Math.floor(entries / accounts);
  const startAt = Date.now() - 150 * dayMs;
  const createdAt = new Date(startAt);
  const rest = { name: "bench", tier: "standard", frozen: false, held: 0n, holds: {}, openHolds: 0, createdAt };
  await insertAll(collection("accounts"), accounts, (at) => ({ ...rest, _id: accountId(at), available: 1_000n }));
  const amount = 1_000n + costOfStored(each);
  const counted = { checkpointed: true };
  await insertAll(collection("ledger"), accounts, (at) => ({
    ...storedCredit({ account: accountId(at), createdAt }, amount),
    ...counted,
  }));
  // Spread the calls over sixty days.
  await insertAll(collection("ledger"), each * accounts, (at) => {
    const time = new Date(startAt + Math.floor((at / entries) * 60 * dayMs));
    return { ...storedCall({ account: accountId(at % accounts), createdAt: time }), ...counted };
  });
  await insertAll(collection("checkpoints"), accounts, (at) => ({ _id: accountId(at), amount: 1_000n }));
  print(`${entries} entries of ${accounts} accounts`);

  const objects = createArchiveObjects(loadConfig({ REDIS_URL: "redis://unused", ...env }));
  const archive = money.createArchive({ objects, retentionDays });
  const peakBytes = watchMost(() => process.memoryUsage.rss());
  const [rss, at, cpu] = [process.memoryUsage.rss(), performance.now(), process.cpuUsage()];
  const archived = await archive.run();
  const seconds = (performance.now() - at) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const perEntry = ((user + system) / archived).toFixed(0);
  print(`archived ${archived} in ${seconds.toFixed(1)} s: ${Math.round(archived / seconds)} entries/s`);
  print(
    `${perEntry} microseconds of this process's time an entry; memory ${megabytes(rss)} before, at most ${megabytes(peakBytes())}`,
  );
  const months = await money.archives.list({ limit: 50 });
  const bytes = months.reduce((sum, month) => sum + month.bytes, 0);
  print(
    `${Math.round(bytes / archived)} bytes an entry in storage, ${months.reduce((sum, { parts }) => sum + parts, 0)} files`,
  );
  for (const full of [false, true]) {
    const checkAt = performance.now();
    const { ok } = await money.check({ full });
    print(`check${full ? " --full" : ""}: ok ${ok}, ${Math.round(performance.now() - checkAt)} ms`);
  }
  await mongo.close();
}

await inFolder(async (dataDir) => {
  const embedded = await startEmbedded({ env: { ...process.env, REDIS_URL: "redis://unused" }, dataDir });
  try {
    await measure({ S3_BUCKET: "inference", ...embedded.env } as Record<string, string>);
  } finally {
    await embedded.stop();
  }
});
