import { describe, expect, test } from "vitest";
import { createAudit } from "../../api/audit/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { bearer as as, startApiServer } from "../support/api-server.ts";
import { browse, signIn } from "../support/dashboard-setup.ts";
import { held, holdOf, openAccount } from "../support/money-setup.ts";
import { eventually, testAdminToken } from "../support/service.ts";

const [ann, bob] = ["token-of-ann-01234567890123456789", "token-of-bob:01234567890123456789"];
const seconds = () => Date.now() / 1_000;
/** A time in seconds since `from`, moved by `by`. */
const since = (from: number, by = 0) =>
  expect.toSatisfy((at: number) => at - by >= Math.floor(from) && at - by <= seconds()) as number;
const operators = { ADMIN_TOKENS: `ann:${ann},bob:${bob}` };

interface Shown {
  readonly id: string;
  readonly who: string;
  readonly action: string;
  readonly targets: readonly string[];
  readonly changes: object | null;
  readonly request_id: string;
  readonly status: number | null;
  readonly code: string | null;
}

async function setup(env = {}) {
  const server = await startApiServer({ env: { ...operators, ...env } });
  const audit = async (query = "") =>
    (await server.ask("GET", `/audit${query}`)).body as unknown as {
      data: readonly Shown[];
      has_more: boolean;
      next: string;
    };
  return { ...server, audit };
}

describe("tokens of single operators", () => {
  test("each is accepted under its name, and nothing else is", async () => {
    const { ask, audit } = await setup();
    for (const token of [ann, bob, testAdminToken])
      expect((await ask("POST", "/accounts", { name: "acme" }, as(token))).status).toBe(201);
    for (const token of ["ann", `ann:${ann}`, `${ann},bob:${bob}`, ann.slice(1), ""])
      expect((await ask("POST", "/accounts", { name: "acme" }, as(token))).status).toBe(401);
    expect((await audit()).data.map(({ who }) => who)).toEqual(["admin", "bob", "ann"]);
  });

  test("they are enough without ADMIN_TOKEN", async () => {
    const { ask } = await setup({ ADMIN_TOKEN: "", ADMIN_TOKENS: `ann:${ann}` });
    expect((await ask("GET", "/accounts", undefined, as(ann))).status).toBe(200);
    expect((await ask("GET", "/accounts", undefined, as(testAdminToken))).status).toBe(401);
  });

  test.each([
    ["ann:short", /must be name:token/],
    [`ann ${ann}`, /must be name:token/],
    [`:${ann}`, /must be name:token/],
    [`ann:${ann},`, /must be name:token/],
    [`ann:${ann},ann:${bob}`, /ann occurs twice/],
    [`admin:${ann}`, /admin is reserved for ADMIN_TOKEN/],
    [`ann:${ann},bob:${ann}`, /two operators have the same token/],
    [`ann:${testAdminToken}`, /two operators have the same token/],
  ])("the API does not start with %s", (tokens, message) => {
    const stores = { REDIS_URL: "redis://127.0.0.1", MONGODB_URI: "mongodb://127.0.0.1/a" };
    const storage = { S3_ENDPOINT: "http://127.0.0.1", S3_ACCESS_KEY_ID: "a", S3_SECRET_ACCESS_KEY: "b" };
    const load = () => loadConfig({ ...stores, ...storage, ADMIN_TOKEN: testAdminToken, ADMIN_TOKENS: tokens });
    expect(load).toThrow(message);
    // The message contains no secret.
    expect(load).not.toThrow(new RegExp(ann));
  });
});

