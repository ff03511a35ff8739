import mongoose from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import { fileOf } from "../support/uploads-files.ts";
import { ok, refused, uploadServiceOfFile } from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({ UPLOAD_USD_PER_GB_DAY: "0.10" });

const hourMs = 3_600_000;

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

test("deleting removes the file at once, also of a pending upload; deleting again is 410", async () => {
  const customer = await there.customer();
  const active = await ok(customer.raw(fileOf("png", 1_000)));
  const pending = await ok(customer.start(1_000, "image/png"));
  for (const { id } of [active, pending]) {
    const deleted = await customer.get(`/${id}`, "DELETE");
    expect([deleted.status, await deleted.json()]).toEqual([200, { id, deleted: true }]);
    const gone = { status: 410, code: "upload_deleted" };
    expect(await refused(customer.get(`/${id}`, "DELETE"))).toMatchObject(gone);
    expect(await refused(customer.get(`/${id}`))).toMatchObject(gone);
  }
  expect((await fetch(active.url as string)).status).toBe(404);
  expect((await customer.list()).map(({ id, status, url }) => [id, status, url])).toEqual([
    [pending.id, "deleted", null],
    [active.id, "deleted", null],
  ]);
});

test("after exactly 24 hours an upload is 410", async () => {
  const customer = await there.customer();
  const { id, expires_at } = await ok(customer.raw(fileOf("png", 1_000)));
  const first = await ok(customer.get(`/${id}`));
  there.advance(24 * hourMs - 60_000);
  expect((await ok(customer.get(`/${id}`))).expires_at).toBe(expires_at);
  expect(first.status).toBe("active");
  there.advance(61_000);
  expect(await refused(customer.get(`/${id}`))).toMatchObject({ status: 410, code: "upload_expired" });
  expect(await refused(customer.get(`/${id}`, "DELETE"))).toMatchObject({ status: 410, code: "upload_expired" });
  await there.files.expire();
});

test("the list has every state, newest first, in pages", async () => {
  const customer = await there.customer();
  const ids: string[] = [];
  for (let at = 0; at < 5; at++) {
    ids.unshift((await ok(customer.raw(fileOf("wav", 1_000 + at)))).id);
    there.advance(1_000);
  }
  await customer.get(`/${ids[0]}`, "DELETE");
  const page = async (query: string) => (await (await customer.get(query)).json()) as Record<string, unknown>;
  const all = (await page("")) as { data: { id: string; status: string }[] };
  expect(all).toMatchObject({ object: "list", has_more: false, next: null });
  expect(all.data.map(({ id }) => id)).toEqual(ids);
  expect(all.data.map(({ status }) => status)).toEqual(["deleted", "active", "active", "active", "active"]);
  const pages = [
    await page("?limit=2"),
    await page(`?limit=2&after=${ids[1]}`),
    await page(`?after=${ids[3]}&limit=2`),
  ];
  expect(
    pages.map(({ data, has_more, next }) => [(data as { id: string }[]).map(({ id }) => id), has_more, next]),
  ).toEqual([
    [ids.slice(0, 2), true, ids[1]],
    [ids.slice(2, 4), true, ids[3]],
    [ids.slice(4), false, null],
  ]);
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

test("the list has only the account's own uploads", async () => {
  const [one, other] = [await there.customer(), await there.customer()];
  const upload = await ok(one.raw(fileOf("png", 1_000)));
  expect((await one.list()).map(({ id }) => id)).toEqual([upload.id]);
  expect(await other.list()).toEqual([]);
  expect(await refused(other.get(`?after=${upload.id}`))).toMatchObject({ status: 400, param: "after" });
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
