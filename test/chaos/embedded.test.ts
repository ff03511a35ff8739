import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { Redis } from "ioredis";
import mongoose from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import { cacheDirOf, findBinaries, isFree, startMongo, startRedis } from "../../infra/embedded/index.ts";
import { ownServers } from "../support/servers.ts";

const noAddresses = { ...process.env, REDIS_URL: "", CACHE_REDIS_URL: "", MONGODB_URI: "", S3_ENDPOINT: "" };

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "inference-embedded-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

async function programs() {
  const { redis, mongo } = await findBinaries({ env: noAddresses, cacheDir: cacheDirOf(process.env) });
  if (!redis || !mongo) throw new Error("no servers");
  return { redis, mongo };
}

/** Runs with a separate connection. */
async function onMongo<T>(uri: string, use: (things: mongoose.mongo.Collection) => Promise<T>): Promise<T> {
  const connection = await mongoose.createConnection(uri).asPromise();
  try {
    return await use(connection.collection("things") as unknown as mongoose.mongo.Collection);
  } finally {
    await connection.close();
  }
}

test("killed servers restart on the same port with the same data", async () => {
  const { redis, mongo, stores } = await ownServers({ redis: true, mongo: true });
  const client = new Redis(stores.REDIS_URL, { maxRetriesPerRequest: null });
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  await client.set("a", "1");
  await onMongo(stores.MONGODB_URI, (things) => things.insertOne({ a: 1 }));
  await Promise.all([redis.kill(), mongo.kill()]);
  expect([redis.pid, mongo.pid]).toEqual([undefined, undefined]);
  await Promise.all([redis.start(), mongo.start()]);
  expect(await client.get("a")).toBe("1");
  expect(await onMongo(stores.MONGODB_URI, (things) => things.countDocuments())).toBe(1);
});

test("a paused server does not answer, continues after SIGCONT, and can be stopped while it is paused", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const client = new Redis(stores.REDIS_URL);
  onTestFinished(() => client.disconnect());
  await client.ping();
  await redis.kill("SIGSTOP");
  const answer = client.ping();
  expect(await Promise.race([answer, setTimeout(100, "silence")])).toBe("silence");
  await redis.kill("SIGCONT");
  expect(await answer).toBe("PONG");
  await redis.kill("SIGSTOP");
  await redis.stop();
  expect(redis.pid).toBeUndefined();
});

test("MongoDB starts on its stored port, or with its data on another one when that is taken", async () => {
  const dataDir = await temporaryFolder();
  const { mongo: binary } = await programs();
  const first = await startMongo({ binary, dataDir });
  await onMongo(first.env.MONGODB_URI as string, (things) => things.insertOne({ a: 1 }));
  await first.stop();

  const again = await startMongo({ binary, dataDir });
  expect(again.port).toBe(first.port);
  await again.stop();

  const squatter = createServer().listen(first.port, "127.0.0.1");
  await once(squatter, "listening");
  onTestFinished(() => void squatter.close());
  const moved = await startMongo({ binary, dataDir });
  onTestFinished(() => moved.stop());
  expect(moved.port).not.toBe(first.port);
  expect(await onMongo(moved.env.MONGODB_URI as string, (things) => things.countDocuments())).toBe(1);
});

test("a second server on the same data is refused", async () => {
  const dataDir = await temporaryFolder();
  const { redis: binary } = await programs();
  const first = await startRedis({ binary, dataDir });
  onTestFinished(() => first.stop());
  await expect(startRedis({ binary, dataDir })).rejects.toThrow(`is in use: process ${first.pid} serves it`);
});

test("a server that does not start says why, with the end of its log", async () => {
  const { redis: binary } = await programs();
  const start = startRedis({ binary, dataDir: await temporaryFolder(), args: ["--no-such-setting", "1"] });
  await expect(start).rejects.toThrow(/Redis did not start: it ended with exit code 1[^]*no-such-setting/);
});

test("no server outlives the process that started it, killed with -9", async () => {
  const dataDir = await temporaryFolder();
  const script = `
    import { startEmbedded } from ${JSON.stringify(new URL("../../infra/embedded/index.ts", import.meta.url).href)};
    const { servers } = await startEmbedded({ env: process.env, dataDir: ${JSON.stringify(dataDir)} });
    console.log(JSON.stringify(servers.map(({ port }) => port)));
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    env: noAddresses,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: parent.stdout }), "line")) as [string];
  const ports = JSON.parse(line) as number[];
  const free = () => Promise.all(ports.map((port) => isFree(port)));
  expect(await free()).toEqual([false, false, false, false]);
  parent.kill("SIGKILL");
  await expect.poll(free).toEqual([true, true, true, true]);
});
