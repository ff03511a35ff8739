import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { expect, onTestFinished, test } from "vitest";
import { createFiles } from "#files";
import { connectS3 } from "#platform/s3";
import { createManualClock } from "../support/manual-clock.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";

const day = 24 * 3_600_000;
const gone = expect.objectContaining({ name: "NoSuchKey" });
const forever = new AbortController().signal;

function open(stores: Stores, clock = createManualClock(Date.now())) {
  const s3 = connectS3(stores);
  onTestFinished(() => s3.destroy());
  return { s3, clock, files: createFiles({ s3, bucket: stores.S3_BUCKET, clock }) };
}

test("a body is kept as it is until it is dropped", async () => {
  const { files } = open(await testStores());
  const json = JSON.stringify({ text: "€😀\0".repeat(300_000) });
  await files.putBody("req_files_kept", json);
  expect(await files.getBody("req_files_kept", forever)).toBe(json);
  await files.dropBody("req_files_kept");
  await expect(files.getBody("req_files_kept", forever)).rejects.toThrow(gone);
  await expect(files.dropBody("req_files_kept")).resolves.toBeUndefined();
});

test("reading a body ends when nobody wants it any more", async () => {
  const { files } = open(await testStores());
  await files.putBody("req_files_aborted", "{}");
  await expect(files.getBody("req_files_aborted", AbortSignal.abort())).rejects.toThrow("abort");
  await files.dropBody("req_files_aborted");
});

test("bodies that a crash left are removed after a day", async () => {
  const { stores } = await ownServers({ s3: true });
  const { files, s3, clock } = open(stores);
  await s3.send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET })).catch(() => undefined);
  await Promise.all(Array.from({ length: 20 }, (_, i) => files.putBody(`req_${i}`, "{}")));
  expect(await files.expireBodies()).toBe(0);
  clock.advance(day - 60_000);
  expect(await files.expireBodies()).toBe(0);
  expect(await files.getBody("req_0", forever)).toBe("{}");
  clock.advance(120_000);
  expect(await files.expireBodies()).toBe(20);
  expect(await files.expireBodies()).toBe(0);
  await expect(files.getBody("req_0", forever)).rejects.toThrow(gone);
});

test("with storage away keeping and reading fail", async () => {
  const { s3: server, stores } = await ownServers({ s3: true });
  const { files } = open(stores);
  await server.stop();
  const refused = expect.objectContaining({ code: "ECONNREFUSED" });
  await expect(files.putBody("req_1", "{}")).rejects.toThrow(refused);
  await expect(files.getBody("req_1", forever)).rejects.toThrow(refused);
  await expect(files.expireBodies()).rejects.toThrow(refused);
});
