import { expect, onTestFinished, test } from "vitest";
import { keyOf, managedAccount } from "../support/account-caller.ts";
import { examplesOf, openCaller, valuesOf } from "../support/openapi-caller.ts";
import { asking, localModel, providerModel, serviceOfFile, startWithProvider } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });
const inAnHour = () => Math.floor(Date.now() / 1000) + 3_600;

/** Every route that runs a model or accepts a file, with the example of its description. */
async function paidOperations() {
  const { document, post, isForm } = await openCaller(running.service);
  const posts = document.operations.filter(
    ({ method, path, operation }) =>
      method === "POST" &&
      !path.endsWith("/cancel") &&
      !operation.tags.some((tag) => /^(Keys|Provider keys|Account|Top-ups|Jobs|Webhooks)/.test(tag)),
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
function errorAt(path: string, error: { code: string; type: string }): object {
  const gemini = error.type === "permission_error" ? "PERMISSION_DENIED" : "UNAUTHENTICATED";
  if (path.startsWith("/v1/messages")) return { type: "error", error: { type: error.type } };
  if (path.startsWith("/v1beta")) return { error: { status: gemini } };
  return { error };
}

/** Keys that no paid route serves; `after` is a time to wait. */
const refused: readonly (readonly [
  string,
  fields: () => object,
  number,
  code: string,
  type: string,
  after?: number,
])[] = [
  ["has no scope `inference`", () => ({ scopes: ["manage"] }), 403, "insufficient_scope", "permission_error"],
  [
    "may not call its model",
    () => ({ models: ["none/*", "local/other"] }),
    403,
    "model_not_allowed",
    "permission_error",
  ],
  ["has expired", () => ({ expires_at: inAnHour() }), 401, "key_expired", "authentication_error", 3_601_000],
];

test.for(refused)(
  "no paid route serves a key that %s, also if it is cached",
  async ([, fields, status, code, type, after]) => {
    const { service, advance } = running;
    const { account } = await managedAccount(service);
    const { key, ask: own } = await keyOf(service, account.id, fields());
    expect((await own("GET", "/key")).status).toBe(200);
    const operations = await paidOperations();
    if (after) advance(after);
    for (const { path, ask } of operations) {
      // Files do not belong to a model, and a batch names those of its lines.
      if (code === "model_not_allowed" && /^\/v1\/(uploads|files|(messages\/)?batches)/.test(path)) continue;
      const { status: answered, headers, body } = await ask(key);
      expect([path, answered, headers.get("x-should-retry")]).toEqual([path, status, status === 403 ? "false" : null]);
      expect(body).toMatchObject(errorAt(path, { code, type }));
    }
    expect((await own("GET", "/balance")).status).toBe(after ? 401 : 200);
    await service.settled();
  },
);

test("a list of models also covers fallbacks and a provider's own names", async () => {
  const { service } = running;
  const { account } = await managedAccount(service);
  const { key, post: send } = await keyOf(service, account.id, { models: ["local/*"] });
  const post = async (path: string, body: object) => {
    const response = await send(path, body);
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
  const { id, post } = await keyOf(service, account.id);
  const call = async () => {
    const response = await post("/v1/chat/completions", asking(localModel));
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
  // A request is refilled every twelve seconds.
  const { service, provider } = await startWithProvider({ RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "5" });
  onTestFinished(() => provider.close());
  const { ask, post } = await managedAccount(service);
  const answers = await Promise.all(Array.from({ length: 55 }, () => ask("GET", "/balance")));
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(55 - refused.length);
  expect(refused.length).toBeGreaterThanOrEqual(5);
  expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  const called = await post("/v1/chat/completions", asking(localModel));
  expect(called.status).toBe(200);
});
