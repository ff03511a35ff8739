import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { createProviderKeys, openCredential, sealedAs } from "../../shared/provider-keys/index.ts";
import { createSecrets, newPrivateKey, publicKeyOf } from "../../shared/secrets/index.ts";
import { createWebhooks } from "../../shared/webhooks/index.ts";
import { type KeyBody, keyOf, managedAccount } from "../support/account-caller.ts";
import { mockError } from "../support/mock-openai.ts";
import type { MockRequest, ProviderAnswer } from "../support/mock-provider.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { readDocument } from "../support/openapi.ts";
import { environment } from "../support/service.ts";
import { gate, providerModel, startWithProvider } from "../support/service-setup.ts";
import { webhookEnvironment } from "../support/webhook-receiver.ts";
import { hookUrl } from "../support/webhook-store-setup.ts";

const good = "sk-own-aaaabbbbccccddddeeeeffff0001";
const bad = "sk-own-zzzzyyyyxxxxwwwwvvvvuuuu0002";
const quoted = `Incorrect API key provided: ${bad}, or ${bad.slice(5, 20)}, sk-own-z***0002.`;

/** What OpenAI answers to `GET /models`, by the credential. */
const models = ({ headers, path }: MockRequest): ProviderAnswer => {
  if (path !== "/v1/models") return mockError(404, "none");
  const key = headers.authorization?.replace("Bearer ", "");
  if (key === good) return { body: { object: "list", data: [] } };
  if (key === bad) return mockError(401, quoted, { code: "invalid_api_key" });
  if (key?.includes("forbidden")) return mockError(403, "Missing scopes: api.model.read");
  if (key?.includes("unpaid")) return mockError(400, "Your credit balance is too low to access the API.");
  if (key?.includes("limited")) return mockError(429, "Slow down.", { headers: { "retry-after": "30" } });
  return mockError(500, "Out of order.");
};

const running = ofFile(
  async (onEnd) => {
    const { clock, ...time } = movableClock();
    const oldKey = await newPrivateKey();
    const ofNewKey = await webhookEnvironment();
    const env = { ...ofNewKey, SECRETS_PRIVATE_KEYS: `${ofNewKey.SECRETS_PRIVATE_KEYS},${oldKey}` };
    const started = await startWithProvider({ ...env, ANTHROPIC_BASE_URL: "http://127.0.0.1:1" }, onEnd, clock);
    onEnd(() => started.provider.close());
    const mongo = await connectMongo(started.stores.MONGODB_URI, clock, createLogger("test", "silent"));
    onEnd(() => mongo.close());
    const secrets = createSecrets(loadConfig(environment(started.stores, env)));
    const document = await readDocument(started.service.baseUrl);
    const providerKeys = createProviderKeys({ mongo, clock });
    return { ...started, ...time, mongo, secrets, env, oldKey, document, providerKeys };
  },
  ({ provider }) => {
    provider.reset();
    provider.always(models);
  },
);

async function owner() {
  const { document, service } = running;
  const customer = await managedAccount(service);
  /** Compares the shape of each answer with its description. */
  async function ask(method: string, path = "", body?: unknown) {
    const answer = await customer.ask(method, `/provider-keys${path}`, body);
    const route = `/v1/provider-keys${path}`.replace(/pkey_\w+/, "{id}").replace(/\?.*/, "");
    const described = document.operations.find((each) => each.method === method && each.path === route);
    const value = { status: answer.status, type: "application/json", value: answer.body };
    expect([method, route, described && document.faultsOf(described, value)]).toEqual([method, route, []]);
    return answer;
  }
  async function create(fields: object = {}, query = ""): Promise<KeyBody> {
    const { status, body } = await ask("POST", query, { provider: "openai", credential: good, ...fields });
    expect([status, body.error]).toEqual([201, undefined]);
    return body;
  }
  return { ...customer, ask, create };
}

