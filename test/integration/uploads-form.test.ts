import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { eventually } from "../support/service.ts";
import { curl, headOf, send, wireTo } from "../support/uploads-callers.ts";
import {
  boundary,
  diskFile,
  fileOf,
  formEnd,
  formOf,
  formType,
  mebi,
  partHead,
  piecesOf,
  uploadLimit,
} from "../support/uploads-files.ts";
import { ok, openSpools, refused, type Uploader, uploadServiceOfFile } from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({ UPLOAD_USD_PER_GB_DAY: "0.10" });

const blobOf = (bytes: Buffer<ArrayBuffer>, type = "application/octet-stream") => new Blob([bytes], { type });
const field = (name: string, value: string) => Buffer.concat([partHead(name, ""), Buffer.from(`${value}\r\n`)]);
const sendForm = (customer: Uploader, ...body: readonly Buffer[]) => send(there, customer, body, formType);

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

test("the file of a form becomes an active upload, byte for byte; other fields do not matter", async () => {
  const customer = await there.customer();
  const file = fileOf("png", 3 * mebi).fill("any bytes, with a line\r\n--break", 1_000);
  const form = new FormData();
  form.set("purpose", "vision");
  form.set("file", blobOf(file, "text/html"), "page.html");
  form.set("note", "after the file");
  const response = await customer.form(form);
  const upload = await ok(response);
  expect(upload).toMatchObject({ mime: "image/png", kind: "image", bytes: 3 * mebi, status: "active" });
  expect(response.headers.get("x-xm-cost-usd")).toBe(upload.cost_usd);
  const stored = Buffer.from(await (await fetch(upload.url as string)).arrayBuffer());
  expect(sha256(stored)).toBe(sha256(file));
});

test("curl -F sends 95 MB, the limit for a file in a form", async () => {
  const customer = await there.customer();
  const file = await diskFile("mp4", uploadLimit);
  const sent = await curl(
    customer,
    "-F",
    "purpose=vision",
    "-F",
    `file=@${file}`,
    `${there.service.baseUrl}/v1/uploads`,
  );
  expect(sent).toMatchObject({ code: 0, status: 200, body: { bytes: uploadLimit, status: "active" } });
});

test("one byte more is 413, with a declared length or in chunks", async () => {
  const customer = await there.refused();
  const tooLarge = { status: 413, code: "request_too_large", param: "file" };
  const file = await diskFile("mp4", uploadLimit + 1);
  const sent = await curl(customer, "-F", `file=@${file}`, `${there.service.baseUrl}/v1/uploads`);
  expect(sent).toMatchObject({ code: 0, status: 413, body: { error: { param: "file" } } });
  const chunked = send(there, customer, formOf(piecesOf("mp4", uploadLimit + 1)), formType);
  expect(await refused(chunked)).toMatchObject(tooLarge);
});

test("a file that is over the limit is not read to its end", async () => {
  const customer = await there.refused();
  let sent = 0;
  function* endless() {
    yield partHead("file");
    for (const piece of piecesOf("mp4", 1_000 * mebi)) {
      sent += piece.length;
      yield piece;
    }
  }
  expect(await refused(send(there, customer, endless(), formType))).toMatchObject({ status: 413, param: "file" });
  expect(sent).toBeLessThan(1_000 * mebi);
});

const png = [partHead("file"), fileOf("png", 100)];

test.each<readonly [what: string, body: readonly Buffer[], param: string | null]>([
  ["has no file", [field("purpose", "vision"), formEnd], "file"],
  ["has a field 'file' that is no file", [field("file", "bytes"), formEnd], "file"],
  ["has its file in another field", [partHead("image"), fileOf("png", 100), formEnd], "file"],
  ["has a file of no bytes", [partHead("file"), formEnd], "file"],
  ["has two files", [...png, Buffer.from("\r\n"), ...png, formEnd], "file"],
  ["has another file", [...png, Buffer.from("\r\n"), partHead("mask"), fileOf("png", 100), formEnd], "file"],
  ["has a field that is too long", [field("purpose", "x".repeat(140_000)), ...png, formEnd], "purpose"],
  ["has no end", [partHead("file"), fileOf("png", 100_000)], null],
  ["ends in the head of its file", [Buffer.from(`--${boundary}\r\ncontent-disposition: form-data`)], null],
  ["has another boundary than it says", [Buffer.from("--another\r\n\r\n\r\n--another--\r\n")], null],
  ["has too many fields", [...Array.from({ length: 40 }, (_, at) => field(`f${at}`, "x")), ...png, formEnd], null],
  ["is no form", [Buffer.from("just text")], null],
  ["is empty", [], null],
])("a form that %s is 400, and costs nothing", async (_, body, param) => {
  const customer = await there.refused();
  expect(await refused(sendForm(customer, ...body))).toMatchObject({ status: 400, code: "invalid_value", param });
  await there.service.settled();
  expect(await customer.available()).toBe("10.00");
});

test.each([
  "multipart/form-data",
  `multipart/form-data; boundary=${"b".repeat(300)}`,
  "multipart/form-data; boundary=",
])("'%.50s' names no boundary: 400", async (type) => {
  const customer = await there.refused();
  const form = send(there, customer, [partHead("file"), fileOf("png", 100), formEnd], { "content-type": type });
  expect(await refused(form)).toMatchObject({ status: 400 });
});

test("preamble, epilogue, quotes and letter case of a form are accepted", async () => {
  const customer = await there.customer();
  const body = [Buffer.from("preamble\r\n"), partHead("file"), fileOf("png", 100), formEnd, Buffer.from("epilogue")];
  const type = { "content-type": `Multipart/Form-Data; charset=utf-8; Boundary="${boundary}"` };
  expect(await ok(send(there, customer, body, type))).toMatchObject({ bytes: 100 });
});

test("a part with a content type and no file name is a file", async () => {
  const customer = await there.customer();
  const head = partHead("file", "\r\ncontent-type: image/png");
  expect(await ok(sendForm(customer, head, fileOf("png", 100), formEnd))).toMatchObject({ bytes: 100 });
});

test("a form with an epilogue is answered after the end of the body", async () => {
  const customer = await there.customer();
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, { ...formType, "transfer-encoding": "chunked" }));
  const form = Buffer.concat([partHead("file"), fileOf("png", 1_000), formEnd]);
  await wire.write(Buffer.concat([Buffer.from(`${form.length.toString(16)}\r\n`), form, Buffer.from("\r\n")]));
  await eventually(() => openSpools().length === 1);
  await wire.write("0\r\n\r\n");
  const text = await wire.received((received) => received.includes("\r\n\r\n{"));
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*"bytes":1000,/);
});

test("a caller who disconnects in the middle of the file leaves nothing", async () => {
  const customer = await there.customer();
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, { ...formType, "content-length": 4 * mebi }));
  await wire.write(Buffer.concat([partHead("file"), fileOf("mp4", 2 * mebi)]));
  await eventually(() => openSpools().length === 1);
  wire.socket.resetAndDestroy();
  await eventually(() => openSpools().length === 0);
  await there.service.settled();
  expect(await customer.available()).toBe("10.00");
});

test("ten concurrent forms are stored completely", async () => {
  const customer = await there.customer();
  const uploads = await Promise.all(
    Array.from({ length: 10 }, (_, index) => {
      const form = new FormData();
      form.set("file", blobOf(fileOf("wav", 2 * mebi + index)), "sound.wav");
      return ok(customer.form(form));
    }),
  );
  expect(uploads.map(({ bytes }) => bytes - 2 * mebi)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});
