import { ListObjectsV2Command, PutObjectCommand } from "@aws-sdk/client-s3";
import mongoose from "mongoose";
import type OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import {
  limitBytes,
  lines,
  path,
  readLargest,
  readSlowly,
  storeLargest,
  storeResults,
  upload,
} from "../support/batch-files-setup.ts";
import { eventually } from "../support/service.ts";
import { curl, headOf, send, wireTo } from "../support/uploads-callers.ts";
import { boundary, diskFile, formType, mebi, partHead } from "../support/uploads-files.ts";
import { openSpools, refused, type Uploader, uploaderOf, uploadServiceOfFile } from "../support/uploads-setup.ts";

/** After each test the bucket is empty, so each test deletes what it stored. */
const there = uploadServiceOfFile();

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const inAnHour = { anchor: "created_at", seconds: 3_600 } as const;

const field = (name: string, value: string) => Buffer.concat([partHead(name, ""), Buffer.from(`${value}\r\n`)]);
const jsonl = [partHead("file"), Buffer.from(`${lines}\r\n`)];
const closing = Buffer.from(`--${boundary}--\r\n`);
const sendForm = (customer: Uploader, ...body: readonly Buffer[]) => send(there, customer, body, formType, path);

const ask = (customer: Uploader, rest: string, method = "GET") =>
  fetch(there.service.baseUrl + path + rest, { method, headers: customer.headers });
const everyRead = [
  ["GET", ""],
  ["GET", "/content"],
  ["DELETE", ""],
] as const;

async function records() {
  const connection = await mongoose.createConnection(there.stores.MONGODB_URI).asPromise();
  onTestFinished(() => connection.close());
  return connection.collection("batchFiles");
}
const recordsOf = async ({ id }: Uploader) => (await records()).find({ account: id }).toArray();

test("OpenAI's client uploads, lists, reads and deletes files", async () => {
  const customer = await there.customer();
  const { files } = customer.openai;
  const file = await upload(customer);
  expect(file).toEqual({
    id: expect.stringMatching(/^file-\w{24}$/),
    object: "file",
    bytes: lines.length,
    created_at: expect.any(Number),
    expires_at: file.created_at + 30 * 86_400,
    filename: "requests.jsonl",
    purpose: "batch",
    status: "processed",
  });
  there.advance(1_000);
  const second = await upload(customer, `${lines}\n`, { expires_after: inAnHour });
  expect(second.expires_at).toBe(second.created_at + 3_600);
  there.advance(1_000);
  const third = await upload(customer);

  expect(await files.retrieve(file.id)).toEqual(file);
  const content = await files.content(second.id);
  expect(content.headers.get("content-disposition")).toBe("attachment; filename=requests.jsonl");
  expect(await content.text()).toBe(`${lines}\n`);
  expect((await ask(customer, `/${second.id}/content`, "HEAD")).headers.get("content-length")).toBe("37");

  expect(await (await ask(customer, "")).json()).toEqual({
    object: "list",
    data: [third, second, file],
    first_id: third.id,
    last_id: file.id,
    has_more: false,
  });
  const idsOf = async (query: OpenAI.FileListParams) => {
    const ids: string[] = [];
    for await (const { id } of files.list(query)) ids.push(id);
    return ids;
  };
  expect(await idsOf({ limit: 1 })).toEqual([third.id, second.id, file.id]);
  expect(await idsOf({ limit: 2, order: "asc" })).toEqual([file.id, second.id, third.id]);
  expect(await idsOf({ purpose: "batch_output" })).toEqual([]);
  expect(await refused(ask(customer, "?after=file-none"))).toMatchObject({ status: 400, param: "after" });
  expect(await refused(ask(customer, "?purpose=vision"))).toMatchObject({ status: 400, param: "purpose" });

  for (const { id } of [file, second, third])
    expect(await files.delete(id)).toEqual({ id, object: "file", deleted: true });
  expect(await idsOf({})).toEqual([]);
  expect(await recordsOf(customer)).toEqual([]);
});

test("a file is known only to its account, and unknown once it is deleted", async () => {
  const [owner, other] = [await there.customer(), await there.customer()];
  const { id } = await upload(owner);
  const unknown = { status: 404, code: "file_not_found" };
  for (const [method, rest] of everyRead)
    for (const each of [id, "file-none", "x", "%00", "%2e%2e%2f"])
      expect(await refused(ask(other, `/${each}${rest}`, method))).toMatchObject(unknown);
  await owner.openai.files.delete(id);
  for (const [method, rest] of everyRead)
    expect(await refused(ask(owner, `/${id}${rest}`, method))).toMatchObject(unknown);
});

const purpose = field("purpose", "batch");
const anchor = field("expires_after[anchor]", "created_at");
const seconds = (value: string) => field("expires_after[seconds]", value);
const named = (name: string) => [partHead("file", `; filename="${name}"`), Buffer.from(`${lines}\r\n`)];

