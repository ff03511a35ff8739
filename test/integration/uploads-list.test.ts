import mongoose from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import { fileOf } from "../support/uploads-files.ts";
import { ok, refused, uploadServiceOfFile } from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({ UPLOAD_USD_PER_GB_DAY: "0.10" });

test("an upload is found only by its account, with a new link on every read", async () => {
  const customer = await there.customer();
  const upload = await ok(customer.raw(fileOf("png", 1_000)));
  there.advance(60_000);
  const found = await ok(customer.get(`/${upload.id}`));
  expect(found).toEqual({ ...upload, url: expect.any(String) });
  expect(found.url).not.toBe(upload.url);
  const other = await there.customer();
  const notFound = { status: 404, code: "upload_not_found" };
  expect(await refused(other.get(`/${upload.id}`))).toMatchObject(notFound);
  expect(await refused(other.get(`/${upload.id}`, "DELETE"))).toMatchObject(notFound);
  for (const id of ["upl_nothing", "upl_000000000000000000000000", "x", "%00", "%2e%2e%2f"])
    expect(await refused(customer.get(`/${id}`))).toMatchObject(notFound);
  expect(await refused(customer.get("/%zz"))).toMatchObject({ status: 400 });
});

test("deleting removes the file at once; deleting again is 410", async () => {
  const customer = await there.customer();
  const { id, url } = await ok(customer.raw(fileOf("png", 1_000)));
  const deleted = await customer.get(`/${id}`, "DELETE");
  expect([deleted.status, await deleted.json()]).toEqual([200, { id, deleted: true }]);
  const gone = { status: 410, code: "upload_deleted" };
  expect(await refused(customer.get(`/${id}`, "DELETE"))).toMatchObject(gone);
  expect(await refused(customer.get(`/${id}`))).toMatchObject(gone);
  expect((await fetch(url as string)).status).toBe(404);
});

test("the list comes in pages, newest first", async () => {
  const customer = await there.customer();
  const ids: string[] = [];
  for (let at = 0; at < 3; at++) {
    ids.unshift((await ok(customer.raw(fileOf("wav", 1_000 + at)))).id);
    there.advance(1_000);
  }
  await customer.get(`/${ids[0]}`, "DELETE");
  const page = async (query: string) => (await (await customer.get(query)).json()) as Record<string, unknown>;
  const shown = [{ id: ids[0], status: "deleted" }, { id: ids[1], status: "active" }, { id: ids[2] }];
  const list = { object: "list", has_more: false, next: null };
  expect(await page("")).toMatchObject({ ...list, data: shown });
  expect(await page("?limit=2")).toMatchObject({ data: shown.slice(0, 2), has_more: true, next: ids[1] });
  expect(await page(`?limit=2&after=${ids[1]}`)).toMatchObject({ ...list, data: shown.slice(2) });
});

test("the list has all uploads of the day, to 1,000, for a caller who asks for no page", async () => {
  const customer = await there.customer();
  const { id } = await ok(customer.raw(fileOf("wav", 1_000)));
  const connection = await mongoose.createConnection(there.stores.MONGODB_URI).asPromise();
  onTestFinished(() => connection.close());
  const uploads = connection.collection<{ _id: string }>("uploads");
  const template = {
    ...(await uploads.findOne({ _id: id }, { projection: { dueAt: 0 }, promoteLongs: false })),
    status: "deleted",
  };
  const copies = Array.from({ length: 1_000 }, (_, at) => ({
    ...template,
    _id: `upl_${id}_${at}`,
    requestId: `req_${id}_${at}`,
  }));
  await uploads.insertMany(copies.slice(1));
  expect(await customer.list()).toHaveLength(1_000);
  await uploads.insertMany(copies.slice(0, 1));
  const first = (await (await customer.get("")).json()) as { data: { id: string }[]; has_more: boolean; next: string };
  expect([first.data.length, first.has_more, first.next]).toEqual([1_000, true, first.data.at(-1)?.id]);
  expect(await (await customer.get(`?after=${first.next}`)).json()).toMatchObject({ data: [{}], has_more: false });
});

test.each([
  ["limit=0", "limit"],
  ["limit=1001", "limit"],
  ["limit=many", "limit"],
  ["limit=1&limit=2", "limit"],
  ["after=upl_nothing", "after"],
  ["after=", "after"],
  ["before=upl_1", "before"],
])("a list with the query '%s' is 400", async (query, param) => {
  const customer = await there.refused();
  expect(await refused(customer.get(`?${query}`))).toMatchObject({ status: 400, code: "invalid_value", param });
});

test("every route needs a key", async () => {
  const urls = ["", "/upl_1", "/upl_1/complete"].map((path) => `${there.service.baseUrl}/v1/uploads${path}`);
  const [list, one, complete] = urls as [string, string, string];
  const asked = [
    fetch(list),
    fetch(one),
    fetch(one, { method: "DELETE" }),
    fetch(complete, { method: "POST" }),
    fetch(list, { method: "POST", body: fileOf("png", 100) }),
  ];
  for (const answer of asked) expect(await refused(answer)).toMatchObject({ status: 401, code: "invalid_api_key" });
});