describe("the audit log", () => {
  test("has a record of every change: the actor, the action, its object and result, and no secret", async () => {
    const { ask, audit } = await setup();
    const begunAt = seconds();
    const account = (await ask("POST", "/accounts", { name: "acme" }, as(ann))).body.id;
    const key = (await ask("POST", `/accounts/${account}/keys`, { name: "ci" })).body;
    const credit = { amount_usd: "5.00", idempotency_key: "a" };
    const changes = [
      ["PATCH", `/accounts/${account}`, { frozen: true }, 200],
      ["POST", `/accounts/${account}/credits`, credit, 201],
      ["POST", `/accounts/${account}/credits`, { ...credit, amount_usd: "6.00" }, 409],
      ["PATCH", `/keys/${key.id}`, { name: "new" }, 200],
      ["DELETE", `/keys/${key.id}`, undefined, 200],
      ["DELETE", "/archives/2026-01/restore", undefined, 404],
      ["POST", "/archives/2026-01/restore", {}, 404],
      ["POST", "/owed/none/refunds", { amount_usd: "1", transaction: "x" }, 400],
    ] as const;
    for (const [method, path, body, status] of changes) expect((await ask(method, path, body)).status).toBe(status);

    const { data } = await audit();
    expect(data.map(({ action, status }) => [action, status]).toReversed()).toEqual([
      ["POST /accounts", 201],
      ["POST /accounts/{id}/keys", 201],
      ["PATCH /accounts/{id}", 200],
      ["POST /accounts/{id}/credits", 201],
      ["POST /accounts/{id}/credits", 409],
      ["PATCH /keys/{id}", 200],
      ["DELETE /keys/{id}", 200],
      ["DELETE /archives/{id}/restore", 404],
      ["POST /archives/{id}/restore", 404],
      ["POST /owed/{id}/refunds", 400],
    ]);
    const [created, issued, , credited, refused] = data.toReversed();
    expect(created).toEqual({
      id: expect.stringMatching(/^aud_/),
      object: "audit_record",
      who: "ann",
      action: "POST /accounts",
      targets: [account],
      changes: { name: "acme" },
      request_id: expect.stringMatching(/^req_/),
      created_at: since(begunAt),
      status: 201,
      code: null,
    });
    expect(issued).toMatchObject({ who: "admin", targets: [account, key.id], changes: { name: "ci" } });
    expect(credited).toMatchObject({ targets: [account, `credit:${account}:a`], changes: credit });
    expect(refused).toMatchObject({ status: 409, code: "conflict" });
    expect(JSON.stringify(data)).not.toContain(key.key);
  });

  test("has nothing of reading, nor of a body that is refused", async () => {
    const { ask, audit } = await setup();
    await ask("POST", "/accounts", { name: "acme", secret: "s" });
    await ask("POST", "/accounts", "{not json");
    for (const path of ["/accounts", "/overview", "/audit"]) await ask("GET", path);
    expect((await audit()).data).toEqual([]);
  });

  test("a change whose record cannot be written is not made", async () => {
    const { ask, mongo, money } = await setup();
    // On a live MongoDB, only a validator can refuse a write.
    await mongo.db.command({ collMod: "auditLog", validator: { never: 1 } });
    expect((await ask("POST", "/accounts", { name: "acme" })).status).toBe(500);
    expect(await money.accounts({ limit: 10 })).toEqual([]);
  });

  test("a change whose result is not recorded is answered as done, and shown as unknown", async () => {
    const { mongo, audit: shown } = await setup();
    const log = createLogger("test", "silent");
    const audit = createAudit({ mongo, clock: systemClock, log });
    const intent = { who: "ann", action: "POST /accounts", targets: [], requestId: newRequestId() };
    const done = await audit.record(
      intent,
      async () => {
        await mongo.db.command({ collMod: "auditLog", validator: { never: 1 } });
        return "done";
      },
      () => ({ status: 201 }),
    );
    expect(done).toBe("done");
    expect((await shown()).data).toMatchObject([{ who: "ann", status: null, code: null }]);
  });

  test("is filtered by who, action, target and time, in pages, each by an index", async () => {
    const { ask, audit, mongo } = await setup();
    const begunAt = Math.floor(seconds());
    const first = (await ask("POST", "/accounts", { name: "a" }, as(ann))).body.id;
    const second = (await ask("POST", "/accounts", { name: "b" }, as(bob))).body.id;
    await ask("PATCH", `/accounts/${first}`, { frozen: true }, as(bob));
    const ids = async (query: string) => (await audit(query)).data.map(({ who, targets }) => [who, targets[0]]);
    expect(await ids("?who=bob")).toEqual([
      ["bob", first],
      ["bob", second],
    ]);
    expect(await ids(`?action=${encodeURIComponent("PATCH /accounts/{id}")}`)).toEqual([["bob", first]]);
    expect(await ids(`?target=${first}`)).toEqual([
      ["bob", first],
      ["ann", first],
    ]);
    expect(await ids(`?target=${first}&who=ann`)).toEqual([["ann", first]]);
    const soon = Math.ceil(seconds()) + 1;
    expect(await ids(`?from=${soon}`)).toEqual([]);
    expect(await ids(`?from=${begunAt}&to=${soon}`)).toHaveLength(3);
    const page = await audit("?limit=2");
    expect(page).toMatchObject({ has_more: true });
    expect((await audit(`?limit=2&after=${page.next}`)).data.map(({ targets }) => targets[0])).toEqual([first]);
    expect((await ask("GET", "/audit?after=aud_none")).body).toMatchObject({ error: { param: "after" } });
    expect((await ask("GET", "/audit?from=monday")).body).toMatchObject({ error: { param: "from" } });

    const log = mongo.db.collection("auditLog");
    for (const filter of [{}, { who: "bob" }, { action: "x" }, { targets: "x" }]) {
      const plan = await log.find(filter).sort({ createdAt: -1, _id: -1 }).explain("queryPlanner");
      expect(JSON.stringify(plan["queryPlanner"].winningPlan)).not.toMatch(/COLLSCAN|"SORT"/);
    }
  });

  test("names the operator of a session, whose requests go through the same routes", async () => {
    const { baseUrl, audit } = await setup();
    const cookie = await signIn({ baseUrl }, { admin_token: ann });
    const made = await browse({ baseUrl }, "POST", "/dashboard/api/admin/v1/accounts", {
      cookie,
      body: { name: "acme" },
    });
    expect(made.status).toBe(201);
    expect((await audit()).data).toMatchObject([{ who: "ann", action: "POST /accounts" }]);
  });
});

