import { HeadObjectCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import { requestTooLarge } from "../../shared/errors.ts";
import {
  type Archive,
  dayMs,
  hourMs,
  mib,
  pieces,
  pngOf,
  priceOf,
  refused,
  startArchive,
  upload,
  wavOf,
} from "../support/files-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

test("a file is stored as its bytes are, charged once by its real size, and can be read by its link", async () => {
  const archive = await startArchive();
  const { files, account, money, clock } = archive;
  const body = wavOf(3 * mib + 5);
  const ask = archive.ask();
  const receiving = await files.uploads.begin({ ...ask, maxBytes: 95 * mib });
  expect(await money.account(account)).toMatchObject({ heldNanoUsd: priceOf(95 * mib), openHolds: 1 });
  const before = clock.now();
  const made = await receiving.store({ bytes: body.length, body: pieces(body, 10_000) });
  const cost = priceOf(body.length);
  expect(made).toMatchObject({
    id: expect.stringMatching(/^upl_[0-9A-Za-z]{24}$/),
    account,
    requestId: ask.requestId,
    mime: "audio/wav",
    kind: "audio",
    bytes: body.length,
    status: "active",
    costNanoUsd: cost,
    expiresAt: made.createdAt + dayMs,
  });
  expect(made.createdAt).toBeLessThanOrEqual(before);
  expect(made).not.toHaveProperty("multipart");
  const answer = await fetch(made.url as string);
  expect(answer.headers.get("content-type")).toBe("audio/wav");
  expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true);
  await archive.expectMoney(cost);
  expect(await money.findEntry(ask.requestId)).toMatchObject({
    kind: "storage",
    account,
    costNanoUsd: cost,
    request: { endpoint: "/v1/uploads", key: "key_test", status: "succeeded", shortfallNanoUsd: 0n },
  });
  expect(await files.uploads.find(account, made.id)).toMatchObject({ ...made, url: expect.any(String) });
  expect(await files.uploads.findByRequest(account, ask.requestId)).toMatchObject({ id: made.id });
});

test("the object has the detected type", async () => {
  const archive = await startArchive();
  const { id, mime, kind } = await upload(archive, pngOf());
  expect({ mime, kind }).toEqual({ mime: "image/png", kind: "image" });
  const head = await archive.s3.send(new HeadObjectCommand({ Bucket: archive.stores.S3_BUCKET, Key: `uploads/${id}` }));
  expect(head.ContentType).toBe("image/png");
});

test("a link lives for 15 minutes, or until the upload expires", async () => {
  const archive = await startArchive();
  const clock = createManualClock(Date.now());
  const files = archive.another({ clock });
  const { id, url } = await upload({ ...archive, files }, pngOf());
  const expires = (link: string | null) => Number(new URL(link as string).searchParams.get("X-Amz-Expires"));
  expect(expires(url)).toBe(900);
  clock.advance(dayMs - 60_000);
  expect(expires((await files.uploads.find(archive.account, id)).url)).toBe(60);
});

const page = Buffer.from("<!doctype html><html><script>alert(1)</script></html>");
const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
const documents = { html: page, svg: drawing, pdf: Buffer.from("%PDF-1.7\n%....\n"), text: Buffer.from("hello") };

test("documents are refused with 415, and leave nothing", async () => {
  const archive = await startArchive();
  for (const body of Object.values(documents))
    await expect(upload(archive, body)).rejects.toThrow(refused("unsupported_media_type"));
  await archive.expectNoTrace();
});

test("a wrong type is refused before the rest is read", async () => {
  const archive = await startArchive();
  const receiving = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: 95 * mib });
  let read = 0;
  let ended = false;
  async function* body() {
    try {
      for (; read < 95; read++) yield Buffer.alloc(mib, "x");
    } finally {
      ended = true;
    }
  }
  await expect(receiving.store({ bytes: 95 * mib, body: body() })).rejects.toThrow(refused("unsupported_media_type"));
  expect(read).toBeLessThan(3);
  expect(ended).toBe(true);
  await archive.expectNothing();
});

/** Storage may make an object of the bytes that it got, after the upload has failed. Expiry deletes it. */
async function expectNoTraceAfterExpiry(archive: Archive): Promise<void> {
  await archive.expectMoney(0n);
  archive.clock.later(hourMs);
  await archive.files.expire();
  await archive.expectNoTrace();
}

test("a body with fewer, more, no or too many bytes is refused, and leaves nothing", async () => {
  const archive = await startArchive();
  const body = wavOf(200_000);
  const store = async (bytes: number, sent: Buffer) => {
    const receiving = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: 300_000 });
    return receiving.store({ bytes, body: pieces(sent) });
  };
  await expect(store(200_001, body)).rejects.toThrow(refused("invalid_value"));
  await expect(store(199_999, body)).rejects.toThrow(refused("invalid_value"));
  await expect(store(0, Buffer.alloc(0))).rejects.toThrow(refused("invalid_value"));
  await expect(store(300_001, body)).rejects.toThrow(refused("request_too_large"));
  await expectNoTraceAfterExpiry(archive);
});

test("a body that breaks off halfway leaves nothing", async () => {
  const archive = await startArchive();
  const body = wavOf(4 * mib);
  async function* broken() {
    yield* pieces(body.subarray(0, 2 * mib));
    throw Object.assign(new Error("aborted"), { code: "ECONNRESET" });
  }
  const receiving = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: body.length });
  const stored = receiving.store({ bytes: body.length, body: broken() });
  await expect(stored).rejects.toMatchObject({ code: "invalid_value", message: expect.stringContaining("broke off") });
  await expectNoTraceAfterExpiry(archive);
});

