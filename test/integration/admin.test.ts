import { expect, test } from "vitest";
import { loadConfig } from "../../shared/platform/config.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { type ApiServer, apiOfFile, bearer, settledCall, startApiServer } from "../support/api-server.ts";
import { openAccount } from "../support/money-setup.ts";
import { ownServers } from "../support/servers.ts";
import { testAdminToken } from "../support/service.ts";

const api = apiOfFile();

const wrapped = "So11111111111111111111111111111111111111112";
const usdc = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const begunAt = Math.floor(Date.now() / 1_000);
/** The time of something that a test of this file did, in seconds. */
const sinceBegin = expect.toSatisfy((seconds: number) => seconds >= begunAt && seconds <= Date.now() / 1_000) as number;

const createAccount = async ({ ask }: ApiServer): Promise<string> =>
  (await ask("POST", "/accounts", { name: "acme" })).body.id;

test("without an admin token in the configuration there are no routes", async () => {
  const { ask } = await startApiServer({ env: { ADMIN_TOKEN: "" } });
  for (const [method, path] of [
    ["GET", "/accounts"],
    ["POST", "/accounts"],
    ["GET", "/ledger/check"],
  ] as const) {
    const { status, body } = await ask(method, path, method === "POST" ? {} : undefined);
    expect(status).toBe(404);
    expect(body).toMatchObject({ error: { code: "unknown_url" } });
  }
});

test("a missing or wrong token is refused before anything else is checked", async () => {
  const { ask } = api;
  for (const headers of [
    {},
    { authorization: "Bearer wrong" },
    { authorization: testAdminToken },
    { authorization: `Bearer ${testAdminToken}x` },
  ] as Record<string, string>[]) {
    const { status, body } = await ask("POST", "/accounts", "{not json", headers);
    expect(status).toBe(401);
    expect(body).toMatchObject({ error: { type: "authentication_error", code: "invalid_api_key" } });
  }
  expect((await ask("GET", "/accounts", undefined, { authorization: `bearer ${testAdminToken}` })).status).toBe(200);
});

test("while the token is rotated two are accepted, and nothing else", async () => {
  const [fresh, old] = ["the-new-admin-token-of-32-characters", "the-old-admin-token-of-32-characters"];
  const { ask } = await startApiServer({ env: { ADMIN_TOKEN: `${fresh},${old}` } });
  const statuses = [fresh, old, `${fresh},${old}`, "", ","].map(
    async (token) => (await ask("GET", "/accounts", undefined, bearer(token))).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 401, 401, 401]);
});

test.each([
  "short",
  testAdminToken.slice(0, 31),
  `${testAdminToken},`,
  `${testAdminToken},short`,
  `,${testAdminToken}`,
  Array(3).fill(testAdminToken).join(),
])("the API does not start with the token %s", (token) => {
  expect(() => loadConfig({ ADMIN_TOKEN: token })).toThrow(/ADMIN_TOKEN: must have at least 32 characters/);
});

test("an account is created, read, updated and frozen", async () => {
  const { ask } = api;
  const created = await ask("POST", "/accounts", { name: "acme", tier: "elite", buyback_token: wrapped });
  expect(created.status).toBe(201);
  expect(created.headers.get("cache-control")).toBe("no-store");
  expect(created.body).toEqual({
    id: expect.stringMatching(/^acct_[0-9A-Za-z]{20}$/),
    object: "account",
    name: "acme",
    tier: "elite",
    frozen: false,
    buyback_token: wrapped,
    balance_usd: "0.00",
    available_usd: "0.00",
    held_usd: "0.00",
    open_holds: 0,
    created_at: sinceBegin,
  });
  const path = `/accounts/${created.body.id}`;
  expect((await ask("GET", path)).body).toEqual(created.body);
  const changed = await ask("PATCH", path, { name: "Acme Ltd", tier: "standard", frozen: true, buyback_token: null });
  expect(changed.status).toBe(200);
  const expected = { ...created.body, name: "Acme Ltd", tier: "standard", frozen: true, buyback_token: null };
  expect(changed.body).toEqual(expected);
  expect((await ask("PATCH", path, {})).body).toEqual(expected);
  expect((await ask("GET", path)).body).toEqual(expected);
});

test("every instance is notified of a change of an account", async () => {
  const id = await createAccount(api);
  const before = await api.redis.get("limits:epoch");
  await api.ask("PATCH", `/accounts/${id}`, { tier: "elite" });
  expect(await api.redis.get("limits:epoch")).not.toBe(before);
});

