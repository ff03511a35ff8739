import { expect, test } from "vitest";
import { keyOf, managedAccount } from "../support/account-caller.ts";
import { postWith } from "../support/service.ts";
import { asking, localModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "5000" });
const chat = "/v1/chat/completions";
const soon = () => Math.floor(Date.now() / 1000) + 3_600;

test("a key that manages makes, lists, changes and revokes keys of its account", async () => {
  const { service } = running;
  const { account, ask, id } = await managedAccount(service);
  const fields = { name: "ci", budget: { limit_usd: "5.00", period: "day" }, models: ["local/*"], expires_at: soon() };
  const made = await ask("POST", "/keys", fields);
  const cache = { enabled: false, ttl_seconds: 300, locked: false };
  expect(made).toMatchObject({
    status: 201,
    body: { ...fields, scopes: ["inference"], prompt_cache: "off", cache, account: account.id },
  });
  expect(made.headers.get("cache-control")).toBe("no-store");
  const { key: secret, ...shown } = made.body;
  const callWith = async (key: string) => (await postWith(service.baseUrl, key)(chat, asking(localModel))).status;
  expect(await callWith(secret)).toBe(200);

  // The use of a key is recorded beside its call.
  const list = () => ask("GET", "/keys?limit=1");
  await expect.poll(async () => (await list()).body.data[0]?.["last_used_at"]).toEqual(expect.any(Number));
  const listed = await list();
  const spent = { spent_usd: expect.stringMatching(/^\d+\.\d{2,9}$/), resets_at: expect.any(Number) };
  const budget = { ...fields.budget, ...spent };
  expect(listed.body).toMatchObject({
    data: [{ ...shown, budget, last_used_at: expect.any(Number) }],
    has_more: true,
  });
  expect(JSON.stringify(listed.body)).not.toContain(secret);

  const patch = { budget: null, models: null, expires_at: null, name: null, prompt_cache: "auto" };
  expect(await ask("PATCH", `/keys/${made.body.id}`, patch)).toMatchObject({ status: 200, body: patch });
  expect(await ask("DELETE", `/keys/${made.body.id}`)).toMatchObject({
    status: 200,
    body: { revoked_at: expect.any(Number) },
  });
  expect(await callWith(secret)).toBe(401);
  // A key may revoke itself.
  expect(await ask("DELETE", `/keys/${id}`)).toMatchObject({ status: 200 });
});

test("the default for the response cache is replaced whole, and cannot be both enabled and locked", async () => {
  const { ask } = await managedAccount(running.service);
  const { key: _, ...made } = (await ask("POST", "/keys", { cache: { enabled: true, ttl_seconds: 86_400 } })).body;
  expect(made.cache).toEqual({ enabled: true, ttl_seconds: 86_400, locked: false });
  const path = `/keys/${made.id}`;
  expect((await ask("PATCH", path, { name: "ci" })).body.cache).toEqual(made.cache);
  const locked = { enabled: false, ttl_seconds: 300, locked: true };
  expect((await ask("PATCH", path, { cache: { locked: true } })).body.cache).toEqual(locked);
  for (const [cache, param] of [
    [{ enabled: true, locked: true }, "cache.locked"],
    [{ enabled: "true" }, "cache.enabled"],
    [{ ttl_seconds: 0 }, "cache.ttl_seconds"],
    [{ ttl_seconds: 86_401 }, "cache.ttl_seconds"],
    [{ ttl_seconds: 1.5 }, "cache.ttl_seconds"],
    [{ ttl: 5 }, "cache.ttl"],
    [null, "cache"],
  ] as const)
    expect(await ask("PATCH", path, { cache })).toMatchObject({ status: 400, body: { error: { param } } });
  const { data } = (await ask("GET", "/keys?limit=1")).body;
  expect(data).toMatchObject([{ id: made.id, cache: locked }]);
});

test("any key sees itself and its account; only one that manages sees keys", async () => {
  const { service } = running;
  const account = await service.account("7");
  const { ask, id, post } = await keyOf(service, account.id, { name: "app" });
  const called = await post(chat, asking(localModel));
  expect(called.status).toBe(200);
  await service.settled();
  const usd = expect.stringMatching(/^\d+\.\d{2,9}$/);
  expect(await ask("GET", "/key")).toMatchObject({
    status: 200,
    body: {
      id,
      name: "app",
      account: { id: account.id, name: "test", tier: "standard", frozen: false },
      budget: null,
      usage: { day_usd: usd, month_usd: usd, total_usd: usd },
    },
  });
  for (const [method, path] of [
    ["GET", "/keys"],
    ["POST", "/keys"],
    ["PATCH", `/keys/${id}`],
    ["DELETE", `/keys/${id}`],
  ] as const)
    expect(await ask(method, path, method === "GET" ? undefined : {})).toMatchObject({
      status: 403,
      body: { error: { code: "insufficient_scope" } },
    });
});

