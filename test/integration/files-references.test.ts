import { expect, test } from "vitest";
import {
  type Archive,
  dayMs,
  forever,
  pngOf,
  refused,
  sent,
  startArchive,
  upload,
  wavOf,
} from "../support/files-setup.ts";

const ref = (id: string, param: string, kind?: "image" | "audio") => ({ id, param, kind });

test("check returns the size and type of each upload in a request, once", async () => {
  const archive = await startArchive();
  const image = await upload(archive, pngOf(500));
  const sound = await upload(archive, wavOf(900));
  const refs = [
    ref(image.id, "input.image", "image"),
    ref(sound.id, "input.voice"),
    ref(image.id, "input.mask", "image"),
  ];
  const found = await archive.files.uploads.check(archive.account, refs);
  expect([...found.entries()]).toMatchObject([
    [image.id, { bytes: 500, mime: "image/png", kind: "image" }],
    [sound.id, { bytes: 900, mime: "audio/wav", kind: "audio" }],
  ]);
  expect((await archive.files.uploads.check(archive.account, [])).size).toBe(0);
});

const unusable: Readonly<Record<string, [string, (archive: Archive) => Promise<string>]>> = {
  "that is not there": ["upload_not_found", async () => "upl_none"],
  "of another account": [
    "upload_not_found",
    async (archive) => {
      const other = await archive.money.createAccount({ name: "other" });
      await archive.money.credit(other.id, { amountNanoUsd: 1_000n, idempotencyKey: "1" });
      return (await upload({ ...archive, ask: () => ({ ...archive.ask(), account: other.id }) }, pngOf())).id;
    },
  ],
  "that is still received": [
    "upload_not_found",
    async ({ files, ask }) => (await files.uploads.begin({ ...ask(), maxBytes: 9 })).id,
  ],
  "that is pending": ["invalid_value", async (archive) => (await sent(archive, pngOf(), "image/png")).id],
  "that has expired": [
    "upload_expired",
    async (archive) => {
      const { id } = await upload(archive, pngOf());
      archive.clock.later(dayMs);
      return id;
    },
  ],
  "that was deleted": [
    "upload_deleted",
    async (archive) => {
      const { id } = await upload(archive, pngOf());
      await archive.files.uploads.delete(archive.account, id);
      return id;
    },
  ],
  "of another kind": ["invalid_value", async (archive) => (await upload(archive, wavOf(500))).id],
};

test.for(Object.entries(unusable))("an upload %s is refused, naming the field", async ([, [code, make]]) => {
  const archive = await startArchive();
  const refs = [ref(await make(archive), "messages[0].content[1].image_url.url", "image")];
  const error = refused(code, "messages[0].content[1].image_url.url");
  await expect(archive.files.uploads.check(archive.account, refs)).rejects.toThrow(error);
  await expect(archive.files.uploads.resolve(archive.account, refs, forever)).rejects.toThrow(error);
});

test("a provider gets the bytes, but not more than it accepts", async () => {
  const archive = await startArchive();
  const body = wavOf(300_000);
  const { id } = await upload(archive, body);
  const files = await archive.files.uploads.resolve(archive.account, [ref(id, "input.audio")], forever);
  const file = files.get(id);
  expect(file).toMatchObject({ id, param: "input.audio", mime: "audio/wav", kind: "audio", bytes: 300_000 });
  expect((await file?.read(300_000))?.equals(body)).toBe(true);
  await expect(file?.read(299_999)).rejects.toThrow(refused("invalid_value", "input.audio"));
  await archive.files.uploads.delete(archive.account, id);
  await expect(file?.read(300_000)).rejects.toThrow(refused("upload_expired", "input.audio"));
});

const endpoints = [
  [undefined, false],
  ["http://127.0.0.1:9000", false],
  ["http://minio:9000", false],
  ["https://10.1.2.3", false],
  ["https://files.example.com/s3", true],
] as const;

test.for(endpoints)("with the public address %s a provider gets a link: %s", async ([endpoint, linked]) => {
  const archive = await startArchive();
  const { id } = await upload(archive, pngOf());
  const files = archive.another({ env: { S3_PUBLIC_ENDPOINT: endpoint } });
  const { link } = (await files.uploads.resolve(archive.account, [ref(id, "input")], forever)).get(id) ?? {};
  const start = `https://files.example.com/s3/${archive.stores.S3_BUCKET}/uploads/${id}?`;
  expect(link?.startsWith(start)).toBe(linked || undefined);
  expect(link && new URL(link).searchParams.get("X-Amz-Expires")).toBe(linked ? "3600" : undefined);
});

test("callers' links have the public address", async () => {
  const archive = await startArchive();
  const port = new URL(archive.stores.S3_ENDPOINT).port;
  const files = archive.another({ env: { S3_PUBLIC_ENDPOINT: `http://localhost:${port}` } });
  const { url } = await upload({ ...archive, files }, pngOf());
  expect(url).toMatch(`http://localhost:${port}/`);
  expect((await fetch(url as string)).status).toBe(200);
});

test("reading ends with the signal", async () => {
  const archive = await startArchive();
  const { id } = await upload(archive, pngOf());
  const leaving = new AbortController();
  const files = await archive.files.uploads.resolve(archive.account, [ref(id, "input")], leaving.signal);
  leaving.abort(new Error("nobody"));
  await expect(files.get(id)?.read(1_000)).rejects.toThrow("nobody");
});
