import { HeadObjectCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import {
  dayMs,
  forever,
  hourMs,
  mib,
  minutesMs,
  pieces,
  pngOf,
  refused,
  startArchive,
  storeGenerated,
  wavOf,
} from "../support/files-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

const all = async (chunks: AsyncIterable<Buffer>) => Buffer.concat(await Array.fromAsync(chunks));

test("a file is stored from a buffer or a stream, with the detected type, and read unchanged", async () => {
  const archive = await startArchive();
  const { generated } = archive.files;
  const body = wavOf(3 * mib + 1);
  for (const given of [body, pieces(body, 10_000)]) {
    const stored = await storeGenerated(archive, given);
    expect(stored).toMatchObject({
      id: expect.stringMatching(/^file_[0-9A-Za-z]{40}$/),
      contentType: "audio/wav",
      bytes: body.length,
      expiresAt: stored.createdAt + dayMs,
    });
    const { createdAt: _, ...found } = stored;
    expect(await generated.find(stored.id)).toEqual({ ...found, etag: expect.stringMatching(/^"[^"]+"$/) });
    expect((await all(await generated.open(stored.id, undefined, forever))).equals(body)).toBe(true);
    const part = await all(await generated.open(stored.id, { start: mib, end: mib + 9 }, forever));
    expect(part.equals(body.subarray(mib, mib + 10))).toBe(true);
    const object = { Bucket: archive.stores.S3_BUCKET, Key: `files/${stored.id}` };
    expect((await archive.s3.send(new HeadObjectCommand(object))).ContentType).toBe("audio/wav");
  }
});

test("the record is written before the object", async () => {
  const archive = await startArchive();
  let before: unknown;
  async function* watching() {
    before = await archive.records("files");
    yield pngOf();
  }
  const { id } = await storeGenerated(archive, watching());
  expect(before).toMatchObject([{ _id: id, status: "pending", announced: false }]);
});

test("a file that is not an image, video or audio is stored as plain bytes", async () => {
  const archive = await startArchive();
  expect(await storeGenerated(archive, Buffer.from("<html></html>"))).toMatchObject({
    contentType: "application/octet-stream",
  });
});

test("a file over the limit, an empty one, and one whose stream breaks are not stored", async () => {
  const archive = await startArchive();
  const limitBytes = 100_000;
  const large = wavOf(limitBytes + 1);
  let asked = 0;
  async function* endless() {
    for (;;) {
      asked++;
      yield large;
    }
  }
  async function* broken() {
    yield large.subarray(0, 50_000);
    throw new Error("the provider broke off");
  }
  await expect(storeGenerated(archive, large, { limitBytes })).rejects.toThrow(refused("upstream_error"));
  await expect(storeGenerated(archive, endless(), { limitBytes })).rejects.toThrow(refused("upstream_error"));
  expect(asked).toBeLessThan(4);
  await expect(storeGenerated(archive, Buffer.alloc(0))).rejects.toThrow(refused("upstream_error"));
  await expect(storeGenerated(archive, pieces(Buffer.alloc(0)))).rejects.toThrow(refused("upstream_error"));
  await expect(storeGenerated(archive, broken())).rejects.toThrow("the provider broke off");
  archive.clock.later(2 * minutesMs);
  await archive.files.expire();
  expect(await archive.records("files")).toEqual([]);
  expect(await archive.objects()).toEqual([]);
});

test("storing ends with the call and leaves nothing", async () => {
  const archive = await startArchive();
  const ending = new AbortController();
  async function* stuck() {
    yield pngOf(1_000);
    ending.abort(new Error("the caller disconnected"));
    await new Promise(() => {});
  }
  await expect(storeGenerated(archive, stuck(), { signal: ending.signal })).rejects.toThrow("the caller disconnected");
  await expect(storeGenerated(archive, pngOf(), { signal: ending.signal })).rejects.toThrow("the caller disconnected");
  archive.clock.later(2 * minutesMs);
  await archive.files.expire();
  expect(await archive.records("files")).toEqual([]);
  expect(await archive.objects()).toEqual([]);
});

test("a file expires after exactly 24 hours and stays expired; an unknown id is not found", async () => {
  const archive = await startArchive();
  const { generated } = archive.files;
  const { id } = await storeGenerated(archive, pngOf());
  archive.clock.later(dayMs - minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 0, removed: 0 });
  expect(await generated.find(id)).toMatchObject({ id });
  archive.clock.later(minutesMs);
  expect(await generated.find(id)).toBe("expired");
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  expect(await archive.objects()).toEqual([]);
  archive.clock.later(1_000 * dayMs);
  await archive.files.expire();
  expect(await generated.find(id)).toBe("expired");
  expect(await generated.find("file_none")).toBeUndefined();
  await expect(generated.open(id, undefined, forever)).rejects.toThrow(refused("file_expired"));
});

test("deleted files of a failed attempt leave no record", async () => {
  const archive = await startArchive();
  const stored = await Promise.all([
    storeGenerated(archive, pngOf()),
    storeGenerated(archive, pngOf()),
    storeGenerated(archive, wavOf(100)),
  ]);
  const [first, second, third] = stored.map(({ id }) => id) as [string, string, string];
  await archive.files.generated.delete([first, second]);
  await archive.files.generated.delete([first]);
  await archive.files.generated.delete([]);
  expect(await archive.files.generated.find(first)).toBeUndefined();
  expect(await archive.objects()).toEqual([`files/${third}`]);
  expect(await archive.records("files")).toHaveLength(1);
});

test("a file that crashed while being stored leaves nothing", async () => {
  const archive = await startArchive();
  const { id } = await storeGenerated(archive, pngOf());
  const records = archive.mongo.connection.collection<{ _id: string }>("files");
  const dueAt = new Date(archive.clock.now() + 2 * hourMs);
  await records.updateOne({ _id: id }, { $set: { status: "pending", announced: false, dueAt } });
  expect(await archive.files.generated.find(id)).toBeUndefined();
  archive.clock.later(2 * hourMs);
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  expect(await archive.records("files")).toEqual([]);
  expect(await archive.objects()).toEqual([]);
});

test("the provider job of a call is stored for a day", async () => {
  const archive = await startArchive();
  const { generated } = archive.files;
  expect(await generated.findProviderJob("req_1")).toBeUndefined();
  await generated.storeProviderJob("req_1", { upstream: "fal", job: "a" });
  await generated.storeProviderJob("req_1", { upstream: "replicate", job: "b" });
  expect(await archive.another().generated.findProviderJob("req_1")).toEqual({ upstream: "replicate", job: "b" });
  const indexes = await archive.mongo.connection.collection("generations").indexes();
  expect(indexes).toContainEqual(expect.objectContaining({ key: { expiresAt: 1 }, expireAfterSeconds: 0 }));
  archive.clock.later(dayMs);
  expect(await generated.findProviderJob("req_1")).toBeUndefined();
});

test("a slow reader gets the whole file", async () => {
  const archive = await startArchive();
  const clock = createManualClock(Date.now());
  const { generated } = archive.another({ clock });
  const body = wavOf(3_000_000);
  const { id } = await storeGenerated(archive, body);
  const got: Buffer[] = [];
  for await (const chunk of await generated.open(id, undefined, forever)) {
    clock.advance(20_000);
    got.push(chunk);
  }
  expect(Buffer.concat(got).equals(body)).toBe(true);
  expect(clock.pending()).toBe(0);
});

test("a reader who stops releases the connection to storage", async () => {
  const archive = await startArchive();
  const clock = createManualClock(Date.now());
  const { generated } = archive.another({ clock });
  const { id } = await storeGenerated(archive, wavOf(9 * mib));
  const leaving = new AbortController();
  const chunks = await generated.open(id, undefined, leaving.signal);
  const reading = all(chunks);
  reading.catch(() => undefined);
  leaving.abort(new Error("disconnected"));
  await expect(reading).rejects.toThrow("disconnected");
  for await (const _ of await generated.open(id, undefined, forever)) break;
  expect(clock.pending()).toBe(0);
});