test.each([
  ["POST", "/accounts", {}, "name"],
  ["POST", "/accounts", { name: "" }, "name"],
  ["POST", "/accounts", { name: 5 }, "name"],
  ["POST", "/accounts", { name: "a", tier: "gold" }, "tier"],
  ["POST", "/accounts", { name: "a", frozen: true }, "frozen"],
  ["POST", "/accounts", { name: "a", buyback_token: "0OIl" }, "buyback_token"],
  ["POST", "/accounts", { name: "a", buyback_token: "1".repeat(33) }, "buyback_token"],
  ["POST", "/accounts", { name: "a", buyback_token: usdc }, "buyback_token"],
  ["PATCH", "/accounts/ID", { buyback_token: usdc }, "buyback_token"],
  ["POST", "/accounts", { name: "a", balance: "5" }, "balance"],
  ["POST", "/accounts", [], null],
  ["POST", "/accounts", "{not json", null],
  ["POST", "/accounts", "", null],
  ["PATCH", "/accounts/ID", { frozen: "yes" }, "frozen"],
  ["PATCH", "/accounts/ID", { available_usd: "5" }, "available_usd"],
  ["POST", "/accounts/ID/keys", { limits: { requests_per_minute: 0 } }, "limits.requests_per_minute"],
  ["POST", "/accounts/ID/keys", { limits: { tokens_per_minute: 1.5 } }, "limits.tokens_per_minute"],
  ["POST", "/accounts/ID/keys", { limits: { concurrent_requests: null } }, "limits.concurrent_requests"],
  ["POST", "/accounts/ID/keys", { limits: { per_day: 1 } }, "limits.per_day"],
  ["POST", "/accounts/ID/credits", { amount_usd: 25, idempotency_key: "a" }, "amount_usd"],
  ["POST", "/accounts/ID/credits", { amount_usd: "1e3", idempotency_key: "a" }, "amount_usd"],
  ["POST", "/accounts/ID/credits", { amount_usd: "0.0000000001", idempotency_key: "a" }, "amount_usd"],
  ["POST", "/accounts/ID/credits", { amount_usd: "0.00", idempotency_key: "a" }, "amount_usd"],
  ["POST", "/accounts/ID/credits", { amount_usd: "1" }, "idempotency_key"],
  ["POST", "/accounts/ID/credits", { amount_usd: "1", idempotency_key: "x".repeat(256) }, "idempotency_key"],
  ["GET", "/accounts?limit=0", undefined, "limit"],
  ["GET", "/accounts?limit=201", undefined, "limit"],
  ["GET", "/accounts?limit=ten", undefined, "limit"],
  ["GET", "/accounts?limit=1&limit=2", undefined, "limit"],
  ["GET", "/accounts?after=acct_none", undefined, "after"],
  ["GET", "/accounts?page=2", undefined, "page"],
  ["GET", "/accounts/ID/keys?after=key_none", undefined, "after"],
  ["GET", "/accounts/ID/ledger?kind=gift", undefined, "kind"],
])("%s %s with %j is a 400 that names the field", async (method, path, body, param) => {
  const { ask } = api;
  const id = await createAccount(api);
  const accounts = async () => (await ask("GET", "/accounts?limit=1")).body.data;
  const before = await accounts();
  const answer = await ask(method, path.replace("ID", id), body);
  expect(answer.body).toMatchObject({ error: { code: "invalid_value", param } });
  expect(answer.status).toBe(400);
  expect(await accounts()).toEqual(before);
  expect((await ask("GET", `/accounts/${id}/keys`)).body.data).toEqual([]);
  expect((await ask("GET", `/accounts/${id}/ledger`)).body.data).toEqual([]);
});

test("an unknown resource is a 404, a wrong method a 405, and a body over 100 KB a 413", async () => {
  const { ask } = api;
  for (const [method, path, body] of [
    ["GET", "/accounts/acct_none"],
    ["PATCH", "/accounts/acct_none", { name: "a" }],
    ["POST", "/accounts/acct_none/credits", { amount_usd: "1", idempotency_key: "a" }],
    ["POST", "/accounts/acct_none/keys", {}],
    ["GET", "/accounts/acct_none/keys"],
    ["GET", "/accounts/acct_none/ledger"],
    ["PATCH", "/keys/key_none", { name: "a" }],
    ["DELETE", "/keys/key_none"],
    ["GET", "/requests/req_none"],
    ["GET", `/requests/${newRequestId()}`],
  ] as [string, string, object?][]) {
    const answer = await ask(method, path, body);
    expect(answer, `${method} ${path}`).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
  }
  expect(await ask("GET", "/plans")).toMatchObject({ status: 404, body: { error: { code: "unknown_url" } } });
  expect(await ask("DELETE", "/accounts")).toMatchObject({
    status: 405,
    body: { error: { code: "method_not_allowed" } },
  });
  const large = await ask("POST", "/accounts", { name: "x".repeat(110_000) });
  expect(large).toMatchObject({ status: 413, body: { error: { code: "request_too_large" } } });
});