test("a key gives no key more than it has", async () => {
  const { service } = running;
  const { account, ask: owner } = await managedAccount(service);
  const own = {
    scopes: ["manage", "inference"],
    limits: { requests_per_minute: 50 },
    budget: { limit_usd: "5.00", period: "week" },
    models: ["local/*", "openai/gpt-4.1-mini"],
    expires_at: soon(),
  };
  const { ask, id } = await keyOf(service, account.id, own);
  const manageOnly = await keyOf(service, account.id, { scopes: ["manage"] });
  const target = (await owner("POST", "/keys", {})).body.id;

  const beyond: readonly (readonly [object, param: string])[] = [
    [{ limits: { requests_per_minute: 51 } }, "limits.requests_per_minute"],
    [{ budget: null }, "budget"],
    [{ budget: { limit_usd: "5.000000001", period: "week" } }, "budget"],
    [{ budget: { limit_usd: "1", period: "day" } }, "budget"],
    [{ models: null }, "models"],
    [{ models: ["local/chat", "openai/*"] }, "models"],
    [{ models: ["local/chat", "openai/gpt-4.1"] }, "models"],
    [{ expires_at: null }, "expires_at"],
    [{ expires_at: own.expires_at + 1 }, "expires_at"],
  ];
  const refused = (param: string) => ({ status: 403, body: { error: { code: "insufficient_scope", param } } });
  for (const [fields, param] of beyond) {
    expect(await ask("POST", "/keys", fields)).toMatchObject(refused(param));
    expect(await ask("PATCH", `/keys/${target}`, fields)).toMatchObject(refused(param));
    // A key cannot raise its own limits either.
    expect(await ask("PATCH", `/keys/${id}`, fields)).toMatchObject(refused(param));
  }
  const noDefault = { limits: { requests_per_minute: null } };
  expect(await ask("PATCH", `/keys/${id}`, noDefault)).toMatchObject(refused("limits.requests_per_minute"));
  expect(await manageOnly.ask("POST", "/keys", {})).toMatchObject(refused("scopes"));
  expect(await manageOnly.ask("PATCH", `/keys/${manageOnly.id}`, { scopes: ["manage", "inference"] })).toMatchObject(
    refused("scopes"),
  );
  expect((await owner("GET", "/keys")).body.data).toHaveLength(5);

  // A new key inherits the creator's values by default, and may get less.
  const { scopes: _, ...bounds } = own;
  expect(await ask("POST", "/keys", {})).toMatchObject({ status: 201, body: { ...bounds, scopes: ["inference"] } });
  const less = {
    limits: { requests_per_minute: 50, tokens_per_minute: 10 },
    budget: { limit_usd: "5.00", period: "total" },
    models: ["local/chat", "local/*"],
    expires_at: own.expires_at - 1,
  };
  const made = await ask("POST", "/keys", less);
  expect(made).toMatchObject({ status: 201, body: { ...less, shares_budget_of: [id] } });

  // A budget is raised only where it is shared.
  const small = { budget: { limit_usd: "1.00", period: "week" } };
  const other = await keyOf(service, account.id, small);
  expect(await ask("PATCH", `/keys/${other.id}`, { budget: own.budget })).toMatchObject(refused("budget"));
  for (const [of, { budget }] of [
    [other.id, { budget: { limit_usd: "0.50", period: "week" } }],
    [made.body.id, small],
    [made.body.id, own],
  ] as const)
    expect(await ask("PATCH", `/keys/${of}`, { budget })).toMatchObject({ status: 200, body: { budget } });
});

test("keys of other accounts do not exist", async () => {
  const { service } = running;
  const [{ ask }, other] = [await managedAccount(service), await managedAccount(service)];
  for (const id of [other.id, "key_none"]) {
    const none = { status: 404, body: { error: { code: "not_found" } } };
    expect(await ask("PATCH", `/keys/${id}`, { name: "mine" })).toMatchObject(none);
    expect(await ask("DELETE", `/keys/${id}`)).toMatchObject(none);
    expect(await ask("GET", `/keys?after=${id}`)).toMatchObject({ status: 400, body: { error: { param: "after" } } });
  }
  expect(await other.ask("GET", "/key")).toMatchObject({ status: 200, body: { name: null, revoked_at: null } });
});

test("malformed fields are refused by their names", async () => {
  const { ask } = await managedAccount(running.service);
  const rows: readonly (readonly [object, param: string])[] = [
    [{ scopes: [] }, "scopes"],
    [{ scopes: ["admin"] }, "scopes[0]"],
    [{ budget: { limit_usd: "0", period: "day" } }, "budget.limit_usd"],
    [{ budget: { limit_usd: "9000000.000000001", period: "day" } }, "budget.limit_usd"],
    [{ budget: { limit_usd: "-1", period: "day" } }, "budget.limit_usd"],
    [{ budget: { limit_usd: 5, period: "day" } }, "budget.limit_usd"],
    [{ budget: { limit_usd: "5", period: "year" } }, "budget.period"],
    [{ budget: { limit_usd: "5" } }, "budget.period"],
    [{ models: [] }, "models"],
    [{ models: ["*"] }, "models[0]"],
    [{ models: ["openai/gpt-*"] }, "models[0]"],
    [{ expires_at: 1_700_000_000 }, "expires_at"],
    [{ expires_at: "2026-12-31" }, "expires_at"],
    [{ account: "acct_other" }, "account"],
  ];
  for (const [fields, param] of rows)
    expect(await ask("POST", "/keys", fields)).toMatchObject({ status: 400, body: { error: { param } } });
});

test("an account has at most 1,000 keys that are not revoked", async () => {
  const { ask, id } = await managedAccount(running.service);
  for (let made = 2; made < 1_000; made += 50)
    await Promise.all(Array.from({ length: Math.min(50, 1_000 - made) }, () => ask("POST", "/keys", {})));
  const refused = await ask("POST", "/keys", {});
  expect(refused).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  expect(refused.headers.get("x-should-retry")).toBe("false");
  const [key] = (await ask("GET", "/keys?limit=1")).body.data;
  expect(key?.id).not.toBe(id);
  await ask("DELETE", `/keys/${key?.id}`);
  expect(await ask("POST", "/keys", {})).toMatchObject({ status: 201 });
});