test("accounts are found by their id, or by the beginning of their name in any case, by an index", async () => {
  const { ask, mongo } = await setup();
  const names = ["acme one", "Acme two", "ACME two", "zebra"];
  const ids: string[] = [];
  for (const name of names) ids.push((await ask("POST", "/accounts", { name })).body.id);
  const found = async (query: string) =>
    (await ask("GET", `/accounts?${query}`)).body.data.map(({ id }) => names[ids.indexOf(id)]);
  // Names that differ in case alone are equal to the index's collation, which then orders by id, in any case as well.
  const { compare } = new Intl.Collator("en", { sensitivity: "accent" });
  const twos = ["Acme two", "ACME two"].toSorted((one, other) =>
    compare(ids[names.indexOf(one)] ?? "", ids[names.indexOf(other)] ?? ""),
  );
  expect(await found("search=acme")).toEqual(["acme one", ...twos]);
  expect(await found("search=ACME%20t")).toEqual(twos);
  expect(await found(`search=${ids[3]}`)).toEqual(["zebra"]);
  expect(await found("search=nobody")).toEqual([]);
  const page = (await ask("GET", "/accounts?search=acme&limit=2")).body;
  expect(page).toMatchObject({ has_more: true });
  expect(await found(`search=acme&limit=2&after=${page.next}`)).toEqual([twos[1]]);
  const plan = await mongo.db
    .collection<{ _id: string }>("accounts")
    .find({ _id: { $gte: "acct_", $lt: "acct`" }, name: { $gte: "a", $lt: "a\uffff" } })
    .collation({ locale: "en", strength: 2 })
    .sort({ name: 1, _id: 1 })
    .explain("queryPlanner");
  expect(JSON.stringify(plan["queryPlanner"].winningPlan)).not.toMatch(/COLLSCAN|"SORT"/);
});