test("a credit counts once for its idempotency key, however often it is sent", async () => {
  const { ask } = api;
  const id = await createAccount(api);
  const credit = { amount_usd: "25.00", idempotency_key: "invoice 7", reason: "invoice" };
  const answers = await Promise.all(Array.from({ length: 5 }, () => ask("POST", `/accounts/${id}/credits`, credit)));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 200, 200, 201]);
  for (const { body } of answers)
    expect(body).toEqual({
      id: `credit:${id}:invoice 7`,
      object: "entry",
      account: id,
      kind: "credit",
      amount_usd: "25.00",
      created_at: sinceBegin,
      idempotency_key: "invoice 7",
      reason: "invoice",
    });
  expect((await ask("GET", `/accounts/${id}`)).body).toMatchObject({ available_usd: "25.00" });

  const other = await ask("POST", `/accounts/${id}/credits`, { ...credit, amount_usd: "26" });
  expect(other).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  expect(other.headers.get("x-should-retry")).toBe("false");
});

test("a negative credit removes at most what is available", async () => {
  const { ask } = api;
  const id = await createAccount(api);
  await ask("POST", `/accounts/${id}/credits`, { amount_usd: "10", idempotency_key: "a" });
  const back = await ask("POST", `/accounts/${id}/credits`, { amount_usd: "-4.000000001", idempotency_key: "b" });
  expect(back).toMatchObject({ status: 201, body: { kind: "adjustment", amount_usd: "-4.000000001" } });
  const more = await ask("POST", `/accounts/${id}/credits`, { amount_usd: "-6", idempotency_key: "c" });
  expect(more).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  expect((await ask("GET", `/accounts/${id}`)).body).toMatchObject({ available_usd: "5.999999999" });
});

test("a key is created, limited, listed and revoked; its secret is shown once", async () => {
  const { ask, keys } = api;
  const id = await createAccount(api);
  const limits = { requests_per_minute: 10, concurrent_requests: 2 };
  const made = await ask("POST", `/accounts/${id}/keys`, { name: "ci", limits });
  expect(made.status).toBe(201);
  const { key: secret, ...shown } = made.body;
  expect(shown).toEqual({
    id: expect.stringMatching(/^key_/),
    object: "key",
    account: id,
    name: "ci",
    prefix: `${secret.slice(0, 8)}...`,
    prompt_cache: "off",
    cache: { enabled: false, ttl_seconds: 300, locked: false },
    scopes: ["inference"],
    limits: { requests_per_minute: 10, tokens_per_minute: null, concurrent_requests: 2 },
    budget: null,
    shares_budget_of: [],
    models: null,
    expires_at: null,
    created_at: sinceBegin,
    last_used_at: null,
    revoked_at: null,
  });
  const caller = await keys.authenticate(secret);
  expect(caller).toMatchObject({ account: id, limits: { requestsPerMinute: 10, concurrentRequests: 2 } });

  const patch = { name: null, limits: { requests_per_minute: null, tokens_per_minute: 7 } };
  const changed = await ask("PATCH", `/keys/${shown.id}`, patch);
  expect(changed).toMatchObject({
    status: 200,
    body: { name: null, limits: { requests_per_minute: null, tokens_per_minute: 7, concurrent_requests: 2 } },
  });
  expect(changed.body).not.toHaveProperty("key");

  const revoked = await ask("DELETE", `/keys/${shown.id}`);
  expect(revoked).toMatchObject({ status: 200, body: { id: shown.id, revoked_at: sinceBegin } });
  expect((await ask("DELETE", `/keys/${shown.id}`)).body).toEqual(revoked.body);
  const take = keys.takeSlot(caller, { requestId: newRequestId(), ttlMs: 1_000 });
  await expect(take).rejects.toMatchObject({ code: "invalid_api_key" });
  expect((await ask("GET", `/accounts/${id}/keys`)).body).toMatchObject({ data: [{ id: shown.id, name: null }] });
});

