import { GetBucketCorsCommand, PutBucketCorsCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import { createFiles } from "../../shared/files/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { dayMs, filesConfig, forever, minutesMs, startArchive } from "../support/files-setup.ts";

const gone = expect.objectContaining({ name: "NoSuchKey" });

test("a body is stored unchanged until it is deleted", async () => {
  const { files } = await startArchive();
  const json = JSON.stringify({ text: "€😀\0".repeat(300_000) });
  await files.putBody("req_files_stored", json);
  expect(await files.getBody("req_files_stored", forever)).toBe(json);
  await files.deleteBody("req_files_stored");
  await expect(files.getBody("req_files_stored", forever)).rejects.toThrow(gone);
  await expect(files.deleteBody("req_files_stored")).resolves.toBeUndefined();
});

test("reading a body ends with the signal", async () => {
  const { files } = await startArchive();
  await files.putBody("req_files_aborted", "{}");
  await expect(files.getBody("req_files_aborted", AbortSignal.abort())).rejects.toThrow("abort");
});

test("an answer is stored unchanged, alongside the body of the same request", async () => {
  const { files } = await startArchive();
  await files.putBody("req_1", "the body");
  const answer = Buffer.from([0, 255, 128, 10]);
  await files.putAnswer("req_1", answer);
  expect(await files.getAnswer("req_1")).toEqual(answer);
  expect(await files.getBody("req_1", forever)).toBe("the body");
  await expect(files.getAnswer("req_2")).rejects.toThrow(gone);
});

test("abandoned bodies and answers are deleted after a day", async () => {
  const { files, clock, objects } = await startArchive();
  const texts = Array.from({ length: 20 }, (_, i) => [
    files.putBody(`req_${i}`, "{}"),
    files.putAnswer(`req_${i}`, Buffer.from("{}")),
  ]);
  await Promise.all(texts.flat());
  expect(await files.expireBodies()).toBe(0);
  clock.later(dayMs - minutesMs);
  expect(await files.expireBodies()).toBe(0);
  expect(await files.getBody("req_0", forever)).toBe("{}");
  clock.later(2 * minutesMs);
  expect(await files.expireBodies()).toBe(40);
  expect(await files.expireBodies()).toBe(0);
  expect(await objects()).toEqual([]);
});

test("the bucket exposes the ETag of a part to browsers; existing rules of others stay", async () => {
  const { files, s3, stores, ask } = await startArchive();
  const Bucket = stores.S3_BUCKET;
  const theirs = { ID: "theirs", AllowedMethods: ["GET"], AllowedOrigins: ["https://example.com"] };
  await s3.send(new PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: [theirs] } }));
  const rules = async () => (await s3.send(new GetBucketCorsCommand({ Bucket }))).CORSRules;
  await files.prepareBucket();
  const once = await rules();
  expect(once).toMatchObject([
    theirs,
    { ID: "inference-service", AllowedMethods: ["GET", "HEAD", "PUT"], AllowedOrigins: ["*"], ExposeHeaders: ["ETag"] },
  ]);
  await files.prepareBucket();
  expect(await rules()).toEqual(once);
  const { multipart } = await files.uploads.start({ ...ask(), bytes: 4, mime: "image/png" });
  const url = multipart?.parts[0]?.url as string;
  const answer = await fetch(url, { method: "PUT", body: "1234", headers: { origin: "https://app.example.com" } });
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  expect(answer.headers.get("access-control-expose-headers")).toMatch(/etag/i);
});

test("bucket settings that the server refuses are logged, but not those that it does not have, and stop nothing", async () => {
  const { stores, mongo, money, clock } = await startArchive();
  const lines: string[] = [];
  const log = createLogger("test", "info", { write: (line) => void lines.push(line) });
  const config = { ...stores, ...filesConfig };
  await createFiles({ config, mongo, money, clock, log }).prepareBucket();
  expect(lines).toEqual([]);
  await createFiles({ config: { ...config, S3_BUCKET: "none" }, mongo, money, clock, log }).prepareBucket();
  expect(lines).toContainEqual(expect.stringContaining("CORS of the bucket could not be set"));
});
