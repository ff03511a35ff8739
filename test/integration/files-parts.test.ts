import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import {
  dayMs,
  mib,
  partSize,
  pngOf,
  priceOf,
  refused,
  sendParts,
  sent,
  startArchive,
  storageCharge,
  wavOf,
} from "../support/files-setup.ts";
import { eventually } from "../support/service.ts";

const minuteMs = 60_000;

test("an upload in parts is pending, with a link for each part, its price held and nothing charged", async () => {
  const archive = await startArchive();
  const { files, account, money } = archive;
  const bytes = 2 * partSize + 10;
  const started = await files.uploads.start({ ...archive.ask(), bytes, mime: "audio/x-wav" });
  expect(started).toMatchObject({
    mime: "audio/wav",
    kind: "audio",
    bytes,
    status: "pending",
    url: null,
    costNanoUsd: priceOf(bytes),
    expiresAt: started.createdAt + 70 * minuteMs,
    multipart: {
      partSize,
      linksExpireAt: started.createdAt + 60 * minuteMs,
      parts: [
        { partNumber: 1, bytes: partSize },
        { partNumber: 2, bytes: partSize },
        { partNumber: 3, bytes: 10 },
      ],
    },
  });
  expect(await money.account(account)).toMatchObject({ heldNanoUsd: priceOf(bytes), openHolds: 1 });
  expect(await archive.multiparts()).toEqual([`uploads/${started.id}`]);
  expect(await files.uploads.find(account, started.id)).toEqual(started);
});

test("the link of a part accepts exactly its size, has no checksum, and expires after an hour", async () => {
  const archive = await startArchive();
  const { multipart } = await archive.files.uploads.start({ ...archive.ask(), bytes: 1_000, mime: "audio/wav" });
  const url = new URL(multipart?.parts[0]?.url as string);
  expect([...url.searchParams.keys()].filter((name) => /checksum|crc32|sdk/i.test(name))).toEqual([]);
  expect(url.searchParams.get("X-Amz-SignedHeaders")).toBe("content-length;host");
  expect(url.searchParams.get("X-Amz-Expires")).toBe("3600");
  const put = async (bytes: number) => (await fetch(url, { method: "PUT", body: new Uint8Array(bytes) })).status;
  expect([await put(1_001), await put(999), await put(0), await put(1_000)]).toEqual([403, 403, 403, 200]);
});

test("parts sent in any order, one of them twice, become the file, charged once", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const body = wavOf(2 * partSize + 999);
  const started = await files.uploads.start({ ...archive.ask(), bytes: body.length, mime: "audio/wav" });
  await sendParts(started, body, [3]);
  await sendParts(started, wavOf(body.length + 4).subarray(4), [1]);
  await Promise.all([sendParts(started, body, [2]), sendParts(started, body, [1])]);
  const made = await files.uploads.complete(account, started.id);
  expect(made).toMatchObject({
    id: started.id,
    status: "active",
    bytes: body.length,
    costNanoUsd: priceOf(body.length),
  });
  expect(made).not.toHaveProperty("multipart");
  const read = await fetch(made.url as string);
  expect(Buffer.from(await read.arrayBuffer()).equals(body)).toBe(true);
  expect(await archive.multiparts()).toEqual([]);
  await archive.expectMoney(priceOf(body.length));
  expect(await files.uploads.complete(account, started.id)).toMatchObject({ ...made, url: expect.any(String) });
  await archive.expectMoney(priceOf(body.length));
});

