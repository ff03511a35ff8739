import { describe, expect, test } from "vitest";
import { mockError } from "../support/mock-openai.ts";
import {
  bearerOf,
  byKey,
  feeNanoUsd,
  image,
  keyless,
  listNanoUsd,
  type OwnKeysCustomer,
  operatorKeys,
  ownKeysCustomer,
  ownKeysService,
  vectors,
} from "../support/own-keys-setup.ts";
import { eventually } from "../support/service.ts";
import { asking, entryOf, expectUntouched, nanoUsd, refusalOf } from "../support/service-setup.ts";

const { running, nextModel, keysUsed } = ownKeysService();
const chat = "/v1/chat/completions";
const [alpha, beta] = [operatorKeys.alpha, operatorKeys.beta];

async function call(customer: OwnKeysCustomer, body: object, path = chat) {
  const response = await customer.post(path, body);
  const requestId = response.headers.get("x-request-id");
  const text = await response.clone().text();
  return { response, requestId, text, status: response.status };
}

describe("order and price", () => {
  test("an own key is tried first; the charge is its fee, and the entry says so", async () => {
    const { service } = running;
    const customer = await ownKeysCustomer(service);
    const key = await customer.add("ok");
    const { response, requestId, status } = await call(customer, asking(nextModel()));
    expect(status).toBe(200);
    expect(keysUsed()).toEqual([key.credential]);
    expect(response.headers.get("x-xm-upstream-key")).toBe("own");
    expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(feeNanoUsd);
    const { request } = await entryOf(service, requestId);
    expect(request).toMatchObject({
      byok: true,
      provider_key_id: key.id,
      list_usd: "0.00041",
      fee_usd: "0.0000205",
      upstream_cost_usd: "0.00",
      attempts: [{ upstream: "alpha", credential: `own:${key.id}`, outcome: "succeeded" }],
    });
    const shown = await customer.ask("GET", `/requests/${requestId}`);
    expect(shown.body).toMatchObject({
      byok: true,
      provider_key_id: key.id,
      list_usd: "0.00041",
      cost_usd: "0.0000205",
    });
    await service.settled();
    expect(nanoUsd(await customer.available())).toBe(10_000_000_000n - feeNanoUsd);
    expect((await service.check()).difference_usd).toBe("0.00");
    await eventually(async () => (await customer.read(key.id))["last_used_at"] !== null);
    await call(customer, { ...asking(nextModel()), provider: { byok: "never" } });
    const ranWith = async (id: string) =>
      (await customer.ask("GET", `/requests?provider_key=${id}`)).body.data.map((each) => each.id);
    expect([await ranWith(key.id), await ranWith("pkey_none")]).toEqual([[requestId], []]);
  });

  test.each([
    ["first", "limited", [1, "alpha"]],
    ["first", "down", [1, "alpha"]],
    ["first", "bad", [1, "alpha"]],
    ["first", "forbidden", [1, "alpha"]],
    ["first", "empty", [1, "alpha"]],
    ["last", "ok", ["alpha"]],
  ] as const)(
    "mode %s with a key that is %s ends at the shared upstream, at the list price",
    async (mode, kind, tried) => {
      const { service } = running;
      const customer = await ownKeysCustomer(service);
      const key = await customer.add(kind, { mode });
      const { response, requestId } = await call(customer, asking(nextModel()));
      expect(response.headers.get("x-xm-upstream-key")).toBe("shared");
      expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(listNanoUsd);
      expect(keysUsed()).toEqual(tried.map((each) => (each === 1 ? key.credential : alpha)));
      const { request } = await entryOf(service, requestId);
      expect(request).toMatchObject({ byok: false, provider_key_id: null, list_usd: null, fee_usd: null });
      expect(request.attempts.at(-1)).toMatchObject({ credential: "shared", outcome: "succeeded" });
    },
  );

  test("a key to be tried last serves what the shared upstreams do not", async () => {
    const { service, mock } = running;
    const customer = await ownKeysCustomer(service);
    const key = await customer.add("ok", { mode: "last" });
    mock.always((request) => (bearerOf(request).startsWith("sk-operator") ? mockError(500, "down") : byKey(request)));
    const { response } = await call(customer, asking(nextModel()));
    expect(keysUsed()).toEqual([alpha, beta, key.credential]);
    expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(feeNanoUsd);
  });

  test("keys are tried by priority, and only those that apply to the model and the caller's key", async () => {
    const { service } = running;
    const customer = await ownKeysCustomer(service);
    const model = nextModel();
    const second = await customer.add("down", { priority: 2 });
    const first = await customer.add("limited", { priority: 1 });
    await customer.add("ok", { models: [keyless], provider: "keyless" });
    await customer.add("ok", { key_ids: [customer.keyId] });
    await customer.add("ok", { disabled: true });
    const last = await customer.add("ok", { provider: "beta", priority: 3 });
    await call(customer, asking(model));
    expect(keysUsed()).toEqual([first.credential, second.credential, last.credential]);
  });

  test.each([
    ["a stream", chat, { stream: true, stream_options: { include_usage: true } }, true],
    ["Responses", "/v1/responses", { messages: undefined, input: "Hello there" }, true],
    ["a stream of Responses", "/v1/responses", { messages: undefined, input: "Hello there", stream: true }, true],
    ["Messages", "/v1/messages", { max_tokens: 100 }, false],
  ])("%s costs the fee, and says so where its format has a place", async (_, path, more, marked) => {
    const { service } = running;
    const customer = await ownKeysCustomer(service);
    await customer.add("ok");
    const { response, requestId, text } = await call(customer, { ...asking(nextModel()), ...more }, path);
    expect([response.status, response.headers.get("x-xm-upstream-key")]).toEqual([200, "own"]);
    expect(text.includes('"is_byok":true')).toBe(marked);
    const { request, ...entry } = await entryOf(service, requestId);
    expect(request).toMatchObject({ byok: true });
    const { list_usd, fee_usd } = request as unknown as { list_usd: string; fee_usd: string };
    expect(nanoUsd(list_usd)).toBeGreaterThan(0n);
    expect(nanoUsd(fee_usd)).toBe((nanoUsd(list_usd) * 5n + 99n) / 100n);
    expect(nanoUsd(entry.amount_usd)).toBe(-nanoUsd(fee_usd));
  });

  test("embeddings and media use own keys too", async () => {
    const { service } = running;
    const customer = await ownKeysCustomer(service);
    const key = await customer.add("ok");
    const embedded = await call(customer, { model: vectors, input: "Hello there" }, "/v1/embeddings");
    const drawn = await call(customer, { model: image, prompt: "A lake", n: 1 }, "/v1/images/generations");
    expect([embedded.status, drawn.status]).toEqual([200, 200]);
    for (const { response } of [embedded, drawn]) expect(response.headers.get("x-xm-upstream-key")).toBe("own");
    expect(keysUsed()).toEqual([key.credential, key.credential]);
    for (const { requestId } of [embedded, drawn])
      expect((await entryOf(service, requestId)).request).toMatchObject({ byok: true, provider_key_id: key.id });
    // The image costs 0.04 USD, of which 5 % are charged.
    expect(drawn.response.headers.get("x-xm-cost-usd")).toBe("0.002");
  });

  test("a model without a shared upstream is callable by the account that has a key for it, and by no other", async () => {
    const { service } = running;
    const [customer, other] = [await ownKeysCustomer(service), await ownKeysCustomer(service)];
    await customer.add("ok", { provider: "keyless" });
    expect((await call(customer, asking(keyless))).status).toBe(200);
    expect((await call(other, asking(keyless))).status).toBe(404);
    expect((await call(customer, { ...asking(keyless), provider: { byok: "never" } })).status).toBe(404);
  });
});

