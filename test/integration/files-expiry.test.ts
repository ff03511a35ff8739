import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { CreateMultipartUploadCommand } from "@aws-sdk/client-s3";
import { expect, onTestFinished, test } from "vitest";
import {
  type Archive,
  dayMs,
  mib,
  minutesMs,
  pieces,
  pngOf,
  priceOf,
  refused,
  sent,
  startArchive,
  storageCharge,
  upload,
  wavOf,
} from "../support/files-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { eventually } from "../support/service.ts";

const uploadsOf = ({ mongo }: Archive) => mongo.connection.collection<{ _id: string }>("uploads");

test("an upload expires after exactly 24 hours, whether or not expiry has run", async () => {
  const archive = await startArchive();
  const clock = createManualClock(Date.now());
  const files = archive.another({ clock });
  const { id, requestId } = await upload({ ...archive, files }, pngOf());
  clock.advance(dayMs - 1);
  expect(await files.uploads.find(archive.account, id)).toMatchObject({ status: "active" });
  expect(await files.expire()).toEqual({ expired: 0, removed: 0 });
  clock.advance(1);
  const gone = refused("upload_expired");
  await expect(files.uploads.find(archive.account, id)).rejects.toThrow(gone);
  await expect(files.uploads.complete(archive.account, id)).rejects.toThrow(gone);
  await expect(files.uploads.delete(archive.account, id)).rejects.toThrow(gone);
  expect(await files.uploads.findByRequest(archive.account, requestId)).toMatchObject({ status: "expired", url: null });
  expect(await archive.objects()).toHaveLength(1);
  expect(await files.expire()).toEqual({ expired: 1, removed: 1 });
  await archive.expectNothing(priceOf(pngOf().length));
});

test("an expired upload stays 410", async () => {
  const archive = await startArchive();
  const { id } = await upload(archive, pngOf());
  archive.clock.later(dayMs);
  await archive.files.expire();
  archive.clock.later(1_000 * dayMs);
  expect(await archive.files.expire()).toEqual({ expired: 0, removed: 0 });
  await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused("upload_expired"));
});

test("an upload in parts that is never completed expires, and its hold and parts are released", async () => {
  const archive = await startArchive();
  const { id, requestId } = await sent(archive, wavOf(5_000));
  archive.clock.later(70 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 0, removed: 0 });
  archive.clock.later(2 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  await archive.expectNothing();
  expect(await archive.money.findEntry(requestId)).toMatchObject({
    costNanoUsd: 0n,
    request: { error: "upload_expired" },
  });
  await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused("upload_expired"));
});

test("an upload that crashed before its first byte leaves nothing, not even a record", async () => {
  const archive = await startArchive();
  await archive.files.uploads.begin({ ...archive.ask(), maxBytes: mib });
  archive.clock.later(22 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  await archive.expectNoTrace();
});

test("a multipart upload whose id was never recorded is aborted", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, wavOf(5_000));
  await uploadsOf(archive).updateOne({ _id: id }, { $set: { announced: false }, $unset: { "multipart.uploadId": "" } });
  archive.clock.later(72 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  await archive.expectNoTrace();
});

test("a charge without an active file, as after a crash, is refunded", async () => {
  const archive = await startArchive();
  const body = wavOf(5_000);
  await archive.money.charge(storageCharge(archive, await sent(archive, body)));
  await archive.expectMoney(priceOf(body.length));
  archive.clock.later(72 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  await archive.expectNothing();
  await archive.files.expire();
  await archive.expectNothing();
});

test("the sweeper ends the hold of an active upload after a crash, with its charge", async () => {
  const archive = await startArchive();
  const body = pngOf();
  const money = { ...archive.money, settle: () => Promise.reject(new Error("died here")) };
  const { id } = await upload({ ...archive, files: archive.another({ money }) }, body);
  expect(await archive.money.account(archive.account)).toMatchObject({ openHolds: 1 });
  archive.clock.later(21 * minutesMs);
  await archive.money.sweep(async () => false);
  await archive.expectMoney(priceOf(body.length));
  expect(await archive.files.uploads.find(archive.account, id)).toMatchObject({ status: "active" });
});

test("an upload whose hold the sweeper released cannot be charged and fails", async () => {
  const archive = await startArchive();
  const started = await sent(archive, wavOf(5_000));
  const { kind: _, ...charge } = storageCharge(archive, started);
  await archive.money.charge({ ...charge, costNanoUsd: 0n, status: "failed" });
  const completed = archive.files.uploads.complete(archive.account, started.id);
  await expect(completed).rejects.toMatchObject({ status: 410 });
  await archive.expectNothing();
});

test("a record that cannot be released does not delay the others", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, wavOf(1_000));
  const broken = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: 10 });
  const requestId = (await archive.records()).find(({ _id }) => _id === broken.id)?.["requestId"];
  await uploadsOf(archive).updateOne({ _id: broken.id }, { $set: { requestId: "no.request" } });
  archive.clock.later(72 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 2, removed: 1 });
  expect(await archive.files.expire()).toEqual({ expired: 0, removed: 0 });
  await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused("upload_expired"));
  await uploadsOf(archive).updateOne({ _id: broken.id }, { $set: { requestId } });
  archive.clock.later(minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 0, removed: 1 });
  await archive.expectNothing();
});