test("accounts by balance: what is held counts, payment accounts and a page after it do not exist", async () => {
  const { ask, money } = await setup();
  // More than any other test leaves.
  const [large, largest] = [await openAccount(money, 8n * 10n ** 15n), await openAccount(money, 9n * 10n ** 15n)];
  await held(money, holdOf(largest, 2n * 10n ** 15n));
  const page = (await ask("GET", "/accounts?sort=balance&limit=2")).body;
  expect(page.data.map(({ id }) => id)).toEqual([largest, large]);
  expect(page).toMatchObject({ has_more: false, next: null });
  expect(await ask("GET", "/accounts?sort=balance&search=a")).toMatchObject({
    status: 400,
    body: { error: { param: "sort" } },
  });
});

test("a link signs in to the dashboard once as the key's account, as long as the key is valid, and is in the audit log", async () => {
  const server = await setup();
  const { ask, audit } = server;
  const account = (await ask("POST", "/accounts", { name: "acme" })).body.id;
  const key = (await ask("POST", `/accounts/${account}/keys`, { scopes: ["manage"] })).body.id;
  const link = () => ask("POST", `/keys/${key}/sign-in-links`, undefined, as(ann));
  const made = await link();
  expect(made).toMatchObject({
    status: 201,
    body: { object: "sign_in_link", account, expires_at: since(seconds(), 300) },
  });
  const { url } = made.body as unknown as { url: string };
  const [page, code = ""] = url.split("#code=");
  expect(page).toMatch(/^http.*\/dashboard$/);
  const [record] = (await audit()).data;
  expect(record).toMatchObject({ who: "ann", action: "POST /keys/{id}/sign-in-links", targets: [key, account] });
  expect(JSON.stringify(record)).not.toContain(code);

  const cookie = await signIn(server, { code });
  expect(await browse(server, "GET", "/dashboard/api/v1/key", { cookie })).toMatchObject({
    status: 200,
    body: { id: key },
  });
  await expect(signIn(server, { code })).rejects.toThrow("401");
  const late = ((await link()).body as unknown as { url: string }).url.split("#code=")[1] ?? "";
  await ask("DELETE", `/keys/${key}`);
  // A revoked key is refused within a second.
  await eventually(async () => (await link()).status === 404);
  await expect(signIn(server, { code: late })).rejects.toThrow("401");
  expect((await ask("POST", "/keys/key_none/sign-in-links")).status).toBe(404);
});

describe("holds", () => {
  test("are listed oldest first, over all accounts and in pages; a settled one is gone", async () => {
    const { ask, money } = await setup();
    const holdsOf = async (query = "") => (await ask("GET", `/holds${query}`)).body;
    const ids: string[] = [];
    const begunAt = seconds();
    for (let n = 0; n < 5; n++) {
      const account = await openAccount(money, 5_000_000_000n);
      const expiresAt = Date.now() + 60_000 - n * 1_000;
      ids.push((await held(money, holdOf(account, 2_000_000n, { expiresAt }))).requestId);
    }
    const all = await holdsOf();
    expect(all.data.map(({ id }) => id)).toEqual(ids);
    expect(all.data[0]).toEqual({
      id: ids[0],
      object: "hold",
      account: expect.stringMatching(/^acct_/),
      amount_usd: "0.002",
      held_at: since(begunAt),
      expires_at: since(begunAt, 60),
    });
    const paged: string[] = [];
    for (let next: string | null = ""; next !== null; ) {
      const page = await holdsOf(`?limit=2${next && `&after=${encodeURIComponent(next)}`}`);
      paged.push(...page.data.map(({ id }) => id));
      next = page.next;
    }
    expect(paged).toEqual(ids);
    expect((await ask("GET", "/holds?after=x")).body).toMatchObject({ error: { param: "after" } });
  });
});