describe("without a fallback", () => {
  const only = { mode: "only" };
  const asked = { provider: { byok: "only" } };
  test.each([
    ["bad", 424, "byok_authentication_failed", null],
    ["forbidden", 424, "byok_authentication_failed", null],
    ["limited", 429, "byok_rate_limited", "17"],
    ["empty", 424, "byok_quota_exceeded", null],
    ["unpaid", 424, "byok_quota_exceeded", null],
    ["down", 502, "upstream_error", null],
  ] as const)("a key that is %s ends the call with %i %s", async (kind, status, code, retryAfter) => {
    const { service } = running;
    for (const [fields, more] of [
      [{ ...only, models: null }, {}],
      [{}, asked],
    ] as const)
      for (const stream of [false, true]) {
        running.mock.reset();
        running.mock.always(byKey);
        const customer = await ownKeysCustomer(service);
        const key = await customer.add(kind, fields);
        // Another upstream of the model is no fallback for a key that is refused; for the rest, exclude it.
        const provider = { ...more.provider, only: ["alpha"] };
        const { response, text } = await call(customer, { ...asking(nextModel()), provider, stream });
        expect([response.status, (JSON.parse(text) as { error: { code: string } }).error.code]).toEqual([status, code]);
        expect(response.headers.get("retry-after")).toBe(retryAfter);
        expect(text).toContain("'alpha'");
        expect(text).not.toContain(key.credential.slice(0, 14));
        expect(keysUsed()).toEqual([key.credential]);
        await expectUntouched(service, customer, "10.00");
      }
  });

  test("a key of mode `only` that is refused keeps the operator's keys for other upstreams out, now and at the next call", async () => {
    const { service } = running;
    const customer = await ownKeysCustomer(service);
    const key = await customer.add("bad", only);
    const model = nextModel();
    const codes = [];
    for (let at = 0; at < 3; at++) codes.push((await call(customer, asking(model))).status);
    expect(codes).toEqual([424, 424, 424]);
    // The worker remembers the refusal, and the next calls are refused at admission.
    expect(keysUsed()).toEqual([key.credential]);
    await eventually(async () => (await customer.read(key.id))["status"] !== "unknown");
    const read = await customer.read(key.id);
    expect(read).toMatchObject({ status: "invalid", status_message: "status 401: Incorrect API key provided: ...." });
    await expectUntouched(service, customer, "10.00");
    // The caller's own list of models is another matter: the second has no such key.
    await customer.provider("PATCH", `/${key.id}`, { models: [model] });
    const listed = await call(customer, { ...asking(model), models: [nextModel()] });
    expect([listed.status, listed.response.headers.get("x-xm-cost-usd")]).toEqual([200, "0.00041"]);
  });

  test.each(["forbidden", "unsuited"])("a key that is %s for one model stays in use for others", async (kind) => {
    const customer = await ownKeysCustomer(running.service);
    const key = await customer.add(kind);
    await call(customer, asking(nextModel()));
    await eventually(async () => (await customer.read(key.id))["status"] === "no_permission");
    await call(customer, asking(nextModel()));
    expect(keysUsed()).toEqual([key.credential, alpha, key.credential, alpha]);
  });

  test.each([
    ["invalid", { status: 400, code: "invalid_prompt", message: "Not this prompt, ...." }],
    ["absent", { status: 400, code: "invalid_value", message: "The model does not exist for ...." }],
  ])("a request that is %s at the own key is not tried elsewhere", async (kind, { status, ...error }) => {
    const customer = await ownKeysCustomer(running.service);
    const key = await customer.add(kind);
    const { response } = await call(customer, asking(nextModel()));
    expect(await refusalOf(response)).toMatchObject({ status, error });
    expect(keysUsed()).toEqual([key.credential]);
  });

  test("after a 429 the key is left alone until the provider wants it again", async () => {
    const { service, advance } = running;
    const customer = await ownKeysCustomer(service);
    const key = await customer.add("limited", only);
    const model = nextModel();
    const retryAfter = async () => {
      const { response } = await call(customer, { ...asking(model), provider: { only: ["alpha"] } });
      expect(response.status).toBe(429);
      return Number(response.headers.get("retry-after"));
    };
    const begunAt = performance.now();
    expect(await retryAfter()).toBe(17);
    const remaining = await retryAfter();
    expect(remaining).toBeLessThanOrEqual(17);
    expect(remaining).toBeGreaterThanOrEqual(17 - Math.floor((performance.now() - begunAt) / 1_000));
    expect(keysUsed()).toEqual([key.credential]);
    advance(18_000);
    await call(customer, { ...asking(model), provider: { only: ["alpha"] } });
    expect(keysUsed()).toEqual([key.credential, key.credential]);
  });

  test.each([
    ["`byok: only` without a key", {}, { byok: "only" }, 400, "provider.byok"],
    ["`byok: never` with a key of mode `only`", only, { byok: "never", only: ["alpha"] }, 400, "provider.byok"],
    ["a preference that leaves no key", {}, { byok: "only", regions: ["us-east-1"] }, 400, "provider.regions"],
    ["an unknown value", {}, { byok: "always" }, 400, "provider.byok"],
  ])("%s is refused by name", async (name, fields, provider, status, param) => {
    const customer = await ownKeysCustomer(running.service);
    if (!name.includes("without")) await customer.add("ok", fields);
    const { response } = await call(customer, { ...asking(nextModel()), provider });
    expect(await refusalOf(response)).toMatchObject({ status, error: { param } });
    expect(keysUsed()).toEqual([]);
  });
});

