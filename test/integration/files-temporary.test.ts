import { expect, test } from "vitest";
import { type Archive, dayMs, forever, startArchive, wavOf } from "../support/files-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

const sound = wavOf(100_000);

const type = { mime: "audio/wav", kind: "audio" } as const;

const fileOf = (content = sound) => ({
  type,
  bytes: content.length,
  body: (async function* () {
    yield content;
  })(),
});

const broken = () => ({
  type,
  bytes: sound.length,
  body: (async function* () {
    yield sound.subarray(0, 50_000);
    throw new Error("the disk failed");
  })(),
});

const store = async ({ files, ask }: Pick<Archive, "files" | "ask">) => {
  const [id = ""] = await files.temporary.store(ask(), [fileOf()]);
  return id;
};

const refTo = (id: string) => [{ id, param: "file" }];

test("a temporary file is free and in no list; its account's calls read it until it is deleted", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const id = await store(archive);
  expect(await files.uploads.list(account, { limit: 10 })).toEqual({ data: [], hasMore: false });
  await expect(files.uploads.find(account, id)).rejects.toMatchObject({ code: "upload_not_found" });
  await expect(files.uploads.delete(account, id)).rejects.toMatchObject({ code: "upload_not_found" });
  const resolved = await files.uploads.resolve(account, refTo(id), forever);
  expect((await resolved.get(id)?.read(sound.length))?.equals(sound)).toBe(true);
  await expect(files.uploads.check("acc_other", refTo(id))).rejects.toMatchObject({ code: "upload_not_found" });
  await archive.expectMoney(0n);

  await files.temporary.delete([id]);
  await files.temporary.delete([id]);
  await expect(files.uploads.check(account, refTo(id))).rejects.toMatchObject({ code: "upload_not_found" });
  await archive.expectNoTrace();
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
  await archive.expectNoTrace();
});

test("a call has several files, which are deleted together", async () => {
  const archive = await startArchive();
  const { files, account } = archive;
  const contents = [1, 2, 3].map((seconds) => wavOf(seconds * 1_000));
  const ids = await files.temporary.store(archive.ask(), contents.map(fileOf));
  const resolved = await files.uploads.resolve(account, ids.flatMap(refTo), forever);
  const read = await Array.fromAsync(ids, (id) => resolved.get(id)?.read(sound.length));
  expect(read).toEqual(contents);
  await files.temporary.delete(ids);
  await archive.expectNoTrace();
});

test("if one file breaks off none of its call remains", async () => {
  const archive = await startArchive();
  const { files, ask } = archive;
  await expect(files.temporary.store(ask(), [fileOf(), broken(), fileOf()])).rejects.toThrow("disk");
  await files.expire();
  await archive.expectNoTrace();
});
