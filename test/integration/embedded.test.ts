import { ListBucketsCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import mongoose from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import { connectS3 } from "../../shared/platform/s3.ts";
import { testStores } from "../support/servers.ts";

/** Runs with a separate connection. */
async function onMongo<T>(uri: string, use: (things: mongoose.mongo.Collection) => Promise<T>): Promise<T> {
  const connection = await mongoose.createConnection(uri).asPromise();
  try {
    return await use(connection.collection("things") as unknown as mongoose.mongo.Collection);
  } finally {
    await connection.close();
  }
}

test("each test gets an empty database of each Redis, its own MongoDB database, and the bucket", async () => {
  const [one, other] = await Promise.all([testStores(), testStores()]);
  const redis = ({ REDIS_URL, REDIS_DATABASE }: typeof one) => `${REDIS_URL} ${REDIS_DATABASE}`;
  expect(redis(one)).not.toBe(redis(other));
  expect(one.CACHE_REDIS_URL).not.toBe(other.CACHE_REDIS_URL);
  await onMongo(one.MONGODB_URI, (things) => things.insertOne({ a: 1 }));
  expect(await onMongo(other.MONGODB_URI, (things) => things.countDocuments())).toBe(0);
  const s3 = connectS3(one);
  const { Buckets } = await s3.send(new ListBucketsCommand());
  s3.destroy();
  expect(Buckets?.map(({ Name }) => Name)).toContain(one.S3_BUCKET);
});

test("a browser may read the ETag of a part that it uploads", async () => {
  const { S3_BUCKET, ...stores } = await testStores();
  const s3 = connectS3(stores);
  onTestFinished(() => s3.destroy());
  let exposed: string | undefined;
  s3.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      exposed = (result.response as { headers: Record<string, string> }).headers["access-control-expose-headers"];
      return result;
    },
    { step: "deserialize" },
  );
  // Add an origin, as a browser does: with CORS rules on the bucket, only such requests get the header.
  s3.middlewareStack.add(
    (next) => (args) => {
      (args.request as { headers: Record<string, string> }).headers["origin"] = "https://example.com";
      return next(args);
    },
    { step: "build" },
  );
  await s3.send(new PutObjectCommand({ Bucket: S3_BUCKET, Key: "embedded-test", Body: "a" }));
  expect(exposed).toMatch(/\betag\b/i);
});
