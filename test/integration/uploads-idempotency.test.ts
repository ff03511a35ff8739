import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { newRequestId } from "../../shared/platform/ids.ts";
import { eventually } from "../support/service.ts";
import { headOf, send, wireTo } from "../support/uploads-callers.ts";
import { fileOf, formOf, formType, mebi, piecesOf } from "../support/uploads-files.ts";
import { ok, refused, type UploadAnswer, uploadServiceOfFile } from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({ UPLOAD_USD_PER_GB_DAY: "0.10" });

const key = { "idempotency-key": "the same" };
const conflict = { status: 409, code: "conflict" };

/** Everything except the link, which is created anew. */
const same = ({ url: _url, ...upload }: UploadAnswer) => upload;

test("the same file under the same key is one upload and one charge, raw or in a form", async () => {
  const customer = await there.customer();
  const first = await customer.raw(fileOf("png", mebi), key);
  const form = new FormData();
  form.set("file", new Blob([fileOf("png", mebi)]));
  const answers = [first, await customer.raw(fileOf("png", mebi), key), await customer.form(form, key)];
  expect(answers.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true", "true"]);
  expect(new Set(answers.map(({ headers }) => headers.get("x-request-id"))).size).toBe(1);
  expect(new Set(answers.map(({ headers }) => headers.get("x-xm-cost-usd"))).size).toBe(1);
  const [one, two, three] = await Promise.all(answers.map((answer) => ok(answer)));
  expect(same(two as UploadAnswer)).toEqual(same(one as UploadAnswer));
  expect(same(three as UploadAnswer)).toEqual(same(one as UploadAnswer));
  await there.service.settled();
  expect(await customer.ledger("storage")).toHaveLength(1);
  expect(await customer.list()).toHaveLength(1);
});

test("another file under the same key is 409, and so is another way of uploading", async () => {
  const customer = await there.customer();
  await ok(customer.raw(fileOf("png", 1_000), key));
  const other = await customer.raw(fileOf("png", 1_001), key);
  expect(other.headers.get("x-should-retry")).toBe("false");
  expect(await refused(other)).toMatchObject(conflict);
  expect(await refused(customer.raw(fileOf("png", 1_000).fill(1, 500), key))).toMatchObject(conflict);
  expect(await refused(send(there, customer, formOf(piecesOf("wav", 1_000)), { ...formType, ...key }))).toMatchObject(
    conflict,
  );
  expect(await refused(customer.start(1_000, "image/png", key))).toMatchObject(conflict);
  expect(await customer.list()).toHaveLength(1);
});

test("the same start of a multipart upload under the same key returns the upload in its current state", async () => {
  const customer = await there.customer();
  const first = await ok(customer.start(1_000, "image/png", key));
  const repeated = await customer.start(1_000, "image/png", key);
  expect(repeated.headers.get("idempotent-replayed")).toBe("true");
  const pending = await ok(repeated);
  expect(pending).toMatchObject({ id: first.id, status: "pending", part_urls: [{ part_number: 1, bytes: 1_000 }] });
  expect(await refused(customer.start(1_001, "image/png", key))).toMatchObject(conflict);
  await customer.get(`/${first.id}`, "DELETE");
  expect(await ok(customer.start(1_000, "image/png", key))).toMatchObject({
    id: first.id,
    status: "deleted",
    url: null,
  });
  expect(await customer.list()).toHaveLength(1);
});

test("one of two concurrent requests uploads, the other waits without sending, and both get the same answer", async () => {
  const customer = await there.customer();
  const file = fileOf("mp4", mebi);
  const head = headOf(customer, {
    "content-type": "video/mp4",
    "content-length": mebi,
    expect: "100-continue",
    connection: "close",
    ...key,
  });
  const [owner, waiter] = [await wireTo(there.service), await wireTo(there.service)];
  await owner.write(head);
  await owner.received((text) => text.startsWith("HTTP/1.1 100 "));
  await waiter.write(head);
  await owner.write(file);
  const [, answer = ""] = (await owner.received((text) => text.includes('"status":"active"'))).split("HTTP/1.1 200 OK");
  await waiter.received((text) => text.startsWith("HTTP/1.1 100 "));
  await waiter.write(file);
  const text = await waiter.received((received) => received.includes('"status":"active"'));
  expect(text).toContain("idempotent-replayed: true");
  expect(answer).not.toContain("idempotent-replayed: true");
  const idOf = (received: string) => /"id":"(upl_\w+)"/.exec(received)?.[1];
  expect(idOf(text)).toBe(idOf(answer));
  expect(await customer.list()).toHaveLength(1);
});

test("a failed upload releases its key: the same request is carried out again", async () => {
  const customer = await there.customer("0.00");
  expect(await refused(customer.raw(fileOf("png", mebi), key))).toMatchObject({ status: 402 });
  await there.service.admin("POST", `/accounts/${customer.id}/credits`, {
    amount_usd: "1.00",
    idempotency_key: "more",
  });
  expect(await refused(customer.raw("not an image", key))).toMatchObject({ status: 415 });
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, { "content-type": "image/png", "content-length": mebi, ...key }));
  await wire.write(fileOf("png", 1_000));
  wire.socket.resetAndDestroy();
  const made = await customer.raw(fileOf("png", mebi), key);
  expect(made.headers.get("idempotent-replayed")).toBeNull();
  expect(await ok(made)).toMatchObject({ bytes: mebi, status: "active" });
});

