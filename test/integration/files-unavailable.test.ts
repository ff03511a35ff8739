import { expect, test } from "vitest";
import {
  dayMs,
  forever,
  hourMs,
  mib,
  minutesMs,
  pieces,
  pngOf,
  priceOf,
  refused,
  sent,
  startArchive,
  storeGenerated,
  upload,
  wavOf,
} from "../support/files-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { openFaultyWire } from "../support/wire.ts";

/** An archive on a connection to storage that the test may break. */
async function startOnWire() {
  const stores = await testStores();
  const { url, server } = await openFaultyWire(stores.S3_ENDPOINT);
  return { server, ...(await startArchive({ stores: { ...stores, S3_ENDPOINT: url.origin } })) };
}

test("while storage is unavailable its use is 503 and free, a deletion is immediate, and remains go when it is back", async () => {
  const archive = await startOnWire();
  const { files, account, server, clock } = archive;
  const { uploads, generated } = files;
  await files.ping();
  const [kept, deleted] = [await upload(archive, pngOf()), await upload(archive, pngOf())];
  const pending = await sent(archive, wavOf(3_000));
  const [file, droppedFile] = [await storeGenerated(archive, pngOf()), await storeGenerated(archive, pngOf())];
  const reference = await uploads.resolve(account, [{ id: kept.id, param: "input" }], forever);
  server.stop();

  const refusedConnection = expect.objectContaining({ code: "ECONNRESET" });
  const unavailable = refused("no_capacity");
  const start = { ...archive.ask(), bytes: 1_000, mime: "image/png" };
  for (const [asked, error] of [
    [() => files.ping(), refusedConnection],
    [() => files.putBody("req_1", "{}"), refusedConnection],
    [() => files.getBody("req_1", forever), refusedConnection],
    [() => files.expireBodies(), refusedConnection],
    [() => upload(archive, pngOf()), unavailable],
    [() => uploads.start(start), unavailable],
    [() => uploads.complete(account, pending.id), unavailable],
    [() => reference.get(kept.id)?.read(1_000), unavailable],
    [() => storeGenerated(archive, pngOf()), unavailable],
    [() => storeGenerated(archive, pieces(wavOf(100_000))), unavailable],
    [() => generated.open(file.id, undefined, forever), unavailable],
  ] as const)
    await expect(asked()).rejects.toThrow(error);
  expect(await uploads.find(account, pending.id)).toMatchObject({ status: "pending" });
  await uploads.delete(account, deleted.id);
  await expect(uploads.find(account, deleted.id)).rejects.toThrow(refused("upload_deleted"));
  await generated.delete([droppedFile.id]);
  expect(await generated.find(droppedFile.id)).toBeUndefined();
  expect(await archive.money.account(account)).toMatchObject({ openHolds: 1 });
  clock.later(3 * minutesMs);
  await expect(files.expire()).rejects.toThrow(unavailable);

  server.restore();
  expect(await uploads.complete(account, pending.id)).toMatchObject({ status: "active" });
  clock.later(22 * minutesMs);
  await files.expire();
  const remaining = [`files/${file.id}`, ...[kept.id, pending.id].map((id) => `uploads/${id}`)];
  expect((await archive.objects()).toSorted()).toEqual(remaining.toSorted());
  expect(await archive.multiparts()).toEqual([]);
  const records = [...(await archive.records()), ...(await archive.records("files"))].map(({ _id }) => String(_id));
  expect(records.toSorted()).toEqual([file.id, kept.id, deleted.id, pending.id].toSorted());
  await archive.expectMoney(2n * priceOf(pngOf().length) + priceOf(3_000));
});

test("uploads expire while storage is unavailable; their objects are deleted when it is back", async () => {
  const archive = await startOnWire();
  const { files, account, server, clock } = archive;
  const active = await upload(archive, pngOf());
  const pending = await sent(archive, wavOf(3_000));
  server.stop();
  clock.later(dayMs);
  await expect(files.expire()).rejects.toThrow(refused("no_capacity"));
  for (const { id } of [active, pending])
    await expect(files.uploads.find(account, id)).rejects.toThrow(refused("upload_expired"));
  await archive.expectMoney(priceOf(pngOf().length));
  server.restore();
  clock.later(minutesMs);
  expect(await files.expire()).toEqual({ expired: 0, removed: 2 });
  await archive.expectNothing(priceOf(pngOf().length));
});

test("storage that stops in the middle of a file is 503, without a charge or a trace", async () => {
  const archive = await startOnWire();
  const { files, server, clock } = archive;
  const body = wavOf(8 * mib);
  const receiving = await files.uploads.begin({ ...archive.ask(), maxBytes: body.length });
  async function* stopping() {
    let at = 0;
    for await (const piece of pieces(body)) {
      if (at++ === 60) server.stop();
      yield piece;
    }
  }
  await expect(receiving.store({ bytes: body.length, body: stopping() })).rejects.toMatchObject({
    code: "no_capacity",
    retryAfterSeconds: 5,
  });
  await archive.expectMoney(0n);
  server.restore();
  clock.later(hourMs);
  await files.expire();
  await archive.expectNoTrace();
});

test("storage that hangs during a read times out after 15 seconds", async () => {
  const archive = await startOnWire();
  const clock = createManualClock(Date.now());
  const { generated } = archive.another({ clock });
  const { id } = await storeGenerated(archive, wavOf(30 * mib), { limitBytes: 30 * mib });
  const chunks = (await generated.open(id, undefined, forever))[Symbol.asyncIterator]();
  await chunks.next();
  archive.server.silence();
  let failed: unknown;
  const drain = async () => {
    while (!(await chunks.next()).done);
  };
  const reading = drain().catch((error: unknown) => {
    failed = error;
  });
  await eventually(() => {
    clock.advance(15_000);
    return failed !== undefined;
  });
  await reading;
  expect(failed).toMatchObject({ code: "no_capacity" });
});
