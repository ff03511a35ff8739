import { expect, test } from "vitest";
import { eventually } from "../support/service.ts";
import { putPart } from "../support/uploads-callers.ts";
import { fileOf, heads, mebi } from "../support/uploads-files.ts";
import {
  ok,
  refused,
  type UploadAnswer,
  type Uploader,
  uploaderOf,
  uploadServiceOfFile,
} from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({
  UPLOAD_USD_PER_GB_DAY: "0.10",
  RATE_LIMIT_UPLOADS_PER_MINUTE: "1000",
  RATE_LIMIT_CONCURRENT_UPLOADS: "100",
});

const partSize = 16 * mebi;
const complete = (customer: Uploader, upload: UploadAnswer, body?: object) =>
  fetch(upload.complete_url, {
    method: "POST",
    headers: { ...customer.headers, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });

/** The first part has a header, the others are zeros. */
const zeros = Buffer.alloc(partSize);
const bodyOf = ({ part_number, bytes }: UploadAnswer["part_urls"][number], head: Buffer) => {
  if (part_number > 1) return zeros.subarray(0, bytes);
  const body = Buffer.alloc(bytes);
  head.copy(body);
  return body;
};

test("200 MB in parts, concurrently and in any order, become one file; one byte more is 413", async () => {
  const customer = await there.customer();
  const bytes = 200 * mebi;
  expect(await refused(customer.start(bytes + 1, "video/mp4"))).toMatchObject({ status: 413, param: "bytes" });
  const started = await customer.start(bytes, "video/mp4");
  const upload = await ok(started);
  expect(started.headers.get("x-xm-cost-usd")).toBeNull();
  expect(upload).toMatchObject({
    status: "pending",
    url: null,
    mime: "video/mp4",
    kind: "video",
    bytes,
    part_size: partSize,
    links_expire_at: upload.created_at + 3_600,
    expires_at: upload.created_at + 4_200,
    complete_url: `${there.service.baseUrl}/v1/uploads/${upload.id}/complete`,
  });
  expect(upload.part_urls.map(({ part_number, bytes: size }) => [part_number, size])).toEqual([
    ...Array.from({ length: 12 }, (_, index) => [index + 1, partSize]),
    [13, 8 * mebi],
  ]);
  // Real S3 refuses a presigned part that is signed with a checksum.
  for (const { url } of upload.part_urls) expect(url.toLowerCase()).not.toContain("checksum");

  const waiting = upload.part_urls.toSorted((a, b) => (a.part_number % 5) - (b.part_number % 5));
  const etags: { part_number: number; etag: string }[] = [];
  const sender = async () => {
    for (let part = waiting.shift(); part; part = waiting.shift()) {
      const sent = await putPart(part.url, bodyOf(part, heads.mp4(bytes)));
      expect(sent.status).toBe(200);
      etags.push({ part_number: part.part_number, etag: sent.headers.get("etag") as string });
    }
  };
  await Promise.all([sender(), sender(), sender(), sender()]);

  const completed = await complete(customer, upload, { parts: etags });
  expect(completed.headers.get("x-xm-cost-usd")).toBe("0.01953125");
  const active = await ok(completed);
  expect(active).toMatchObject({ id: upload.id, status: "active", bytes, mime: "video/mp4", cost_usd: "0.01953125" });
  expect(active).not.toHaveProperty("part_urls");
  const stored = await fetch(active.url as string, { method: "GET", headers: { range: "bytes=0-31" } });
  expect(Buffer.from(await stored.arrayBuffer()).equals(heads.mp4(bytes).subarray(0, 32))).toBe(true);
  expect(stored.headers.get("content-range")).toBe(`bytes 0-31/${bytes}`);
  await there.service.settled();
  expect(await customer.available()).toBe("9.98046875");
});

test.each([
  [{ parts: "all" }, "parts"],
  [{ parts: [{ part_number: "1", etag: "x" }] }, "parts[0].part_number"],
  [{ parts: [{ part_number: 1 }] }, "parts[0].etag"],
])("completing with %j is a 400 that names the field", async (body, param) => {
  const customer = await there.customer();
  const upload = await ok(customer.start(1_000, "image/png"));
  expect(await refused(complete(customer, upload, body))).toMatchObject({ status: 400, code: "invalid_value", param });
  expect((await customer.get(`/${upload.id}`, "DELETE")).status).toBe(200);
});

test("20 of 50 concurrent uploads in parts are admitted; each that ends frees a slot", async () => {
  const customer = await there.customer();
  const start = async (by: Uploader = customer) => {
    const response = await by.start(1_000, "image/png");
    return response.status === 200 ? ok(response) : refused(response);
  };
  const all = await Promise.all(Array.from({ length: 50 }, () => start()));
  const begun = all.filter((each) => "id" in each);
  const full = { status: 429, code: "rate_limit_exceeded", message: expect.stringContaining("20 unfinished uploads") };
  expect(begun).toHaveLength(20);
  expect(all.filter((each) => !("id" in each))).toEqual(Array.from({ length: 30 }, () => ({ ...full, param: null })));
  await eventually(async () => (await there.service.check()).open_holds === 20);

  const { key } = await there.service.admin<{ key: string }>("POST", `/accounts/${customer.id}/keys`, {});
  const other = await start(uploaderOf(there.service, { ...customer, key, post: postAs(key) }));
  expect(other).toMatchObject({ status: "pending" });
  const [first, second, ...rest] = begun as UploadAnswer[];
  await putPart(first?.part_urls[0]?.url as string, fileOf("png", 1_000));
  expect(await ok(complete(customer, first as UploadAnswer))).toMatchObject({ status: "active" });
  expect((await customer.get(`/${second?.id}`, "DELETE")).status).toBe(200);
  const more = [await start(), await start()];
  expect(more).toMatchObject([{ status: "pending" }, { status: "pending" }]);
  expect(await start()).toMatchObject(full);
  for (const each of [...rest, ...more, other])
    expect((await customer.get(`/${"id" in each ? each.id : ""}`, "DELETE")).status).toBe(200);
});

test("an account has at most 100 unfinished uploads in parts, whatever the number of its keys", async () => {
  const customer = await there.customer();
  const keys = await Promise.all(
    Array.from({ length: 6 }, () => there.service.admin<{ key: string }>("POST", `/accounts/${customer.id}/keys`, {})),
  );
  const all = await Promise.all(
    Array.from({ length: 102 }, (_, n) => {
      const key = keys[n % keys.length]?.key ?? "";
      return uploaderOf(there.service, { ...customer, key, post: postAs(key) }).start(1_000, "image/png");
    }),
  );
  const full = all.filter(({ status }) => status !== 200);
  expect(full).toHaveLength(2);
  for (const each of full)
    expect(await refused(each)).toMatchObject({ status: 429, message: expect.stringMatching(/^This account has 100/) });
  const begun = await Promise.all(all.filter(({ status }) => status === 200).map((response) => ok(response)));
  const end = async ({ id }: UploadAnswer) => expect((await customer.get(`/${id}`, "DELETE")).status).toBe(200);
  const [first, ...rest] = begun;
  await end(first as UploadAnswer);
  rest.push(await ok(customer.start(1_000, "image/png")));
  await Promise.all(rest.map(end));
});

const postAs = (key: string) => (path: string, body: unknown) =>
  fetch(there.service.baseUrl + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