test("open jobs are counted by pool and account, the longest wait first, by an index alone", async () => {
  const { ask, mongo } = await setup();
  const jobs = mongo.connection.collection<{ _id: string }>("detachedCalls");
  const at = Math.floor(Date.now() / 1_000);
  const stored = [
    ["acct_1", "image", "queued", 50],
    ["acct_1", "image", "queued", 40],
    ["acct_1", "media", "in_progress", 30],
    ["acct_2", "image", "in_progress", 90],
    ["acct_2", "image", "in_progress", 20],
    ["acct_2", "rerank", "queued", 70],
    ["acct_3", "image", "completed", 99],
  ] as const;
  const expiresAt = new Date((at + 1_000) * 1_000);
  await jobs.insertMany(
    stored.map(([account, job, status, age], n) => {
      const createdAt = new Date((at - age) * 1_000);
      return { _id: `req_${n}`, account, job, status, createdAt, expiresAt };
    }),
  );
  const row = (pool: string, account: string, counts: object) => ({
    object: "job_queue",
    pool,
    account,
    waiting: 0,
    running: 0,
    oldest_waiting_at: null,
    oldest_running_at: null,
    ...counts,
  });
  const rows = [
    row("embeddings", "acct_2", { waiting: 1, oldest_waiting_at: at - 70 }),
    row("image", "acct_1", { waiting: 2, oldest_waiting_at: at - 50 }),
    row("image", "acct_2", { running: 2, oldest_running_at: at - 90 }),
    row("media", "acct_1", { running: 1, oldest_running_at: at - 30 }),
  ];
  expect((await ask("GET", "/jobs")).body).toEqual({ object: "list", data: rows, has_more: false, next: null });
  expect((await ask("GET", "/jobs?pool=image")).body.data).toEqual([rows[1], rows[2]]);
  expect((await ask("GET", "/jobs?pool=images")).body).toMatchObject({ error: { param: "pool" } });
  const plan = await jobs
    .find({ job: { $in: ["embeddings", "rerank"] }, status: "queued" })
    .project({ _id: 0, account: 1, createdAt: 1 })
    .sort({ createdAt: 1 })
    .explain("queryPlanner");
  expect(JSON.stringify(plan["queryPlanner"].winningPlan)).not.toMatch(/COLLSCAN|"SORT"|FETCH/);
});

test("failing webhooks are listed, the longest failing first, without what their URLs may hide, by an index", async () => {
  const { ask, mongo } = await setup();
  const endpoints = mongo.connection.collection<{ readonly _id: string; readonly [field: string]: unknown }>(
    "webhookEndpoints",
  );
  const [first, second] = [new Date("2026-01-01"), new Date("2026-01-02")];
  const stored = {
    account: "acct_1",
    secrets: [],
    createdAt: first,
    url: "https://example.com/services/secret?token=a",
  };
  await endpoints.insertMany([
    { ...stored, _id: "we_1", failingSince: second, failures: 2, lastFailureAt: second, lastSuccessAt: first },
    { ...stored, _id: "we_2", failingSince: first, failures: 20, lastFailureAt: second, disabledReason: "failing" },
    { ...stored, _id: "we_3", lastSuccessAt: second },
  ]);
  const secondsOf = (date: Date) => date.getTime() / 1_000;
  const row = { object: "failing_webhook", account: "acct_1", origin: "https://example.com" };
  const times = { last_failure_at: secondsOf(second), last_success_at: null, disabled_reason: null };
  expect((await ask("GET", "/webhooks/failing")).body.data).toEqual([
    { ...row, ...times, id: "we_2", failing_since: secondsOf(first), failures: 20, disabled_reason: "failing" },
    { ...row, ...times, id: "we_1", failing_since: secondsOf(second), failures: 2, last_success_at: secondsOf(first) },
  ]);
  const plan = await endpoints
    .find({ failingSince: { $exists: true } })
    .sort({ failingSince: 1 })
    .explain("queryPlanner");
  expect(JSON.stringify(plan["queryPlanner"].winningPlan)).not.toMatch(/COLLSCAN|"SORT"/);
});