test("a batch that cannot be released does not block the next", async () => {
  const archive = await startArchive();
  const { id } = await sent(archive, wavOf(1_000));
  const [record] = await archive.records();
  const dueAt = new Date(archive.clock.now());
  const broken = Array.from({ length: 200 }, (_, at) => ({
    ...record,
    _id: `upl_b${at}`,
    requestId: `no.${at}`,
    multipart: { ...(record?.["multipart"] as object), slot: 100 + at, accountSlot: 100 + at },
    dueAt,
  }));
  await uploadsOf(archive).insertMany(broken as { _id: string }[]);
  archive.clock.later(72 * minutesMs);
  expect(await archive.files.expire()).toEqual({ expired: 200, removed: 0 });
  expect(await archive.files.expire()).toEqual({ expired: 1, removed: 1 });
  await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused("upload_expired"));
  await archive.expectNothing();
});

test("multipart uploads older than a day are aborted", async () => {
  const archive = await startArchive();
  const { s3, stores, clock } = archive;
  const begin = (Key: string) => s3.send(new CreateMultipartUploadCommand({ Bucket: stores.S3_BUCKET, Key }));
  await begin("uploads/upl_forgotten");
  await begin("uploads/upl_forgotten");
  await begin("else/where");
  await archive.files.expire();
  expect(await archive.multiparts()).toHaveLength(3);
  clock.later(dayMs + minutesMs);
  await archive.files.expire();
  expect(await archive.multiparts()).toEqual(["else/where"]);
});

test("one run handles several batches", async () => {
  const archive = await startArchive();
  const { id } = await upload(archive, pngOf());
  const [record] = await archive.records();
  const copies = Array.from({ length: 450 }, (_, at) => ({
    ...record,
    _id: `upl_copy${at}`,
    requestId: `req_copy${at}`,
  }));
  await archive.mongo.connection.collection<{ _id: string }>("uploads").insertMany(copies as { _id: string }[]);
  archive.clock.later(dayMs);
  expect(await archive.files.expire()).toEqual({ expired: 451, removed: 451 });
  await expect(archive.files.uploads.find(archive.account, id)).rejects.toThrow(refused("upload_expired"));
  await archive.expectNothing(priceOf(pngOf().length));
});

test("storage that hangs times out after 15 seconds; an object that it creates later is deleted by expiry", async () => {
  const archive = await startArchive();
  const clock = createManualClock(Date.now());
  const wire = await slowWire(archive.stores.S3_ENDPOINT, 80_000);
  const files = archive.another({ clock, env: { S3_ENDPOINT: wire.url } });
  const body = wavOf(100_000);
  const receiving = await files.uploads.begin({ ...archive.ask(), maxBytes: body.length });
  const stored = receiving.store({ bytes: body.length, body: pieces(body, 50_000) });
  stored.catch(() => undefined);
  await wire.holding;
  await eventually(() => clock.pending() === 2);
  clock.advance(14_999);
  expect(clock.pending()).toBe(2);
  clock.advance(1);
  await expect(stored).rejects.toThrow(refused("no_capacity"));
  await archive.expectNothing();
  wire.release();
  await eventually(async () => (await archive.objects()).length === 1);
  clock.advance(5 * minutesMs);
  await files.expire();
  clock.advance(17 * minutesMs);
  await files.expire();
  await archive.expectNoTrace();
});

/**
 * A proxy to storage: bytes of the first connection beyond `bytes` are delayed, and delivered even if the sender has
 * disconnected.
 */
async function slowWire(endpoint: string, bytes: number) {
  const { hostname, port } = new URL(endpoint);
  const holding = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let connections = 0;
  const server = createServer((client) => {
    const slow = connections++ === 0;
    const storage = connect({ host: hostname, port: Number(port) });
    storage.on("data", (data) => client.writable && client.write(data));
    for (const socket of [client, storage]) socket.on("error", () => undefined);
    storage.on("close", () => client.destroy());
    let sent = 0;
    let before = Promise.resolve();
    client.on("data", (data) => {
      sent += data.length;
      if (slow && sent > bytes) {
        holding.resolve();
        before = before.then(() => released.promise);
      }
      before = before.then(() => void storage.write(data));
    });
    client.on("close", () => void before.then(() => storage.end()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port: own } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${own}`, holding: holding.promise, release: released.resolve };
}
