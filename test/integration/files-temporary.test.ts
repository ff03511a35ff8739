import { expect, test } from "vitest";
import { type Archive, dayMs, forever, startArchive, wavOf } from "../support/files-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

const sound = wavOf(100_000);

const store = ({ files, ask }: Pick<Archive, "files" | "ask">, bytes = sound) =>
  files.temporary.store(ask(), {
    bytes: bytes.length,
    head: bytes.subarray(0, 4_096),
    body: (async function* () {
      yield bytes;
    })(),
  });

const refTo = (id: string) => [{ id, param: "file" }];

test("a temporary file is free and in no list; its account's calls read it until it is deleted", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const { id, mime, kind } = await store(archive);
  expect({ mime, kind }).toEqual({ mime: "audio/wav", kind: "audio" });
  expect(await files.uploads.list(account, { limit: 10 })).toEqual({ data: [], hasMore: false });
  await expect(files.uploads.find(account, id)).rejects.toMatchObject({ code: "upload_not_found" });
  await expect(files.uploads.delete(account, id)).rejects.toMatchObject({ code: "upload_not_found" });
  const resolved = await files.uploads.resolve(account, refTo(id), forever);
  expect((await resolved.get(id)?.read(sound.length))?.equals(sound)).toBe(true);
  await expect(files.uploads.check("acc_other", refTo(id))).rejects.toMatchObject({ code: "upload_not_found" });
  await archive.expectMoney(0n);

  await files.temporary.delete(id);
  await files.temporary.delete(id);
  await expect(files.uploads.check(account, refTo(id))).rejects.toMatchObject({ code: "upload_not_found" });
  expect(await archive.records()).toEqual([]);
  await archive.expectNothing();
});

test("the file of a process that died expires after a day, without a trace", async () => {
  const archive = await startArchive();
  const clock = createManualClock(Date.now());
  const files = archive.another({ clock });
  await store({ ...archive, files });
  clock.advance(dayMs - 1);
  expect(await files.expire()).toEqual({ expired: 0, removed: 0 });
  clock.advance(1);
  expect(await files.expire()).toEqual({ expired: 1, removed: 1 });
  expect(await archive.records()).toEqual([]);
  await archive.expectNothing();
});

test("a file that breaks off is removed by expiry, and one of no type is not stored", async () => {
  const archive = await startArchive();
  const { files, ask } = archive;
  const body = (async function* () {
    yield sound.subarray(0, 50_000);
    throw new Error("the disk failed");
  })();
  const head = sound.subarray(0, 4_096);
  await expect(files.temporary.store(ask(), { bytes: sound.length, head, body })).rejects.toThrow("disk");
  await expect(store(archive, Buffer.from("Hello"))).rejects.toMatchObject({ code: "unsupported_media_type" });
  await files.expire();
  expect(await archive.records()).toEqual([]);
  await archive.expectNothing();
});
