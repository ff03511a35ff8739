import { describe, expect, test } from "vitest";
import {
  asking,
  expectUntouched,
  localModel,
  providerModel,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const running = serviceOfFile({ NOVITA_API_KEY: "sk-operator" });
const chat = "/v1/chat/completions";
const embeddings = "/v1/embeddings";

const invalid = (param: string | null, message?: RegExp): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_value",
  param,
  ...(message && { message }),
});
const unsupported = (param: string): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: "model_not_supported",
  param,
});
const noModel: Refusal = { status: 404, type: "not_found_error", code: "model_not_found", param: "model" };
const noKey: Refusal = { status: 401, type: "authentication_error", code: "invalid_api_key" };
const hi = asking(localModel);
const textModel = "meta/llama-4-scout";
const sound = { type: "input_audio", input_audio: { data: "UklGRgAAAABXQVZF", format: "wav" } };
const messages = (...content: unknown[]) => ({ ...hi, messages: content });

/** Faults that only the catalog or the reading of the body shows; unit tests name every invalid field. */
const rows: readonly (readonly [name: string, path: string, body: unknown, refusal: Refusal])[] = [
  ["malformed JSON with its place", chat, '{"model": "a",, }', invalid(null, /position 14/)],
  ["null", chat, "null", invalid(null, /object/)],
  ["a message that is text", chat, messages("hi"), invalid("messages[0]", /object/)],
  ["max_tokens of 1.5", chat, { ...hi, max_tokens: 1.5 }, invalid("max_tokens", /int/)],
  ["a model whose provider has no key here", chat, { ...hi, model: "anthropic/claude-sonnet-4-5" }, noModel],
  ["logprobs of a model without", chat, { ...hi, logprobs: true }, unsupported("logprobs")],
  ["web search of a model without", chat, { ...hi, web_search_options: {} }, unsupported("web_search_options")],
  [
    "a dearer service tier",
    chat,
    { ...hi, model: providerModel, service_tier: "priority" },
    unsupported("service_tier"),
  ],
  ["audio output of a model without", chat, { ...hi, modalities: ["text", "audio"] }, unsupported("modalities")],
  [
    "an audio part of a model without",
    chat,
    { ...messages({ role: "user", content: [sound] }), model: textModel },
    unsupported("messages[0].content[0]"),
  ],
  [
    "tools of a model without",
    chat,
    { ...hi, model: textModel, tools: [{ type: "function", function: { name: "f" } }] },
    unsupported("tools"),
  ],
  ["an input that is a number", embeddings, { model: "local/embeddings", input: 5 }, invalid("input", /string/)],
  ["a chat model", embeddings, { model: localModel, input: "x" }, unsupported("model")],
  ["an unknown embeddings model", embeddings, { model: "nobody/nothing", input: "x" }, noModel],
  [
    "a bare embeddings model",
    embeddings,
    { model: "text-embedding-3-small", input: "x" },
    { ...noModel, message: /mean 'openai\/text-embedding-3-small'\?$/ },
  ],
];

test.each(rows)("%s", async (_, path, body, expected) => {
  const customer = await running.service.account("1", { limits: { requests_per_minute: 7 } });
  expect(await refusalOf(await customer.post(path, body))).toEqual(refusal(expected));
  await expectUntouched(running.service, customer, "1.00");
  expect(await customer.ledger("usage")).toEqual([]);
  const good = await customer.post(chat, hi);
  expect(good.status).toBe(200);
  expect(good.headers.get("x-ratelimit-remaining-requests")).toBe("5");
  expect(running.provider.requests).toEqual([]);
});

test("invalid UTF-8 is refused, wherever it occurs", async () => {
  const customer = await running.service.account("1");
  const body = Buffer.concat([
    Buffer.from('{"model":"local/chat","messages":[{"role":"user","content":"'),
    Buffer.from([0xc3, 0x28]),
    Buffer.from('"}]}'),
  ]);
  const response = await fetch(running.service.baseUrl + chat, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}` },
    body,
  });
  expect(await refusalOf(response)).toEqual(refusal(invalid(null, /UTF-8/)));
});

test("the scheme of the key is Bearer, in any case", async () => {
  const { key } = await running.service.account("1");
  const send = (authorization: string) =>
    fetch(running.service.baseUrl + chat, { method: "POST", body: JSON.stringify(hi), headers: { authorization } });
  expect((await send(`bearer ${key}`)).status).toBe(200);
  expect(await refusalOf(await send(`Basic ${key}`))).toEqual(refusal(noKey));
});

describe("accounts", () => {
  test("frozen: every request gets a 403, and is served again once the account is unfrozen", async () => {
    const customer = await running.service.account("1", { limits: { requests_per_minute: 9 } });
    // The account has a lease from now on.
    expect((await customer.post(chat, hi)).status).toBe(200);
    await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
    const frozen = refusal({ status: 403, type: "permission_error", code: "account_frozen" });
    const asked = [hi, { ...hi, model: "none/none" }, asking(providerModel), "{", { model: localModel }];
    for (const body of asked) expect(await refusalOf(await customer.post(chat, body))).toEqual(frozen);
    expect(await refusalOf(await customer.post(embeddings, { model: "local/embeddings", input: "x" }))).toEqual(frozen);
    expect(running.provider.requests).toEqual([]);
    await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: false });
    const good = await customer.post(chat, hi);
    expect([good.status, good.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "1"]);
  });

  test("insufficient balance: 402 names the requested and the covered tokens, and counts as a request", async () => {
    const customer = await running.service.account("0.001", { limits: { requests_per_minute: 7 } });
    const body = { ...hi, max_tokens: 8_000 };
    const response = await customer.post(chat, body);
    const answer = await refusalOf(response);
    expect(answer).toEqual(
      refusal({
        status: 402,
        type: "insufficient_quota",
        code: "insufficient_balance",
        message: /You asked for up to 8000 tokens; the balance covers \d+\. Top up in the dashboard\.$/,
      }),
    );
    expect(response.headers.get("x-should-retry")).toBe("false");
    await expectUntouched(running.service, customer, "0.001");
    // The number is exact: that many tokens pass, and one more does not.
    const covered = Number(/covers (\d+)/.exec(answer.error.message)?.[1]);
    expect(covered).toBeGreaterThan(1_000);
    expect((await customer.post(chat, { ...hi, max_tokens: covered + 1 })).status).toBe(402);
    const good = await customer.post(chat, { ...hi, max_tokens: covered });
    expect([good.status, good.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "4"]);
  });

  test("insufficient balance for embeddings: 402 in USD", async () => {
    const customer = await running.service.account("0.000001");
    const response = await customer.post(embeddings, { model: "local/embeddings", input: "x".repeat(5_000) });
    expect(await refusalOf(response)).toEqual(
      refusal({
        status: 402,
        type: "insufficient_quota",
        code: "insufficient_balance",
        message: /can cost 0\.\d+ USD; the balance has 0\.000001/,
      }),
    );
    await expectUntouched(running.service, customer, "0.000001");
  });
});