test.each<readonly [what: string, body: readonly Buffer[], param: string | null]>([
  ["no purpose", [...jsonl], "purpose"],
  ["another purpose", [field("purpose", "fine-tune"), ...jsonl], "purpose"],
  ["two purposes", [purpose, ...jsonl, purpose], "purpose"],
  ["no file", [purpose], "file"],
  ["an empty file", [purpose, partHead("file"), Buffer.from("\r\n")], "file"],
  ["two files", [purpose, ...jsonl, ...jsonl], "file"],
  ["a field 'file' that is no file", [purpose, field("file", lines)], "file"],
  ["a name that is too long", [purpose, ...named("x".repeat(256))], "file"],
  ["a name with a control character", [purpose, ...named("a\tb")], "file"],
  ["an expiry without its anchor", [purpose, ...jsonl, seconds("3600")], "expires_after[anchor]"],
  ["an anchor without its seconds", [purpose, ...jsonl, anchor], "expires_after[seconds]"],
  [
    "another anchor",
    [purpose, field("expires_after[anchor]", "now"), seconds("3600"), ...jsonl],
    "expires_after[anchor]",
  ],
  ["an expiry that is too soon", [purpose, anchor, seconds("3599"), ...jsonl], "expires_after[seconds]"],
  ["an expiry that is too late", [purpose, anchor, seconds("2592001"), ...jsonl], "expires_after[seconds]"],
  ["seconds that are no number", [purpose, anchor, seconds("1e4"), ...jsonl], "expires_after[seconds]"],
])("a form with %s is 400 and stores nothing", async (_, body, param) => {
  const customer = await there.refused();
  const answer = await refused(sendForm(customer, ...body, closing));
  expect(answer).toMatchObject({ status: 400, code: "invalid_value", param });
  expect(await recordsOf(customer)).toEqual([]);
});

test("a body that is no form is 415", async () => {
  const json = (await there.refused()).post(path, { purpose: "batch" });
  expect(await refused(json)).toMatchObject({ status: 415, code: "unsupported_media_type" });
});

test("a file of 200 MB is stored and can be read, and a byte more is 413", async () => {
  const customer = await there.customer();
  const id = await storeLargest(there, customer);
  await readLargest(there, customer, id, 32 * mebi);
  await customer.openai.files.delete(id);

  const file = await diskFile("wav", limitBytes + 1);
  const chunked = ["-H", "transfer-encoding: chunked"];
  const sent = await curl(
    customer,
    ...chunked,
    "-F",
    "purpose=batch",
    "-F",
    `file=@${file}`,
    there.service.baseUrl + path,
  );
  expect(sent).toMatchObject({ status: 413, body: { error: { code: "request_too_large", param: "file" } } });
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, { ...formType, "content-length": limitBytes + 2 * mebi }, path));
  expect(await wire.received((text) => text.includes('"request_id"'))).toContain("request_too_large");
  expect(await recordsOf(customer)).toEqual([]);
});

test("60 MB of results go to a reader of 1 MB a second, and nothing times out", async () => {
  const customer = await there.customer();
  const results = await storeResults(there, customer);
  await readSlowly(there, customer, results);
  expect((await fetch(results.url, { method: "DELETE", headers: customer.headers })).status).toBe(200);
});

test("a caller who disconnects in the middle of the file leaves nothing", async () => {
  const customer = await there.customer();
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, { ...formType, "content-length": 4 * mebi }, path));
  await wire.write(Buffer.concat([purpose, partHead("file"), Buffer.alloc(2 * mebi)]));
  await eventually(() => openSpools().length === 1);
  wire.socket.resetAndDestroy();
  await eventually(() => openSpools().length === 0);
  expect(await recordsOf(customer)).toEqual([]);
});

test("an account stores no more than its quota, exactly, also with concurrent uploads", async () => {
  const { service } = await there.another({ BATCH_FILE_QUOTA_BYTES: "10000" });
  const { id, key } = await there.customer();
  const customer = uploaderOf(service, { ...(await service.account("1")), id, key });
  const put = (bytes: number) => {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([Buffer.alloc(bytes, "x")]), "requests.jsonl");
    return fetch(service.baseUrl + path, { method: "POST", body: form, headers: customer.headers });
  };
  const answers = await Promise.all(Array.from({ length: 8 }, () => put(2_000)));
  const stored = answers.filter(({ status }) => status === 200);
  expect(stored).toHaveLength(5);
  for (const answer of answers.filter((each) => !stored.includes(each)))
    expect(await refused(answer)).toMatchObject({ status: 400, code: "file_quota_exceeded" });
  expect(await recordsOf(customer)).toHaveLength(5);

  const [first, ...rest] = (await Promise.all(stored.map((each) => each.json()))) as { id: string }[];
  await ask(customer, `/${first?.id}`, "DELETE");
  expect((await put(2_001)).status).toBe(400);
  expect((await put(2_000)).status).toBe(200);
  expect((await put(1)).status).toBe(400);
  // The clock of this service cannot be moved.
  const past = { expiresAt: new Date(0), dueAt: new Date(0) };
  await (await records()).updateOne({ account: id, _id: rest[0]?.id as never }, { $set: past });
  expect((await put(2_000)).status).toBe(200);
  for (const record of await recordsOf(customer)) await ask(customer, `/${String(record._id)}`, "DELETE");
  await there.files.expire();
});

