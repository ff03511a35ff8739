import { expect, test } from "vitest";
import { browse, cookieOf, signIn } from "../support/dashboard-setup.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { type Customer, type Service, spawnApi, startService, testAdminToken } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";

const shared = ofFile(
  async (onEnd) => {
    const { clock, ...time } = movableClock();
    const stores = await testStores();
    const service = await startService(stores, { clock, onEnd, env: { SIGN_IN_FAILURES_PER_MINUTE: "3" } });
    return { ...time, stores, service };
  },
  () => {},
);

const keyOf = (service: Service, { id }: Customer, body: object = {}) =>
  service.admin<{ id: string; key: string }>("POST", `/accounts/${id}/keys`, body);

const balance = "/dashboard/api/v1/balance";
const accounts = "/dashboard/api/admin/v1/accounts";
const session = "/dashboard/session";
/** The sessions of a browser that signed in, and signed out again or was signed out. */
const nobody = { object: "session", account: null, operator: null };

test("a session has the rights of its key under the dashboard, and no others", async () => {
  const { service } = shared;
  const customer = await service.account("2.00");
  const cookie = await signIn(service, { key: customer.key });

  const { body, headers } = await browse(service, "GET", session, { cookie });
  expect(body).toMatchObject({
    object: "session",
    account: {
      id: customer.id,
      name: "test",
      key: { prefix: `${customer.key.slice(0, 8)}...`, scopes: ["inference"] },
    },
    operator: null,
    service: {
      public_url: service.baseUrl,
      topups: false,
      docs: "/docs",
      rate_limits: {
        requests_per_minute: expect.any(Number) as number,
        tokens_per_minute: expect.any(Number) as number,
        concurrent_requests: expect.any(Number) as number,
      },
    },
  });
  expect(JSON.stringify(body)).not.toContain(customer.key);
  expect(headers.get("cache-control")).toBe("no-store");
  expect((await browse(service, "GET", balance, { cookie })).body).toMatchObject({ balance_usd: "2.00" });
  const chat = await browse(service, "POST", "/dashboard/api/v1/chat/completions", {
    cookie,
    body: asking(localModel),
  });
  expect([chat.status, chat.headers.get("x-xm-cost-usd")]).toEqual([200, expect.any(String)]);
  expect((await browse(service, "GET", "/dashboard/api/v1/uploads", { cookie })).body).toMatchObject({ data: [] });
  expect((await browse(service, "GET", "/dashboard/api/v1/models", { cookie })).status).toBe(200);
  expect((await browse(service, "GET", "/dashboard/api/admin/v1/accounts", { cookie })).status).toBe(401);

  const { key } = await keyOf(service, customer, { scopes: ["manage"] });
  const refused = await browse(service, "POST", "/dashboard/api/v1/chat/completions", {
    cookie: await signIn(service, { key }),
    body: asking(localModel),
  });
  expect([refused.status, refused.body.error?.code]).toEqual([403, "insufficient_scope"]);
});

test("the cookie is for scripts unreadable, for this path alone, and useless anywhere else", async () => {
  const { service } = shared;
  const customer = await service.account("1.00");
  const answer = await browse(service, "POST", session, { body: { key: customer.key } });
  const attributes = (answer.headers.get("set-cookie") ?? "").split("; ").slice(1);
  expect(attributes).toEqual(expect.arrayContaining(["Path=/dashboard", "HttpOnly", "SameSite=Strict"]));
  expect(attributes.filter((each) => /^(domain|secure)/i.test(each))).toEqual([]);
  const behindTls = await browse(service, "POST", session, {
    body: { key: customer.key },
    headers: { "sec-fetch-site": "same-origin", "x-forwarded-proto": "https" },
  });
  const secure = (behindTls.headers.get("set-cookie") ?? "").split("; ");
  expect(secure[0]).toMatch(/^__Host-dashboard_session=[\w-]{43}$/);
  expect(secure).toEqual(expect.arrayContaining(["Path=/", "HttpOnly", "SameSite=Strict", "Secure"]));
  // Another host of the domain can set the name without the prefix: neither beside the session's cookie nor alone does it count.
  const overTls = async (...cookies: readonly string[]) => {
    const headers = { "sec-fetch-site": "same-origin", "x-forwarded-proto": "https" };
    return (await browse(service, "GET", balance, { cookie: cookies.join("; "), headers })).status;
  };
  expect(await overTls(`dashboard_session=${"A".repeat(43)}`, cookieOf(behindTls))).toBe(200);
  expect(await overTls(cookieOf(answer))).toBe(401);

  const cookie = cookieOf(answer);
  const admin = await signIn(service, { admin_token: testAdminToken });
  for (const [method, path, body] of [
    ["GET", "/v1/balance", undefined],
    ["POST", "/v1/chat/completions", asking(localModel)],
    ["GET", "/v1/uploads", undefined],
    ["GET", "/admin/v1/accounts", undefined],
  ] as const)
    for (const each of [cookie, admin])
      expect([path, (await browse(service, method, path, { cookie: each, body })).status]).toEqual([path, 401]);
  expect((await browse(service, "GET", "/media/file_x", { cookie })).status).toBe(404);
});

