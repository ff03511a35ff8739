import { PutObjectCommand, S3ServiceException } from "@aws-sdk/client-s3";
import type { Redis } from "ioredis";
import mongoose from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import { createQueues, createReplies } from "#jobs";
import { systemClock } from "#platform/clock";
import { createLogger } from "#platform/logger";
import { connectS3 } from "#platform/s3";
import { connect, defaultApiTimeoutMs, keysOf, log, paidCall, queueOn } from "../support/jobs-setup.ts";
import { checkLine, createTestLogger, linesRead, takeLeaks } from "../support/logs.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";

const prompt = "the-words-of-a-prompt";

async function errorOf(failing: Promise<unknown>): Promise<unknown> {
  return failing.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error,
  );
}

const mongoOf = async ({ MONGODB_URI }: Stores) => {
  const connection = await mongoose.createConnection(MONGODB_URI).asPromise();
  onTestFinished(() => connection.close());
  return connection.collection("prompts");
};

/** Errors that quote the prompt, and the message of each that the log may contain. */
const refusals: readonly (readonly [string, RegExp, (stores: Stores) => Promise<unknown>])[] = [
  [
    "a command that Redis does not know, with its arguments",
    /unknown command/,
    async (stores) => (await connect(stores, "fail-fast")).call("NOTHING", prompt),
  ],
  [
    "a frame for a key of another type",
    /WRONGTYPE/,
    async (stores) => {
      const redis = await connect(stores, "waiting");
      await redis.set("reply:api_test", "x");
      const reply = createReplies({ redis, apiTimeoutMs: defaultApiTimeoutMs, clock: systemClock }).open(
        "api_test",
        "req_1",
        () => {},
      );
      return reply.final(prompt, {});
    },
  ],
  [
    "a job for a queue whose key has another type",
    /WRONGTYPE/,
    async (stores) => {
      const redis = await connect(stores, "fail-fast");
      await redis.set("{chat}:chat:prioritized", "x");
      const queues = createQueues({ redis, log });
      onTestFinished(() => queues.close());
      return queues.enqueue("chat", paidCall("req_1", { body: { json: prompt } }), 0);
    },
  ],
  [
    "many jobs in one transaction",
    /WRONGTYPE/,
    async (stores) => {
      const redis = await connect(stores, "blocking");
      await redis.set("{chat}:chat:wait", "x");
      const queue = queueOn(redis, "chat");
      onTestFinished(() => queue.close());
      return queue.addBulk([{ name: "a", data: { prompt } }]);
    },
  ],
  [
    "documents that MongoDB has already",
    /E11000/,
    async (stores) => {
      const prompts = await mongoOf(stores);
      return prompts.insertMany([{ _id: prompt as never }, { _id: prompt as never, prompt }], { ordered: false });
    },
  ],
  [
    "an update that MongoDB cannot make",
    /Cannot create field/,
    async (stores) => {
      const prompts = await mongoOf(stores);
      await prompts.insertOne({ a: prompt });
      return prompts.updateOne({ a: prompt }, { $set: { "a.b": prompt } });
    },
  ],
  [
    "a document that is too large",
    /./,
    async (stores) => (await mongoOf(stores)).insertOne({ _id: prompt as never, a: prompt.repeat(900_000) }),
  ],
  [
    "a bucket that is not there",
    /./,
    async (stores) => {
      const s3 = connectS3(stores);
      onTestFinished(() => s3.destroy());
      const error = await errorOf(s3.send(new PutObjectCommand({ Bucket: "nowhere", Key: "k", Body: prompt })));
      expect(error).toBeInstanceOf(S3ServiceException);
      throw error;
    },
  ],
];

test.for(refusals)("%s: the log does not quote it", async ([, message, refuse]) => {
  const error = await errorOf(refuse(await testStores()));
  const lines: string[] = [];
  const logged = createLogger("test", "info", { write: (line) => void lines.push(line) });
  logged.warn({ err: error }, "why");
  logged.warn({ err: new Error("several", { cause: error }) }, "why");
  const [line = "", caused = ""] = lines;
  expect((JSON.parse(line) as { err: { message: string } }).err.message).toMatch(message);
  expect((JSON.parse(line) as { err: { stack: string } }).err.stack).toMatch(/^ +at /m);
  for (const each of [line, caused]) expect(each).not.toContain(prompt);
});

/** Makes Redis refuse writes to the key, which has another type during `act`. */
async function refusing(redis: Redis, key: string, act: () => Promise<void>): Promise<void> {
  // Use the same hash slot.
  const aside = key.includes("{") ? `${key}:aside` : `{${key}}:aside`;
  await redis.rename(key, aside);
  await redis.set(key, "x");
  await act();
  await redis.rename(aside, key);
}

test("Redis refuses writes, jobs and frames: the log names the reason and quotes no prompt", async () => {
  const { stores } = await ownServers({ redis: true });
  const { clock, advance } = movableClock();
  const service = await startService(stores, { clock });
  const customer = await service.account("1");
  const redis = await connect(stores, "waiting");
  const call = (stream: boolean) =>
    customer.post("/v1/chat/completions", { ...asking(localModel, prompt), stream }).then(async (answer) => {
      await answer.text();
      return answer.status;
    });
  await eventually(async () => (await call(false)) === 200);
  const before = linesRead();
  await redis.call("CONFIG", "SET", "maxmemory", "1");
  expect(await Promise.all([call(false), call(true)])).toEqual([503, 503]);
  await redis.call("CONFIG", "SET", "maxmemory", "0");
  await refusing(redis, "{chat}:chat:pc", async () => {
    expect(await Promise.all([call(false), call(true)])).toEqual([503, 503]);
  });
  // The record of the worker, which Redis refused as well, is there again.
  await eventually(async () => (await call(false)) === 200);
  // A refused frame: only the deadline ends the call.
  const [reply = ""] = await keysOf(redis, "reply:*");
  await refusing(redis, reply, async () => {
    const charges = async () => (await customer.ledger("usage")).length;
    const before = await charges();
    const refused = call(false);
    await eventually(async () => (await charges()) > before);
    advance(900_000 + 5_000);
    expect(await refused).toBe(504);
  });
  await eventually(async () => (await call(true)) === 200);
  await service.settled();
  expect(linesRead()).toBeGreaterThan(before);
  expect(takeLeaks()).toEqual([]);
});

test("forbidden text is found in any log line, of this process and of others", () => {
  const lines = [prompt, "Hello there", `live_${"k".repeat(40)}`, "admin-token-of-the-tests-of-32-characters"];
  const testLog = createTestLogger();
  for (const line of lines) testLog.trace({ deep: [{ line }] }, "planted");
  for (const line of lines) checkLine(line);
  checkLine("a line without any of it");
  expect(takeLeaks()).toHaveLength(2 * lines.length);
});