test("an upload in parts lives for 24 hours from its completion, and is listed until its end", async () => {
  const archive = await startArchive();
  const { files, account, clock } = archive;
  const body = wavOf(1_000);
  const { id, createdAt } = await sent(archive, body, "audio/wav");
  const listed = async () => (await files.uploads.list(account, { limit: 10 })).data.map((each) => each.id);
  clock.later(65 * minuteMs);
  const made = await files.uploads.complete(account, id);
  expect(made).toMatchObject({ status: "active", createdAt });
  expect(made.expiresAt - createdAt).toBeGreaterThanOrEqual(65 * minuteMs + dayMs);
  clock.later(dayMs - minuteMs);
  await files.expire();
  expect([await files.uploads.find(account, id), await listed()]).toMatchObject([{ status: "active" }, [id]]);
  clock.later(minuteMs);
  await expect(files.uploads.find(account, id)).rejects.toThrow(refused("upload_expired"));
  expect(await listed()).toEqual([]);
  await files.expire();
  await archive.expectNothing(priceOf(body.length));
});

test("parts that are missing or of a wrong size are named, and the upload stays pending until they are sent", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const body = wavOf(3 * partSize);
  const started = await files.uploads.start({ ...archive.ask(), bytes: body.length, mime: "audio/wav" });
  await sendParts(started, body, [2]);
  // Not every storage refuses what a link was not signed for.
  const at = { Bucket: archive.stores.S3_BUCKET, Key: `uploads/${started.id}` };
  const UploadId = await archive.uploadIdOf(started.id);
  await archive.s3.send(new UploadPartCommand({ ...at, UploadId, PartNumber: 3, Body: Buffer.alloc(1_000) }));
  await expect(files.uploads.complete(account, started.id)).rejects.toMatchObject({
    code: "invalid_value",
    param: "parts",
    message: expect.stringContaining(`part 1 is missing, part 3 has 1000 bytes instead of ${partSize}`),
  });
  expect(await files.uploads.find(account, started.id)).toMatchObject({ status: "pending" });
  await sendParts(started, body, [1, 3]);
  expect(await files.uploads.complete(account, started.id)).toMatchObject({ status: "active" });
  await archive.expectMoney(priceOf(body.length));
});

test("sizes over 200 MB, of 0 or of half a byte, and other types are refused at the start", async () => {
  const archive = await startArchive();
  const start = (bytes: number, mime = "video/mp4") => archive.files.uploads.start({ ...archive.ask(), bytes, mime });
  await expect(start(200 * mib + 1)).rejects.toThrow(refused("request_too_large", "bytes"));
  for (const bytes of [0, -1, 1.5, Number.NaN])
    await expect(start(bytes)).rejects.toThrow(refused("invalid_value", "bytes"));
  for (const mime of ["image/svg+xml", "text/html", "application/pdf", "", "video"])
    await expect(start(1, mime)).rejects.toThrow(refused("unsupported_media_type", "mime"));
  expect(await archive.records()).toEqual([]);
  const largest = await start(200 * mib, "VIDEO/MP4; codecs=avc1");
  expect(largest.multipart?.parts.map(({ bytes }) => bytes)).toEqual([...Array(12).fill(partSize), 8 * mib]);
  await archive.files.uploads.delete(archive.account, largest.id);
  await archive.expectNothing();
});

test("a declared type that the bytes contradict is corrected, in the record and in responses", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, pngOf(5_000), "video/mp4");
  const made = await archive.files.uploads.complete(archive.account, id);
  expect(made).toMatchObject({ mime: "image/png", kind: "image", status: "active" });
  expect((await fetch(made.url as string)).headers.get("content-type")).toBe("image/png");
});

