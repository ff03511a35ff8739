import { openAsBlob } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { ownServers } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { curl, headOf, send, wireTo } from "../support/uploads-callers.ts";
import { diskFile, fileOf, mebi, piecesOf, uploadLimit } from "../support/uploads-files.ts";
import { ok, refused, startOn, type Uploader, uploaderOf, uploadServiceOfFile } from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({ UPLOAD_USD_PER_GB_DAY: "0.10" });

test("a raw body becomes an active upload of the detected type, and its storage is charged", async () => {
  const customer = await there.customer();
  const file = fileOf("png", 100_000);
  const sentAt = Math.floor(Date.now() / 1000);
  const response = await customer.raw(file, { "content-type": "video/mp4" });
  const upload = await ok(response);
  expect(upload).toEqual({
    id: expect.stringMatching(/^upl_[0-9A-Za-z]{24}$/) as string,
    object: "upload",
    url: expect.stringContaining(upload.id) as string,
    mime: "image/png",
    kind: "image",
    bytes: 100_000,
    created_at: expect.any(Number) as number,
    expires_at: upload.created_at + 86_400,
    status: "active",
    // 0.10 USD x 100000 / 2^30, rounded half up to a nano-USD.
    cost_usd: "0.000009313",
  });
  expect(upload.created_at).toBeGreaterThanOrEqual(sentAt);
  expect(upload.created_at).toBeLessThanOrEqual(Math.floor(Date.now() / 1000));
  expect(response.headers.get("x-xm-cost-usd")).toBe("0.000009313");
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  await there.service.settled();
  expect(await customer.available()).toBe("9.999990687");
  const stored = await fetch(upload.url as string);
  expect(stored.headers.get("content-type")).toBe("image/png");
  expect(Buffer.from(await stored.arrayBuffer()).equals(file)).toBe(true);
});

test("a body without a content type, or with the one of a curl form, is raw", async () => {
  const customer = await there.customer();
  const length = { "content-length": 5_000 };
  const form = { ...length, "content-type": "application/x-www-form-urlencoded" };
  expect((await ok(send(there, customer, piecesOf("wav", 5_000), length))).mime).toBe("audio/wav");
  expect((await ok(send(there, customer, piecesOf("mp4", 5_000), form))).mime).toBe("video/mp4");
});

test("fetch can send a stream with a declared length, and a file", async () => {
  const customer = await there.customer();
  const bytes = 3 * mebi;
  const streamed = await fetch(`${there.service.baseUrl}/v1/uploads`, {
    method: "POST",
    headers: { ...customer.headers, "content-type": "video/mp4", "content-length": String(bytes) },
    body: ReadableStream.from(piecesOf("mp4", bytes)),
    duplex: "half",
  });
  expect(await ok(streamed)).toMatchObject({ bytes, kind: "video" });
  const blob = await openAsBlob(await diskFile("wav", bytes));
  expect(await ok(customer.raw(blob))).toMatchObject({ bytes, kind: "audio" });
});

test("fetch sends a stream without a length: 411", async () => {
  const customer = await there.customer();
  const response = await fetch(`${there.service.baseUrl}/v1/uploads`, {
    method: "POST",
    headers: { ...customer.headers, "content-type": "video/mp4" },
    body: ReadableStream.from(piecesOf("mp4", 200_000)),
    duplex: "half",
  });
  expect(await refused(response)).toMatchObject({ status: 411, code: "length_required", param: "content-length" });
});

test("curl --data-binary sends 95 MB, the limit for a raw body", async () => {
  const customer = await there.customer();
  const file = await diskFile("mp4", uploadLimit);
  const url = `${there.service.baseUrl}/v1/uploads`;
  const sent = await curl(customer, "--data-binary", `@${file}`, url);
  expect(sent).toMatchObject({ code: 0, status: 200, body: { bytes: uploadLimit, kind: "video", status: "active" } });
});