test("writes from other sites are refused, with a session and at sign-in", async () => {
  const { service } = shared;
  const customer = await service.account("1.00");
  const cookie = await signIn(service, { key: customer.key });
  const write = (headers: Record<string, string>) =>
    browse(service, "POST", "/dashboard/api/v1/chat/completions", { cookie, body: asking(localModel), headers });
  const { host } = new URL(service.baseUrl);
  const refused = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    { "sec-fetch-site": "cross-site", origin: service.baseUrl },
    { origin: "https://evil.example" },
    { origin: `http://${host}.evil.example` },
    { origin: "null" },
    {},
  ];
  for (const headers of refused) {
    const { status, body } = await write(headers);
    expect([headers, status, body.error?.code]).toEqual([headers, 403, "cross_site_request"]);
  }
  expect((await write({ origin: service.baseUrl })).status).toBe(200);
  const login = await browse(service, "POST", session, { body: { key: customer.key }, headers: {} });
  expect([login.status, login.headers.get("set-cookie")]).toEqual([403, null]);
  const { headers } = await browse(service, "GET", balance, { cookie, headers: { origin: "https://evil.example" } });
  expect(headers.get("access-control-allow-origin")).toBeNull();
  expect((await browse(service, "DELETE", `${session}?kind=account`, { cookie, headers: {} })).status).toBe(403);
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(200);
});

test("every sign-in has a new secret, and ends the session that its cookie named", async () => {
  const { service } = shared;
  const customer = await service.account("1.00");
  const planted = `dashboard_session=${"A".repeat(43)}`;
  const first = await browse(service, "POST", session, { cookie: planted, body: { key: customer.key } });
  expect(cookieOf(first)).toMatch(/^dashboard_session=[\w-]{43}$/);
  expect(cookieOf(first)).not.toBe(planted);
  expect((await browse(service, "GET", balance, { cookie: planted })).status).toBe(401);
  const second = await browse(service, "POST", session, {
    cookie: cookieOf(first),
    body: { key: customer.key },
  });
  expect((await browse(service, "GET", balance, { cookie: cookieOf(first) })).status).toBe(401);
  expect((await browse(service, "GET", balance, { cookie: cookieOf(second) })).status).toBe(200);
});

test("signing out ends the session, also for who copied the cookie", async () => {
  const { service } = shared;
  const customer = await service.account("1.00");
  const cookie = await signIn(service, { key: customer.key });
  const out = await browse(service, "DELETE", `${session}?kind=account`, { cookie });
  expect(out.headers.get("set-cookie")).toMatch(/^dashboard_session=;.*Expires=Thu, 01 Jan 1970/);
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(401);
  expect((await browse(service, "GET", session, { cookie })).body).toMatchObject(nobody);
});

test("a browser is an account and an operator at once: neither sign-in nor sign-out of one touches the other", async () => {
  const { service } = shared;
  const customer = await service.account("2.00");
  const account = await signIn(service, { key: customer.key });
  const begun = await browse(service, "POST", session, { cookie: account, body: { admin_token: testAdminToken } });
  expect(begun.body).toMatchObject({ account: { id: customer.id }, operator: { name: "admin" } });
  const operator = cookieOf(begun);
  expect(operator).toMatch(/^dashboard_operator_session=[\w-]{43}$/);
  const statuses = async (cookie: string) =>
    await Promise.all([balance, accounts].map(async (path) => (await browse(service, "GET", path, { cookie })).status));

  const both = `${account}; ${operator}`;
  expect(await statuses(both)).toEqual([200, 200]);
  const other = await service.account("1.00");
  const again = cookieOf(await browse(service, "POST", session, { cookie: both, body: { key: other.key } }));
  expect(await statuses(both)).toEqual([401, 200]);
  expect(await statuses(`${again}; ${operator}`)).toEqual([200, 200]);
  // One secret in the other's cookie is no session at all.
  const secret = (cookie: string) => cookie.slice(cookie.indexOf("=") + 1);
  const swapped = `dashboard_session=${secret(operator)}; dashboard_operator_session=${secret(again)}`;
  expect(await statuses(swapped)).toEqual([401, 401]);
  expect((await browse(service, "GET", session, { cookie: swapped })).body).toMatchObject(nobody);

  expect((await browse(service, "DELETE", session, { cookie: `${again}; ${operator}` })).status).toBe(400);
  await browse(service, "DELETE", `${session}?kind=operator`, { cookie: `${again}; ${operator}` });
  expect(await statuses(`${again}; ${operator}`)).toEqual([200, 401]);
});