test.each([
  ["accounts", "/accounts", (server: ApiServer) => createAccount(server)],
  [
    "keys",
    "/accounts/ID/keys",
    async ({ ask }: ApiServer, id: string) => (await ask("POST", `/accounts/${id}/keys`, {})).body.id,
  ],
  [
    "the ledger",
    "/accounts/ID/ledger",
    async ({ ask }: ApiServer, id: string, n: number) =>
      (await ask("POST", `/accounts/${id}/credits`, { amount_usd: "1", idempotency_key: `é/${n}` })).body.id,
  ],
])("%s come in pages, newest first, each one once", async (_, pathOf, make) => {
  // The list of accounts has those of other tests as well.
  const server = pathOf === "/accounts" ? await startApiServer() : api;
  const account = await createAccount(server);
  const path = pathOf.replace("ID", account);
  const made = pathOf === "/accounts" ? [account] : [];
  while (made.length < 5) made.push(await make(server, account, made.length));

  const seen: string[][] = [];
  let after = "";
  for (;;) {
    const { body } = await server.ask("GET", `${path}?limit=2${after}`);
    expect(body).toMatchObject({ object: "list" });
    const page = body.data.map(({ id }) => id);
    seen.push(page);
    expect(body).toMatchObject({ has_more: seen.length < 3, next: seen.length < 3 ? page.at(-1) : null });
    if (!body.has_more) break;
    after = `&after=${encodeURIComponent(body.next)}`;
  }
  expect(seen.map(({ length }) => length)).toEqual([2, 2, 1]);
  expect(seen.flat().toSorted()).toEqual(made.toSorted());
  const times = (await server.ask("GET", `${path}?limit=200`)).body.data;
  expect(times.map(({ id }) => id)).toEqual(seen.flat());
  expect(times.map((one) => one.created_at)).toEqual(times.map((one) => one.created_at).toSorted((a, b) => b - a));
  expect((await server.ask("GET", `${path}?limit=5`)).body).toMatchObject({ has_more: false, next: null });
});

test("a call is found by its request id and in the ledger, and the check agrees", async () => {
  const server = await startApiServer();
  const { ask } = server;
  const id = await openAccount(server.money, 1_000_000_000n);
  const requestId = await settledCall(server, id);

  const entry = await ask("GET", `/requests/${requestId}`);
  expect(entry.status).toBe(200);
  expect(entry.body).toEqual({
    id: requestId,
    object: "entry",
    account: id,
    kind: "usage",
    amount_usd: "-0.001234567",
    created_at: sinceBegin,
    request: {
      key: "key_1",
      endpoint: "/v1/chat/completions",
      model: "local/chat",
      upstream: "local",
      attempts: [{ upstream: "local", credential: "shared", started_ms: 1, duration_ms: 40, outcome: "succeeded" }],
      byok: false,
      provider_key_id: null,
      list_usd: null,
      fee_usd: null,
      status: "succeeded",
      usage: { input: 12, output: 30 },
      estimated: false,
      queue_ms: 3,
      first_token_ms: 20,
      total_ms: 340,
      shortfall_usd: "0.00",
      upstream_cost_usd: "0.0011",
    },
  });
  expect((await ask("GET", `/accounts/${id}/ledger?kind=usage`)).body.data).toEqual([entry.body]);
  expect((await ask("GET", `/accounts/${id}/ledger`)).body.data).toHaveLength(2);
  expect((await ask("GET", `/requests/${encodeURIComponent(`credit:${id}:opening`)}`)).status).toBe(404);
  expect(await ask("GET", "/ledger/check?full=yes")).toMatchObject({ status: 400, body: { error: { param: "full" } } });
  expect((await ask("GET", "/ledger/check?full=true")).body).toEqual({
    ok: true,
    accounts: 1,
    difference_usd: "0.00",
    open_holds: 0,
    overdue_holds: 0,
    oldest_open_hold_seconds: 0,
    undecided: 0,
    of_accounts: 1,
    next: null,
  });
});

test("while MongoDB is unavailable every route answers 503 with Retry-After", async () => {
  const { mongo, stores } = await ownServers({ mongo: true });
  const server = await startApiServer({ stores });
  const id = await createAccount(server);
  await mongo.stop();
  const routes: [string, string, object?][] = [
    ["GET", "/accounts"],
    ["GET", `/accounts/${id}/keys`],
    ["POST", `/accounts/${id}/keys`, {}],
    ["POST", `/accounts/${id}/credits`, { amount_usd: "1", idempotency_key: "a" }],
    ["GET", "/ledger/check"],
  ];
  const asked = routes.map(async ([method, path, body]) => {
    const answer = await server.ask(method, path, body);
    expect(answer, `${method} ${path}`).toMatchObject({ status: 503, body: { error: { code: "no_capacity" } } });
    expect(answer.headers.get("retry-after")).toBe("1");
  });
  await Promise.all(asked);
  await mongo.start();
  await expect.poll(async () => (await server.ask("GET", `/accounts/${id}`)).status).toBe(200);
});