/** Everything that the stores have, as text. */
async function stored(): Promise<string> {
  const { mongo } = running;
  const all = await mongo.db.collections();
  const found = await Promise.all(all.map((collection) => collection.find().toArray()));
  return JSON.stringify(found, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

test("a key is checked by a worker, sealed, shown without its credential, changed and deleted", async () => {
  const { mongo, secrets, provider, service } = running;
  const { ask, create, account, id: keyId } = await owner();
  const created = await create({ name: "ours", mode: "only", priority: 3, models: [providerModel], key_ids: [keyId] });
  expect(created).toEqual({
    id: expect.stringMatching(/^pkey_\w{20}$/) as string,
    object: "provider_key",
    provider: "openai",
    name: "ours",
    label: "sk-...0001",
    mode: "only",
    priority: 3,
    disabled: false,
    models: [providerModel],
    key_ids: [keyId],
    config: {},
    version: 1,
    status: "ok",
    status_message: null,
    checked_at: expect.any(Number) as number,
    last_used_at: null,
    created_at: expect.any(Number) as number,
  });
  expect(provider.requests.map(({ method, path, headers }) => [method, path, headers.authorization])).toEqual([
    ["GET", "/v1/models", `Bearer ${good}`],
  ]);
  expect((await ask("GET", `/${created.id}`)).body).toEqual(created);
  expect((await ask("GET")).body.data).toEqual([created]);
  const document = await mongo.db.collection("providerKeys").findOne({ account: account.id });
  const { upstream, version, sealed } = document as unknown as { upstream: string; version: number; sealed: string };
  const key = { account: account.id, id: created.id, upstream, version, sealed };
  expect(await openCredential(secrets, key)).toBe(good);
  for (const moved of [{ account: "acct_1" }, { id: "pkey_1" }, { upstream: "xai" }, { version: 2 }])
    await expect(openCredential(secrets, { ...key, ...moved })).rejects.toThrow("damaged");

  const patched = await ask("PATCH", `/${created.id}`, { name: null, mode: "last", models: null, disabled: true });
  expect(patched.body).toEqual({ ...created, name: null, mode: "last", models: null, disabled: true });
  const listed = await service.admin<KeyBody>("GET", `/accounts/${account.id}/provider-keys`);
  expect(listed.data).toEqual([{ ...patched.body, account: account.id }]);
  const deleted = await ask("DELETE", `/${created.id}`);
  expect(deleted.body).toEqual({ id: created.id, object: "provider_key", deleted: true });
  expect((await ask("GET", `/${created.id}`)).status).toBe(404);
  const text = await stored();
  for (const secret of [good, good.slice(7, 20)]) expect(text).not.toContain(secret);
  const audited = await service.admin<{ data: { action: string; who: string; targets: string[]; changes: object }[] }>(
    "GET",
    `/audit?target=${created.id}`,
  );
  expect(audited.data.map(({ action, who }) => [action, who])).toEqual([
    ["DELETE /v1/provider-keys/{id}", keyId],
    ["PATCH /v1/provider-keys/{id}", keyId],
    ["POST /v1/provider-keys", keyId],
  ]);
  expect(audited.data.at(-1)?.changes).toMatchObject({ provider: "openai", credential: "***" });
});

test.for([
  ["forbidden", { status: "no_permission", status_message: "status 403: Missing scopes: api.model.read" }],
  ["unpaid", { status: "no_permission", status_message: expect.stringContaining("credit balance") as string }],
  ["limited", { status: "rate_limited", status_message: "status 429: Slow down." }],
  ["broken", { status: "unknown", status_message: "status 500: Out of order." }],
] as const)("a credential whose check is %s is stored with that state", async ([kind, state]) => {
  const { create } = await owner();
  expect(await create({ credential: `sk-own-${kind}-0123456789` })).toMatchObject(state);
});

test("a credential with which nothing can be sent is refused with the reason", async () => {
  const { ask } = await owner();
  const private_key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ==\n-----END PRIVATE KEY-----\n";
  const robot = { client_email: "robot@p-00001.iam.gserviceaccount.com", private_key, private_key_id: "abc" };
  for (const [credential, config, reason] of [
    [{ ...robot, project_id: "p-00001" }, {}, "is not an RSA key"],
    ["AIzaSyOwn_0123456789-abcdefghijklm", { project: "p-00001", region: "europe-west4" }, "'global' only"],
  ] as const) {
    const { status, body } = await ask("POST", "", { provider: "vertex", credential, config });
    expect([status, body.error?.code, body.error?.message]).toEqual([
      400,
      "provider_key_invalid",
      expect.stringContaining(reason),
    ]);
  }
});

test("an unreachable provider, one without a free request, and `check=false` leave the state unknown", async () => {
  const { create } = await owner();
  running.provider.reset();
  const unknown = { status: "unknown" };
  expect(await create({ provider: "anthropic" })).toMatchObject({ ...unknown, status_message: "ECONNREFUSED" });
  expect(await create({ provider: "fal" })).toMatchObject(unknown);
  expect(await create({}, "?check=false")).toMatchObject({ ...unknown, status_message: null, checked_at: null });
  expect(running.provider.requests).toEqual([]);
});

test("a check that takes longer than 20 seconds is not waited for, and five are under way at most", async () => {
  const { provider, advance } = running;
  const { ask, create } = await owner();
  const { opened, open } = gate();
  onTestFinished(open);
  provider.always({ beforeHeaders: opened });
  const slow = Array.from({ length: 5 }, () => create());
  await provider.request(4);
  const refused = await ask("POST", "", { provider: "openai", credential: good });
  expect([refused.status, refused.body.error.code]).toEqual([429, "rate_limit_exceeded"]);
  advance(20_000);
  for (const created of await Promise.all(slow)) expect(created).toMatchObject({ status: "unknown", checked_at: null });
});

test("all secrets are sealed under the new key, so that the old one can be removed", async () => {
  const { mongo, service, providerKeys, oldKey, env } = running;
  const { account } = await owner();
  const [clock, old] = [systemClock, createSecrets({ SECRETS_PUBLIC_KEY: publicKeyOf(oldKey) })];
  const { endpoints } = createWebhooks({ mongo, secrets: old, clock });
  const headers = { "x-a": "b" };
  const { endpoint, secret } = await endpoints.create(account.id, { url: hookUrl("a"), events: ["*"], headers });
  await endpoints.rotateDefaultSecret(account.id, 0);
  const key = { id: "pkey_old", account: account.id, upstream: "openai", version: 1, config: {}, label: "" };
  const sealed = await old.seal(account.id, sealedAs(key), good);
  await providerKeys.insert(account.id, { ...key, sealed, state: undefined });
  const lost = await createSecrets({ SECRETS_PUBLIC_KEY: publicKeyOf(await newPrivateKey()) }).seal("a", "b", "c");
  await providerKeys.insert(account.id, { ...key, id: "pkey_lost", sealed: lost, state: undefined });

  const state = { object: "sealed_secrets", key: createSecrets(env).currentKey };
  expect(await service.admin("POST", "/secrets/rewrap")).toEqual({ ...state, remaining: 4 });
  await expect.poll(() => service.admin("GET", "/secrets")).toEqual({ ...state, remaining: 1 });
  const workers = createSecrets({ SECRETS_PRIVATE_KEYS: env.SECRETS_PRIVATE_KEYS.split(",")[0] });
  const found = await providerKeys.find(account.id, key.id);
  expect(found && (await openCredential(workers, found))).toBe(good);
  const hook = await mongo.db.collection("webhookEndpoints").findOne({ url: { $exists: true }, account: account.id });
  const { secrets: signing, sealedHeaders } = hook as unknown as {
    secrets: { sealed: string }[];
    sealedHeaders: string;
  };
  expect(await workers.open(account.id, endpoint.id, signing[0]?.sealed ?? "")).toBe(secret);
  expect(await workers.open(account.id, endpoint.id, sealedHeaders)).toBe(JSON.stringify(headers));
  await providerKeys.delete(account.id, "pkey_lost");

  // A credential that is replaced meanwhile prevails.
  await providerKeys.rotate(account.id, key.id, 1, { sealed, version: 1, state: undefined });
  const count = await providerKeys.sealedValues.resealOthers(
    String(workers.currentKey),
    async () => {
      await providerKeys.rotate(account.id, key.id, 1, { sealed: "1.newer.a", version: 2, state: undefined });
      return "1.stale.a";
    },
    () => {},
    new AbortController().signal,
  );
  expect([count, await providerKeys.find(account.id, key.id)]).toMatchObject([0, { sealed: "1.newer.a", version: 2 }]);
});

test("a credential that the provider refuses is not stored, and its message does not quote it", async () => {
  const { ask, create } = await owner();
  const error = {
    type: "invalid_request_error",
    code: "provider_key_invalid",
    param: "credential",
    message:
      "The provider does not accept the credential: status 401: Incorrect API key provided: sk-..., or ..., sk-...",
  };
  const refused = await ask("POST", "", { provider: "openai", credential: bad });
  expect([refused.status, refused.body.error]).toEqual([400, error]);
  expect((await ask("GET")).body.data).toEqual([]);
  const created = await create();
  const rotated = await ask("PATCH", `/${created.id}`, { credential: bad, name: "new" });
  expect([rotated.status, rotated.body.error]).toEqual([400, error]);
  expect((await ask("GET")).body.data).toEqual([created]);
  const text = await stored();
  for (const secret of [bad, bad.slice(5, 20), bad.slice(7, 15)]) expect(text).not.toContain(secret);
});

test("a rotation replaces the credential, and what is said of the earlier one changes nothing", async () => {
  const { providerKeys, provider, secrets } = running;
  const { ask, create, account } = await owner();
  const { id } = await create();
  const note = (version: number, status: "invalid" | "ok") =>
    providerKeys.noteState(account.id, id, version, status, status === "ok" ? undefined : "Revoked.");
  expect([await note(1, "invalid"), await note(1, "invalid")]).toEqual([true, false]);
  const next = "sk-own-limited-0123456789";
  const rotated = await ask("PATCH", `/${id}`, { credential: next });
  expect(rotated.body).toMatchObject({ version: 2, label: "sk-...6789", status: "rate_limited" });
  expect(await note(1, "invalid")).toBe(false);
  expect((await ask("GET", `/${id}`)).body).toMatchObject({ status: "rate_limited", version: 2 });
  const found = await providerKeys.find(account.id, id);
  expect(found && (await openCredential(secrets, found))).toBe(next);

  // Both read version 2.
  const { opened, open } = gate();
  const before = provider.requests.length;
  provider.always({ body: { data: [] }, beforeHeaders: opened });
  const both = ["3", "4"].map((n) => ask("PATCH", `/${id}`, { credential: good.replace("0001", `000${n}`) }));
  await provider.request(before + 1);
  open();
  expect((await Promise.all(both)).map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  expect((await ask("GET", `/${id}`)).body["version"]).toBe(3);
  provider.always(() => mockError(401, "Revoked."));
  const tested = await ask("POST", `/${id}/test`);
  expect([tested.status, tested.body.error.code]).toEqual([400, "provider_key_invalid"]);
  expect((await ask("GET", `/${id}`)).body).toMatchObject({
    status: "invalid",
    status_message: "status 401: Revoked.",
  });
  provider.always({ body: { data: [] } });
  expect((await ask("POST", `/${id}/test`)).body).toMatchObject({ status: "ok", status_message: null });
});

test("the providers that take keys are listed with their forms, settings and models", async () => {
  const { ask } = await owner();
  const { data } = (await ask("GET", "/providers")).body;
  expect(data.map(({ id }) => id)).not.toContain("local");
  expect(data.find(({ id }) => id === "openai")).toEqual({
    id: "openai",
    object: "key_provider",
    region: null,
    credentials: ["api_key"],
    settings: [],
    models: expect.objectContaining({ [providerModel]: "gpt-4.1-mini" }) as object,
  });
});

test.for([
  ["provider", { provider: "local" }],
  ["provider", { provider: "https://attacker.example" }],
  ["credential", { credential: "short" }],
  ["credential", { credential: `${good}\r\nx-evil: 1` }],
  ["credential", { credential: "a".repeat(16_385) }],
  ["credential", { credential: { api_key: good } }],
  ["mode", { mode: "sometimes" }],
  ["priority", { priority: 0.5 }],
  ["models", { models: [] }],
  ["models", { models: ["openai/none"] }],
  ["key_ids", { key_ids: [] }],
  ["key_ids", { key_ids: ["key_none"] }],
  ["config.resource", { config: { resource: "mine" } }],
  ["config.base_url", { config: { base_url: "http://127.0.0.1" } }],
  ["sealed", { sealed: "1.aaaaaaaa.aaaa" }],
] as const)("a provider key that is not valid names the field: %s (case %#)", async ([param, fields]) => {
  const { ask } = await owner();
  const { status, body } = await ask("POST", "?check=false", { provider: "openai", credential: good, ...fields });
  expect([status, body.error]).toMatchObject([400, { code: "invalid_value", param }]);
  expect(JSON.stringify(body)).not.toContain(good);
  expect((await ask("GET")).body.data).toEqual([]);
});

test("the keys that calls may use are read anew after each change, in order", async () => {
  const { service, providerKeys } = running;
  const { ask, create, account: own } = await owner();
  const ids = async () => (await providerKeys.listFor(own.id)).map(({ id }) => id);
  expect(await ids()).toEqual([]);
  const [second, first] = [await create({}, "?check=false"), await create({ priority: -1 }, "?check=false")];
  expect(await ids()).toEqual([first.id, second.id]);
  await ask("PATCH", `/${first.id}`, { disabled: true });
  expect(await ids()).toEqual([second.id]);
  expect(JSON.stringify(await providerKeys.listFor(own.id))).not.toContain("sealed");
  // The API holds this list in memory for every account, so it has only what routing needs of a key.
  const config = { resource: "mine", deployments: { "gpt-5.2": "ours", $set: "theirs" } };
  const azure = await create({ provider: "azure", config }, "?check=false");
  expect((await ask("GET", `/${azure.id}`)).body["config"]).toEqual(config);
  expect((await providerKeys.listFor(own.id)).at(-1)?.config).toEqual({ resource: "mine" });
  const other = await keyOf(service, (await managedAccount(service)).account.id, { scopes: ["manage"] });
  for (const [method, path] of [
    ["GET", ""],
    ["PATCH", ""],
    ["DELETE", ""],
    ["POST", "/test"],
  ] as const) {
    const body = method === "PATCH" ? {} : undefined;
    const at = `/provider-keys/${second.id}${path}`;
    const weak = await keyOf(service, own.id, { scopes: ["inference"] });
    const statuses = [await other.ask(method, at, body), await weak.ask(method, at, body)].map(({ status }) => status);
    expect([method, ...statuses]).toEqual([method, 404, 403]);
  }
});