test("a session ends with its key, within a second of its revocation", async () => {
  const { service, advance } = shared;
  const customer = await service.account("1.00");
  const { id, key } = await keyOf(service, customer);
  const cookie = await signIn(service, { key });
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(200);
  await service.admin("DELETE", `/keys/${id}`);
  advance(1_000);
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(401);
  expect((await browse(service, "GET", session, { cookie })).body).toMatchObject(nobody);
});

test("a session ends when its key expires", async () => {
  const { service, advance } = shared;
  const customer = await service.account("1.00");
  const expires_at = Math.floor((Date.now() + 13 * 3_600_000) / 1_000) + 3_600;
  const { key } = await keyOf(service, customer, { expires_at });
  advance(13 * 3_600_000);
  const cookie = await signIn(service, { key });
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(200);
  advance(3_600_000);
  expect((await browse(service, "GET", balance, { cookie })).body.error?.code).toBe("key_expired");
  expect((await browse(service, "GET", session, { cookie })).body).toMatchObject(nobody);
});

test("a session ends twelve hours after its sign-in, however much it was used", async () => {
  const { service, advance } = shared;
  const customer = await service.account("1.00");
  const cookie = await signIn(service, { key: customer.key });
  advance(12 * 3_600_000 - 60_000);
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(200);
  advance(60_000);
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(401);
});

test("an operator's session uses the admin interface, and ends when its token is no longer configured", async () => {
  const { service, stores } = shared;
  const cookie = await signIn(service, { admin_token: testAdminToken });
  expect((await browse(service, "GET", accounts, { cookie })).body).toMatchObject({ object: "list" });
  expect((await browse(service, "GET", session, { cookie })).body).toMatchObject({
    account: null,
    operator: { name: "admin" },
  });
  expect((await browse(service, "GET", balance, { cookie })).status).toBe(401);
  const rotated = await startService(stores, { env: { ADMIN_TOKEN: "another-token-of-the-tests-of-32-characters" } });
  expect((await browse(rotated, "GET", accounts, { cookie })).status).toBe(401);
});

test.each<[string, from: (n: number) => string, address: string, other: string]>([
  ["an address, whatever it claims", (n) => `203.0.113.${n}, 127.0.0.1, 198.51.100.1`, "198.51.100.1", "198.51.100.2"],
  ["an IPv6 network of 64 bits", (n) => `2001:db8::${n}`, "2001:db8::1", "2001:db8:0:1::1"],
])("wrong admin tokens of %s are limited as failed sign-ins are, and logged", async (_, from, address, other) => {
  const env = { SIGN_IN_FAILURES_PER_MINUTE: "3", TRUSTED_PROXIES: "127.0.0.1" };
  const api = await spawnApi(await testStores(), env);
  let asked = 0;
  const ask = async (token: string, path: string, by = from(++asked)) => {
    const headers = { authorization: `Bearer ${token}`, "x-forwarded-for": by };
    const { status, headers: answered } = await fetch(`${api.client.baseUrl}/admin/${path}`, { headers });
    return status === 429 ? [status, Number(answered.get("retry-after")) > 0] : status;
  };
  expect(await ask("wrong", "openapi.json")).toBe(401);
  expect(await ask("wrong", "v1/accounts")).toBe(401);
  expect(await ask(testAdminToken, "v1/accounts")).toBe(200);
  expect(await ask("wrong", "v1/accounts")).toBe(401);
  expect(await ask("wrong", "openapi.json")).toEqual([429, true]);
  // The right token is refused as well; otherwise the limit would reveal it.
  for (const path of ["v1/accounts", "openapi.json"]) expect(await ask(testAdminToken, path)).toEqual([429, true]);
  expect(await ask(testAdminToken, "v1/accounts", other)).toBe(200);
  const logged = await api.line(({ msg }) => msg === "an admin token was refused");
  expect(logged).toMatchObject({ address });
});

test("failed sign-ins of an address are limited, in one shape, and good ones are not counted", async () => {
  const { service } = shared;
  const customer = await service.account("1.00");
  const unknown = { key: `live_${"x".repeat(40)}` };
  for (let n = 0; n < 5; n++) await signIn(service, { key: customer.key });
  const shapes = new Set<string>();
  for (const body of [unknown, { admin_token: "not-the-token-of-anyone" }, { code: "A".repeat(43) }]) {
    const { status, body: answer } = await browse(service, "POST", session, { body });
    const { request_id: _, ...rest } = answer as Record<string, unknown>;
    shapes.add(`${status} ${JSON.stringify(rest)}`);
  }
  expect(shapes.size).toBe(1);
  const { status, headers } = await browse(service, "POST", session, { body: unknown });
  expect([status, headers.get("retry-after")]).toEqual([429, expect.stringMatching(/^\d+$/)]);
  // A valid key is refused as well; otherwise the limit would reveal it.
  expect((await browse(service, "POST", session, { body: { key: customer.key } })).status).toBe(429);
});
