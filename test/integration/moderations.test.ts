import { describe, expect, test } from "vitest";
import { times } from "../support/money-setup.ts";
import { gate, invalidValue, refusal, refusalOf, serviceOfFile, startWithProvider } from "../support/service-setup.ts";
import { wireTo } from "../support/uploads-callers.ts";

const running = serviceOfFile();
const path = "/v1/moderations";
const hosted = "openai/omni-moderation-latest";

describe.each(["local/moderation", hosted])("%s", (model) => {
  test("the official client gets a result for each text, and one for the parts of an input; all of it is free", async () => {
    const { openai, ...customer } = await running.service.account("0");
    const { data: single, request_id } = await openai.moderations
      .create({ model, input: "I will kill you" })
      .withResponse();
    expect(single).toMatchObject({ id: `modr-${request_id}`, model });
    expect(single.results).toHaveLength(1);
    expect(single.results[0]).toMatchObject({ flagged: true, categories: { violence: true } });
    expect(single.results[0]?.category_scores.violence).toBeGreaterThanOrEqual(0.5);
    expect(single.results[0]?.category_applied_input_types.violence).toEqual(["text"]);
    const batch = await openai.moderations.create({ model, input: ["Good morning", "kill", ""] });
    expect(batch.results.map(({ flagged }) => flagged)).toEqual([false, true, false]);
    const input = ["Good", "morning"].map((text) => ({ type: "text" as const, text }));
    expect((await openai.moderations.create({ model, input })).results.map(({ flagged }) => flagged)).toEqual([false]);

    expect(await customer.ledger("usage")).toEqual([]);
    expect(await customer.available()).toBe("0.00");
  });
});

test("while it runs nothing is held, and its end is neither in the ledger nor among the requests", async () => {
  const customer = await running.service.account("1");
  const { opened, open } = gate();
  running.provider.respond({ beforeHeaders: opened });
  const answering = customer.post(path, { model: hosted, input: "Hi" });
  await running.provider.request(0);
  expect(await running.service.check()).toMatchObject({ open_holds: 0 });
  open();
  const response = await answering;
  expect([response.status, response.headers.get("x-xm-cost-usd")]).toEqual([200, "0.00"]);
  expect(await customer.ledger("usage")).toEqual([]);
  const requestId = response.headers.get("x-request-id") ?? "";
  const headers = { authorization: `Bearer ${customer.key}` };
  const found = await fetch(`${running.service.baseUrl}/v1/requests/${requestId}`, { headers });
  expect(found.status).toBe(404);
});

test("only the input goes to the provider", async () => {
  const { openai, ...customer } = await running.service.account("0");
  const image = { type: "image_url" as const, image_url: { url: "https://pictures.test/a.png" } };
  const input = [{ type: "text" as const, text: "Look" }, image];
  const response = await customer.post(path, { model: hosted, input, user: "ann", store: true, metadata: { a: "b" } });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-ignored-params")).toBe("user, store, metadata");
  expect(running.provider.requests.map(({ body }) => body)).toEqual([{ model: "omni-moderation-latest", input }]);
  await expect(openai.moderations.create({ model: "local/moderation", input })).rejects.toMatchObject({ status: 400 });
});

test("without a model the first one in the catalog answers that a worker has a key for", async () => {
  const { openai } = await running.service.account("0");
  expect((await openai.moderations.create({ input: "Hi" })).model).toBe(hosted);
  const { service } = await startWithProvider({ OPENAI_API_KEY: "" });
  const keyless = await service.account("0");
  expect((await keyless.openai.moderations.create({ input: "Hi" })).model).toBe("local/moderation");
});

const part = (url: string) => [{ type: "image_url", image_url: { url } }];
test.each<[what: string, input: unknown, param: string]>([
  ["no input", undefined, "input"],
  ["no texts", [], "input"],
  ["257 texts", Array(257).fill("a"), "input"],
  ["a part among texts", ["a", { type: "text", text: "b" }], "input[1]"],
  ["a text among parts", [{ type: "text", text: "b" }, "a"], "input[1]"],
  ["33 parts", Array(33).fill({ type: "text", text: "b" }), "input"],
  ["a part of another type", [{ type: "input_audio" }], "input[0].type"],
  ["a link of another kind", part("file:///etc/passwd"), "input[0].image_url.url"],
  ["an upload", part("upl_abc"), "input[0].image_url.url"],
])("refuses %s, and names the field", async (_what, input, param) => {
  const customer = await running.service.account("0");
  expect(await refusalOf(await customer.post(path, { model: hosted, input }))).toEqual(refusal(invalidValue(param)));
  expect(running.provider.requests).toEqual([]);
});

test("a body of more than a megabyte is refused, because the call is free", async () => {
  const customer = await running.service.account("0");
  const response = await customer.post(path, { model: hosted, input: "a".repeat(1024 * 1024) });
  expect(await refusalOf(response)).toMatchObject({ status: 413, error: { code: "request_too_large" } });
});

test("counts in the request limit, and not in the one of tokens", async () => {
  const limits = { requests_per_minute: 2, tokens_per_minute: 1 };
  const customer = await running.service.account("0", { limits });
  const ask = () => customer.post(path, { model: "local/moderation", input: "a long text ".repeat(100) });
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
  expect(await refusalOf(await ask())).toMatchObject({ status: 429, error: { code: "rate_limit_exceeded" } });
});

test("a frozen account is refused", async () => {
  const customer = await running.service.account("0");
  await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
  const response = await customer.post(path, { model: hosted, input: "Hi" });
  expect(await refusalOf(response)).toMatchObject({ status: 403, error: { code: "account_frozen" } });
  expect(running.provider.requests).toEqual([]);
});

const result = { flagged: false, categories: { violence: false }, category_scores: { violence: 0 } };
test.each<[what: string, body: unknown]>([
  ["no results", {}],
  ["too few", { results: [result] }],
  ["too many", { results: [result, result, result] }],
  ["a score that is no number", { results: [result, { ...result, category_scores: { violence: "1" } }] }],
  [
    "a score without bound",
    `{"results": [${JSON.stringify(result)}, {"flagged": false, "categories": {}, "category_scores": {"a": 1e999}}]}`,
  ],
])("an answer with %s is the upstream's error", async (_what, body) => {
  const customer = await running.service.account("0");
  running.provider.respond({ body });
  const response = await customer.post(path, { model: hosted, input: ["a", "b"] });
  expect(await refusalOf(response)).toMatchObject({ status: 502, error: { code: "upstream_error" } });
  expect(await customer.ledger("usage")).toEqual([]);
});

test("a key without a balance has at most 100 calls in flight, and with one as many as its limit", async () => {
  const customer = await running.service.account("0");
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${customer.key}\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n`;
  const wires = await Promise.all(times(100, () => wireTo(running.service)));
  for (const wire of wires) {
    await wire.write(head);
    await wire.received((all) => all.includes("100 Continue"));
  }
  const ask = () => customer.post(path, { model: "local/moderation", input: "Hi" });
  expect(await refusalOf(await ask())).toEqual(
    refusal({ status: 429, type: "rate_limit_error", code: "rate_limit_exceeded", message: /at most 100 calls/ }),
  );
  const credit = { amount_usd: "0.01", idempotency_key: "first" };
  await running.service.admin("POST", `/accounts/${customer.id}/credits`, credit);
  expect((await ask()).status).toBe(200);
});