test("an expired file is 410 for a day and then 404, and expiry deletes its object and then its record", async () => {
  const customer = await there.customer();
  const { id } = await upload(customer, lines, { expires_after: inAnHour });
  there.advance(hourMs / 2);
  expect((await ask(customer, `/${id}/content`)).status).toBe(200);
  there.advance(hourMs / 2);
  const expectRefusals = async (status: number, code: string) => {
    for (const [method, rest] of everyRead)
      expect(await refused(ask(customer, `/${id}${rest}`, method))).toMatchObject({ status, code });
    expect(await (await ask(customer, "")).json()).toMatchObject({ data: [], first_id: null, last_id: null });
  };
  await expectRefusals(410, "batch_file_expired");
  await there.files.expire();
  await there.files.expire();
  const { KeyCount } = await there.s3.send(new ListObjectsV2Command({ Bucket: there.stores.S3_BUCKET }));
  expect(KeyCount).toBe(0);
  await expectRefusals(410, "batch_file_expired");
  there.advance(dayMs);
  await expectRefusals(404, "file_not_found");
  await there.files.expire();
  expect(await recordsOf(customer)).toEqual([]);
});

test("a file whose process died while it was stored is deleted after half an hour, and its space is free", async () => {
  const customer = await there.customer();
  const dead = Promise.withResolvers<void>();
  async function* body() {
    yield Buffer.alloc(1_000);
    await dead.promise;
    yield Buffer.alloc(1_000);
  }
  const file = { account: customer.id, requestId: "req_dead", filename: "dead.jsonl", bytes: 2_000, body: body() };
  const storing = there.files.batchFiles.store(file).then(
    () => "stored",
    (error: { code: string }) => error.code,
  );
  const [record] = await eventually(async () => {
    const records = await recordsOf(customer);
    return records.length > 0 && records;
  });
  expect(await refused(ask(customer, `/${String(record?._id)}`))).toMatchObject({ status: 404 });
  expect(await (await ask(customer, "")).json()).toMatchObject({ data: [] });
  there.advance(31 * minuteMs);
  await there.files.expire();
  expect(await recordsOf(customer)).toEqual([]);
  // It was not dead after all.
  dead.resolve();
  expect(await storing).toBe("no_capacity");
});

test("an output is a list of parts, read in order from any offset, and deleted with all of them", async () => {
  const customer = await there.customer();
  const texts = ["first\n", "second line\n", "3\n"];
  const whole = texts.join("");
  const parts = texts.map((text, at) => ({ key: `batch/batch_1/out-${at}.jsonl`, bytes: text.length }));
  for (const [at, { key }] of parts.entries())
    await there.s3.send(new PutObjectCommand({ Bucket: there.stores.S3_BUCKET, Key: key, Body: texts[at] ?? "" }));
  const { batchFiles } = there.files;
  const output = { account: customer.id, requestId: "batch_1", filename: "output.jsonl", parts };
  const file = await batchFiles.createOutput(output);
  expect(await batchFiles.createOutput({ ...output, parts: [] })).toEqual(file);
  expect(await batchFiles.find(customer.id, file.id)).toEqual(file);
  const readFrom = async (offset: number, from = file) =>
    Buffer.concat(await Array.fromAsync(batchFiles.open(from, offset))).toString();
  for (let offset = 0; offset <= whole.length; offset++) expect(await readFrom(offset)).toBe(whole.slice(offset));
  const cut = { ...file, parts: parts.map((part) => ({ ...part, bytes: part.bytes + 1 })) };
  await expect(readFrom(0, cut)).rejects.toMatchObject({ code: "no_capacity" });

  const { files } = customer.openai;
  expect(await (await files.content(file.id)).text()).toBe(whole);
  expect((await files.list({ purpose: "batch_output" })).data).toMatchObject([{ id: file.id, bytes: whole.length }]);
  expect((await files.list({ purpose: "batch" })).data).toEqual([]);
  await files.delete(file.id);
  await expect(readFrom(0)).rejects.toMatchObject({ code: "batch_file_expired" });
});
