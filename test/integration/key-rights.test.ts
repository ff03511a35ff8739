import { expect, test } from "vitest";
import { keyOf, managedAccount } from "../support/account-caller.ts";
import { examplesOf, openCaller, valuesOf } from "../support/openapi-caller.ts";
import { asking, localModel, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });
const inAnHour = () => Math.floor(Date.now() / 1000) + 3_600;

/** Every route that runs a model or accepts a file, with the example of its description. */
async function paidOperations() {
  const { document, post, isForm } = await openCaller(running.service);
  const posts = document.operations.filter(
    ({ method, operation }) => method === "POST" && !operation.tags.some((tag) => /^(Keys|Account|Top-ups)/.test(tag)),
  );
  expect(posts.length).toBeGreaterThan(20);
  return posts.map((described) => ({
    described,
    path: described.path,
    ask: async (key: string) => {
      const [[, body] = ["", {}]] = isForm(described) ? [] : examplesOf(described);
      const response = await post(described, { key }, { body });
      const { type, values } = await valuesOf(response);
      const { status } = response;
      expect([described.path, document.faultsOf(described, { status, type, value: values[0] })]).toEqual([
        described.path,
        [],
      ]);
      return { status, headers: response.headers, body: values[0] };
    },
  }));
}

/** The error in the format of the path: Messages has types, Gemini has statuses. */
function errorAt(path: string, expected: { code: string; type: string; messages: string; gemini: string }): object {
  if (path.startsWith("/v1/messages")) return { type: "error", error: { type: expected.messages } };
  if (path.startsWith("/v1beta")) return { error: { status: expected.gemini } };
  return { error: { code: expected.code, type: expected.type } };
}

test("no paid route serves a key without the scope `inference`", async () => {
  const { account } = await managedAccount(running.service);
  const { key } = await keyOf(running.service, account.id, { scopes: ["manage"] });
  const code = { code: "insufficient_scope", type: "permission_error" };
  for (const { path, ask } of await paidOperations()) {
    const { status, headers, body } = await ask(key);
    expect([path, status, headers.get("x-should-retry")]).toEqual([path, 403, "false"]);
    expect(body).toMatchObject(errorAt(path, { ...code, messages: "permission_error", gemini: "PERMISSION_DENIED" }));
  }
  await running.service.settled();
});

test("no paid route serves a key that has expired, also one that is cached", async () => {
  const { service, advance } = running;
  const { account } = await managedAccount(service);
  const { key, ask: own } = await keyOf(service, account.id, { expires_at: inAnHour() });
  expect((await own("GET", "/key")).status).toBe(200);
  const operations = await paidOperations();
  advance(3_601_000);
  const code = { code: "key_expired", type: "authentication_error" };
  for (const { path, ask } of operations) {
    const { status, body } = await ask(key);
    expect([path, status]).toEqual([path, 401]);
    expect(body).toMatchObject(errorAt(path, { ...code, messages: "authentication_error", gemini: "UNAUTHENTICATED" }));
  }
  expect(await own("GET", "/key")).toMatchObject({ status: 401, body: { error: { code: "key_expired" } } });
  expect(await own("GET", "/balance")).toMatchObject({ status: 401 });
});

test("no route that runs a model serves a key that may not call it", async () => {
  const { account } = await managedAccount(running.service);
  const { key } = await keyOf(running.service, account.id, { models: ["none/*", "local/other"] });
  const code = { code: "model_not_allowed", type: "permission_error" };
  for (const { path, ask } of await paidOperations()) {
    // Files do not belong to a model.
    if (path.startsWith("/v1/uploads")) continue;
    const { status, headers, body } = await ask(key);
    expect([path, status, headers.get("x-should-retry")]).toEqual([path, 403, "false"]);
    expect(body).toMatchObject(errorAt(path, { ...code, messages: "permission_error", gemini: "PERMISSION_DENIED" }));
  }
  await running.service.settled();
});

test("a list of models also covers fallbacks and a provider's own names", async () => {
  const { service } = running;
  const { account } = await managedAccount(service);
  const { key } = await keyOf(service, account.id, { models: ["local/*"] });
  const post = async (path: string, body: object) => {
    const response = await fetch(service.baseUrl + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as object };
  };
  const refused = (param: string) => ({ status: 403, body: { error: { code: "model_not_allowed", param } } });
  const chat = "/v1/chat/completions";
  expect(await post(chat, asking(localModel))).toMatchObject({ status: 200 });
  expect(await post(chat, { ...asking(localModel), models: [providerModel] })).toMatchObject(refused("models[0]"));
  expect(await post(chat, asking(providerModel))).toMatchObject(refused("model"));
  expect(await post("/v1/responses", { model: "gpt-4.1-mini", input: "Hello" })).toMatchObject(refused("model"));
  expect(await post("/v1/responses", { model: localModel, input: "Hello" })).toMatchObject({ status: 200 });
  const listed = await fetch(`${service.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  expect(JSON.stringify(await listed.json())).toContain(providerModel);
});

test("a changed list, scope or expiry is in force at the next call", async () => {
  const { service } = running;
  const { account, ask: owner } = await managedAccount(service);
  const { id, key } = await keyOf(service, account.id);
  const call = async () => {
    const response = await fetch(`${service.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(asking(localModel)),
    });
    await response.text();
    return response.status;
  };
  expect(await call()).toBe(200);
  for (const [patch, status] of [
    [{ models: ["none/*"] }, 403],
    [{ models: null }, 200],
    [{ scopes: ["manage"] }, 403],
    [{ scopes: ["inference"] }, 200],
  ] as const) {
    expect(await owner("PATCH", `/keys/${id}`, patch)).toMatchObject({ status: 200 });
    expect(await call()).toBe(status);
  }
});

test("a key has a quota of requests for its account, which calls do not share", async () => {
  const { ask, key } = await managedAccount(running.service);
  const answers = await Promise.all(Array.from({ length: 350 }, () => ask("GET", "/balance")));
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(350 - refused.length);
  expect(refused.length).toBeGreaterThanOrEqual(5);
  expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  const called = await fetch(`${running.service.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(asking(localModel)),
  });
  expect(called.status).toBe(200);
});