describe("the hold", () => {
  // The hold covers 1,000 output tokens: 0.04 USD at the list price, 0.002 as the fee.
  const body = () => ({ ...asking(nextModel()), max_tokens: 1_000 });

  test("covers the fee where only own keys may serve, and the whole price where a shared upstream may", async () => {
    const { service } = running;
    const customer = await ownKeysCustomer(service, "0.003");
    const key = await customer.add("ok");
    expect((await call(customer, body())).status).toBe(402);
    expect((await call(customer, { ...body(), provider: { byok: "only" } })).status).toBe(200);
    expect((await call(customer, { ...body(), provider: { only: ["alpha"] } })).status).toBe(402);
    await customer.provider("PATCH", `/${key.id}`, { mode: "only" });
    expect((await call(customer, { ...body(), provider: { only: ["alpha"] } })).status).toBe(200);
    // Another upstream may serve it with the operator's key.
    expect((await call(customer, body())).status).toBe(402);
    await service.settled();
    expect(nanoUsd(await customer.available())).toBe(3_000_000n - 2n * feeNanoUsd);
  });

  test("without a cap, the balance pays for as much output as its fee covers", async () => {
    const { service, mock } = running;
    // 0.0005 USD is the fee of 0.01 USD.
    const [customer, other] = [await ownKeysCustomer(service, "0.0005"), await ownKeysCustomer(service, "0.01")];
    await customer.add("ok");
    expect((await call(customer, { ...asking(nextModel()), provider: { byok: "only" } })).status).toBe(200);
    expect((await call(other, { ...asking(nextModel()), provider: { byok: "auto" } })).status).toBe(200);
    const [own, shared] = mock.requests.map(({ body }) => body["max_tokens"]);
    expect(own).toBeGreaterThan(0);
    expect(own).toBe(shared);
  });
});