test("a caller who sends at once can read the 413, and the connection is then closed soon", async () => {
  const customer = await there.customer();
  const bytes = uploadLimit + 1;
  const headers = { "content-type": "video/mp4", "content-length": bytes };
  expect(await refused(send(there, customer, piecesOf("mp4", bytes), headers))).toMatchObject({ status: 413 });
  const blob = await openAsBlob(await diskFile("mp4", bytes));
  expect(await refused(customer.raw(blob))).toMatchObject({ status: 413 });
});

/** A connection that has sent the head of an upload. */
async function begun(customer: Uploader, bytes: number) {
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, { "content-type": "video/mp4", "content-length": bytes }));
  return wire;
}

test("a connection that breaks in the middle leaves nothing and costs nothing", async () => {
  const customer = await there.customer();
  const wire = await begun(customer, 4 * mebi);
  await wire.write(fileOf("mp4", 4 * mebi).subarray(0, 2 * mebi));
  await holding();
  wire.socket.resetAndDestroy();
  expect(await tracesOf(customer)).toEqual(nothing);
});

test("a body that ends before its length leaves nothing and costs nothing", async () => {
  const customer = await there.customer();
  const wire = await begun(customer, 10_000);
  await wire.write(fileOf("mp4", 9_999));
  await holding();
  wire.socket.end();
  await wire.closed;
  expect(await tracesOf(customer)).toEqual(nothing);
});

test("a body longer than its declared length is 400, leaves nothing and costs nothing", async () => {
  const customer = await there.customer();
  const wire = await begun(customer, 10_000);
  await holding();
  await wire.write(fileOf("mp4", 10_100));
  await wire.received((text) => text.startsWith("HTTP/1.1 400 Bad Request"));
  await wire.closed;
  expect(await tracesOf(customer)).toEqual(nothing);
});

/** Waits until the service has begun to receive. */
const holding = () => eventually(async () => (await there.service.check()).open_holds === 1);

async function tracesOf(customer: Uploader) {
  await there.service.settled();
  return { available: await customer.available(), uploads: await customer.list() };
}
const nothing = { available: "10.00", uploads: [] };

test("while storage is unavailable uploads are 503 without a charge; a later retry succeeds", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const own = await startOn(stores);
  onTestFinished(own.stop);
  const customer = uploaderOf(own.service, await own.service.account("10.00"));
  await s3.stop();
  const form = new FormData();
  form.set("file", new Blob([fileOf("png", mebi)]));
  for (const answer of [await customer.raw(fileOf("png", mebi)), await customer.form(form)]) {
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused(answer)).toMatchObject({ status: 503, code: "no_capacity" });
  }
  await own.service.settled();
  expect(await customer.available()).toBe("10.00");
  await s3.start();
  expect(await ok(customer.raw(fileOf("png", mebi)))).toMatchObject({ status: "active" });
});

test("at shutdown a running upload is finished, and so is one that comes on an open connection, which ends with it", async () => {
  const customer = await there.customer();
  const own = await there.another({ DRAIN_DELAY: "1", DRAIN_GRACE: "900" });
  const wire = await wireTo(own.service);
  await wire.write(headOf(customer, { "content-type": "video/mp4", "content-length": 10_000, expect: "100-continue" }));
  await wire.received((text) => text.startsWith("HTTP/1.1 100 Continue"));
  const late = await wireTo(own.service);
  const lateHead = headOf(customer, { "content-type": "video/mp4", "content-length": 10_000 });
  await late.write(lateHead.slice(0, 20));
  const stopped = own.stop();
  await late.write(lateHead.slice(20));
  for (const each of [wire, late]) {
    await each.write(fileOf("mp4", 10_000));
    const text = await each.received((received) => received.includes('"status":"active"'));
    expect(text).toContain("HTTP/1.1 200 OK");
    expect(text).toMatch(/^connection: close\r$/im);
  }
  await stopped;
});