test("a request that waits longer than MEDIA_SYNC_TIMEOUT gets 503 with Retry-After, on another instance too", async () => {
  const customer = await there.customer();
  const hurried = await there.another({ MEDIA_SYNC_TIMEOUT: "0.3" });
  const owner = await wireTo(there.service);
  await owner.write(headOf(customer, { "content-type": "image/png", "content-length": mebi, ...key }));
  await owner.write(fileOf("png", mebi).subarray(0, 1_000));
  await eventually(async () => (await there.service.check()).open_holds === 1);
  const url = `${hurried.service.baseUrl}/v1/uploads`;
  const again = () =>
    fetch(url, { method: "POST", headers: { ...customer.headers, ...key }, body: fileOf("png", mebi) });
  const late = await again();
  expect(late.headers.get("retry-after")).toBe("5");
  expect(await refused(late)).toMatchObject({ status: 503, code: "generation_in_progress" });
  await owner.write(fileOf("png", mebi).subarray(1_000));
  await owner.received((text) => text.includes('"status":"active"'));
  const replayed = await again();
  expect(replayed.headers.get("idempotent-replayed")).toBe("true");
  await ok(replayed);
  expect(await customer.ledger("storage")).toHaveLength(1);
});

/** An instance presumed dead has begun to receive a file under the key. */
async function beginElsewhere({ id: account }: { id: string }, file: Buffer) {
  const requestId = newRequestId();
  const ask = { account, key: key["idempotency-key"], hash: undefined, requestId, instance: "api_that_died" };
  await there.idempotency.claim(ask, () => Promise.resolve(false));
  const request = { account, keyId: "key_of_the_test", requestId, maxBytes: file.length };
  return { requestId, receiving: await there.files.uploads.begin(request) };
}

test("an upload that an instance made without recording it before it died is found by the next request", async () => {
  const customer = await there.customer();
  const file = fileOf("png", 5_000);
  const { requestId, receiving } = await beginElsewhere(customer, file);
  const upload = await receiving.store({ bytes: file.length, body: Readable.from([file]) });
  for (const _time of [1, 2]) {
    const found = await customer.raw(file, key);
    expect(found.headers.get("idempotent-replayed")).toBe("true");
    expect(found.headers.get("x-request-id")).toBe(requestId);
    expect(await ok(found)).toMatchObject({ id: upload.id });
  }
  expect(await refused(customer.raw(fileOf("png", 5_001), key))).toMatchObject(conflict);
  expect(await customer.ledger("storage")).toHaveLength(1);
});

test("an upload that is completed after its key was taken over fails, and only the next request's is charged", async () => {
  const customer = await there.customer();
  const file = fileOf("png", 5_000);
  const { receiving } = await beginElsewhere(customer, file);
  const made = await customer.raw(file, key);
  expect(made.headers.get("idempotent-replayed")).toBeNull();
  expect(await ok(made)).toMatchObject({ status: "active" });
  const late = receiving.store({ bytes: file.length, body: Readable.from([file]) });
  await expect(late).rejects.toMatchObject({ status: 400 });
  const charges = (await customer.ledger()).filter(({ amount_usd }) => String(amount_usd).startsWith("-"));
  expect(charges).toHaveLength(1);
});