test("a service error of the body is the answer", async () => {
  const archive = await startArchive();
  const own = requestTooLarge(5);
  async function* broken() {
    yield pngOf(70_000);
    throw own;
  }
  const receiving = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: mib });
  await expect(receiving.store({ bytes: 100_000, body: broken() })).rejects.toBe(own);
  await expectNoTraceAfterExpiry(archive);
});

test("a file that takes longer than 20 minutes is refused", async () => {
  const archive = await startArchive();
  const receiving = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: 200_000 });
  async function* late() {
    yield wavOf(100_000);
    archive.clock.later(20 * 60_000);
    yield Buffer.alloc(100_000);
  }
  await expect(receiving.store({ bytes: 200_000, body: late() })).rejects.toThrow(refused("invalid_value"));
  await expectNoTraceAfterExpiry(archive);
});

test("an insufficient balance is refused before a byte is read", async () => {
  const archive = await startArchive();
  const broke = await archive.money.createAccount({ name: "broke" });
  const begun = archive.files.uploads.begin({ ...archive.ask(), account: broke.id, maxBytes: mib });
  await expect(begun).rejects.toMatchObject({
    code: "insufficient_balance",
    message: expect.stringMatching(
      /1048576 bytes costs 0\.000097656 USD; the balance has 0\.00\. Top up in the dashboard\.$/,
    ),
  });
  expect(await archive.records()).toEqual([]);
});

test("a frozen account uploads nothing", async () => {
  const archive = await startArchive();
  await archive.money.updateAccount(archive.account, { frozen: true });
  await expect(archive.files.uploads.begin({ ...archive.ask(), maxBytes: 1 })).rejects.toThrow(
    refused("account_frozen"),
  );
});

test("a cancelled upload leaves nothing, and can be cancelled again", async () => {
  const archive = await startArchive();
  const receiving = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: 1_000 });
  await receiving.cancel();
  await receiving.cancel();
  await archive.expectNoTrace();
  const stored = await archive.files.uploads.begin({ ...archive.ask(), maxBytes: 1_000 });
  const { id } = await stored.store({ bytes: 1_000, body: pieces(pngOf(1_000)) });
  await stored.cancel();
  expect(await archive.files.uploads.find(archive.account, id)).toMatchObject({ status: "active" });
});

test("the list has the account's uploads of a day, newest first, in every state, page by page", async () => {
  const archive = await startArchive();
  const { files, account, clock } = archive;
  const { uploads } = files;
  const old = await upload(archive, pngOf());
  clock.later(hourMs);
  const recent = await upload(archive, pngOf());
  clock.later(1);
  const dropped = await upload(archive, pngOf());
  clock.later(1);
  const begun = await uploads.begin({ ...archive.ask(), maxBytes: 100 });
  clock.later(1);
  const pending = await uploads.start({ ...archive.ask(), bytes: 2 * 16 * mib, mime: "video/mp4" });
  await uploads.delete(account, dropped.id);
  const ids = async (page: { limit: number; after?: string }) => {
    const { data, hasMore } = await uploads.list(account, page);
    return [...data.map(({ id }) => id), hasMore];
  };
  expect(await ids({ limit: 10 })).toEqual([pending.id, dropped.id, recent.id, old.id, false]);
  expect(await ids({ limit: 2 })).toEqual([pending.id, dropped.id, true]);
  expect(await ids({ limit: 2, after: dropped.id })).toEqual([recent.id, old.id, false]);
  const { data } = await uploads.list(account, { limit: 10 });
  expect(data.map(({ status, url, costNanoUsd }) => [status, url !== null, costNanoUsd])).toEqual([
    ["pending", false, priceOf(32 * mib)],
    ["deleted", false, priceOf(pngOf().length)],
    ["active", true, priceOf(pngOf().length)],
    ["active", true, priceOf(pngOf().length)],
  ]);
  expect(data[0]?.multipart?.parts).toHaveLength(2);
  await expect(uploads.list(account, { limit: 1, after: begun.id })).rejects.toThrow(refused("invalid_value", "after"));
  await expect(uploads.list("acct_other", { limit: 1, after: recent.id })).rejects.toThrow(refused("invalid_value"));
  expect(await uploads.list("acct_other", { limit: 1 })).toEqual({ data: [], hasMore: false });
  clock.later(dayMs - hourMs);
  expect((await ids({ limit: 10 })).at(-2)).toBe(recent.id);
  await begun.cancel();
});

test("another account's upload is 404", async () => {
  const archive = await startArchive();
  const { uploads } = archive.files;
  const { id, requestId } = await upload(archive, pngOf());
  for (const name of ["find", "delete", "complete"] as const)
    await expect(uploads[name]("acct_other", id)).rejects.toThrow(refused("upload_not_found"));
  expect(await uploads.findByRequest("acct_other", requestId)).toBeUndefined();
  await expect(uploads.find(archive.account, "upl_none")).rejects.toThrow(refused("upload_not_found"));
});

test("ten uploads of one account at once are ten charges", async () => {
  const archive = await startArchive();
  const body = wavOf(mib);
  const made = await Promise.all(Array.from({ length: 10 }, () => upload(archive, body)));
  expect(new Set(made.map(({ id }) => id)).size).toBe(10);
  expect(await archive.objects()).toHaveLength(10);
  await archive.expectMoney(10n * priceOf(mib));
});