test("an assembled file of another type is deleted", async () => {
  const archive = await startArchive();
  const { id, requestId } = await sent(archive, Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"), "image/png");
  const complete = () => archive.files.uploads.complete(archive.account, id);
  await expect(complete()).rejects.toThrow(refused("unsupported_media_type"));
  await expect(complete()).rejects.toThrow(refused("upload_deleted"));
  expect(await archive.money.findEntry(requestId)).toMatchObject({
    kind: "storage",
    costNanoUsd: 0n,
    request: { status: "failed", error: "unsupported_media_type" },
  });
  await archive.expectNothing();
});

test("a completion can be repeated after a crash between storage and the record", async () => {
  const archive = await startArchive();
  const body = wavOf(partSize + 1);
  const { id } = await sent(archive, body);
  const UploadId = await archive.uploadIdOf(id);
  const at = { Bucket: archive.stores.S3_BUCKET, Key: `uploads/${id}`, UploadId };
  const { Parts } = await archive.s3.send(new ListPartsCommand(at));
  await archive.s3.send(new CompleteMultipartUploadCommand({ ...at, MultipartUpload: { Parts } }));
  expect(await archive.files.uploads.complete(archive.account, id)).toMatchObject({ status: "active" });
  await archive.expectMoney(priceOf(body.length));
});

test("a completion can be repeated after a crash between the charge and the record, without another charge", async () => {
  const archive = await startArchive();
  const body = wavOf(1_000_000);
  const started = await sent(archive, body);
  await archive.money.capture(storageCharge(archive, started));
  const made = await archive.files.uploads.complete(archive.account, started.id);
  expect(made).toMatchObject({ status: "active", costNanoUsd: priceOf(body.length) });
  await archive.expectMoney(priceOf(body.length));
});

test("an object of another size than declared is deleted", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, wavOf(1_000));
  const UploadId = await archive.uploadIdOf(id);
  const at = { Bucket: archive.stores.S3_BUCKET, Key: `uploads/${id}` };
  await archive.s3.send(new AbortMultipartUploadCommand({ ...at, UploadId }));
  await archive.s3.send(new PutObjectCommand({ ...at, Body: wavOf(1_001) }));
  await expect(archive.files.uploads.complete(archive.account, id)).rejects.toThrow(refused("invalid_value", "bytes"));
  await archive.expectNothing();
});

test("an upload whose parts are missing in storage ends", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, wavOf(1_000));
  const UploadId = await archive.uploadIdOf(id);
  await archive.s3.send(
    new AbortMultipartUploadCommand({ Bucket: archive.stores.S3_BUCKET, Key: `uploads/${id}`, UploadId }),
  );
  await expect(archive.files.uploads.complete(archive.account, id)).rejects.toThrow(refused("upload_deleted"));
  await archive.expectNothing();
});

test("a completion waits for a file that another completion is assembling", async () => {
  const archive = await startArchive();
  const body = wavOf(1_000);
  const { id } = await sent(archive, body);
  const records = archive.mongo.connection.collection<{ _id: string }>("uploads");
  const UploadId = await archive.uploadIdOf(id);
  const at = { Bucket: archive.stores.S3_BUCKET, Key: `uploads/${id}` };
  await archive.s3.send(new AbortMultipartUploadCommand({ ...at, UploadId }));
  const completingUntil = new Date(archive.clock.now() + 2 * minuteMs);
  await records.updateOne({ _id: id }, { $set: { "multipart.completingUntil": completingUntil } });
  let looked = 0;
  const clock = {
    ...archive.clock,
    after: (ms: number, fire: () => void) => (looked++, archive.clock.after(ms, fire)),
  };
  const completed = archive.another({ clock }).uploads.complete(archive.account, id);
  await eventually(() => looked > 2);
  await archive.s3.send(new PutObjectCommand({ ...at, Body: body }));
  expect(await completed).toMatchObject({ status: "active" });
  await archive.expectMoney(priceOf(body.length));
});

test("after 70 minutes an upload cannot be completed", async () => {
  const archive = await startArchive();
  const { uploads } = archive.files;
  const { id } = await sent(archive, wavOf(1_000));
  archive.clock.later(69 * minuteMs);
  expect(await uploads.find(archive.account, id)).toMatchObject({ status: "pending" });
  archive.clock.later(minuteMs);
  await expect(uploads.complete(archive.account, id)).rejects.toThrow(refused("upload_expired"));
  await expect(uploads.find(archive.account, id)).rejects.toThrow(refused("upload_expired"));
  const { data } = await uploads.list(archive.account, { limit: 1 });
  expect(data).toMatchObject([{ id, status: "expired", url: null, costNanoUsd: 0n }]);
  expect(data[0]).not.toHaveProperty("multipart");
});
