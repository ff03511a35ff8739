import { expect, test } from "vitest";
import {
  pngOf,
  priceOf,
  refused,
  sendParts,
  sent,
  startArchive,
  storageCharge,
  upload,
  wavOf,
} from "../support/files-setup.ts";

test("a deleted active upload is 410 at once and its charge is not refunded", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const { id, url, requestId } = await upload(archive, pngOf());
  await files.uploads.delete(account, id);
  expect((await fetch(url as string)).status).toBe(404);
  await expect(files.uploads.find(account, id)).rejects.toThrow(refused("upload_deleted"));
  await expect(files.uploads.complete(account, id)).rejects.toThrow(refused("upload_deleted"));
  await expect(files.uploads.delete(account, id)).rejects.toThrow(refused("upload_deleted"));
  expect(await files.uploads.findByRequest(account, requestId)).toMatchObject({ id, status: "deleted", url: null });
  await archive.expectNothing(priceOf(pngOf().length));
  expect(await files.expire()).toEqual({ expired: 0, removed: 0 });
});

test("a deleted pending upload loses its parts and hold at once, and its links stop working", async () => {
  const archive = await startArchive();
  const { files, account, money } = archive;
  const body = wavOf(5_000);
  const started = await sent(archive, body);
  await files.uploads.delete(account, started.id);
  await archive.expectNothing();
  await expect(sendParts(started, body)).rejects.toThrow("404");
  await expect(files.uploads.complete(account, started.id)).rejects.toThrow(refused("upload_deleted"));
  await expect(files.uploads.delete(account, started.id)).rejects.toThrow(refused("upload_deleted"));
  expect(await money.findEntry(started.requestId)).toMatchObject({
    kind: "storage",
    costNanoUsd: 0n,
    request: { status: "cancelled", error: "upload_deleted" },
  });
  const { data } = await files.uploads.list(account, { limit: 5 });
  expect(data).toMatchObject([{ id: started.id, status: "deleted", costNanoUsd: 0n }]);
  await archive.expectNothing();
});

test("deleting a pending upload refunds the charge of an interrupted completion", async () => {
  const archive = await startArchive();
  const started = await sent(archive, wavOf(5_000));
  await archive.money.capture(storageCharge(archive, started));
  await archive.files.uploads.delete(archive.account, started.id);
  expect(await archive.money.ledger(archive.account, { limit: 1 })).toMatchObject([{ kind: "refund" }]);
  await archive.expectNothing();
});
