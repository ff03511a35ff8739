import { expect, test } from "vitest";
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
  [
    "a dearer service tier",
    chat,
    { ...hi, model: providerModel, service_tier: "priority" },
    unsupported("service_tier"),
  ],
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
];

test.each(rows)("%s", async (_, path, body, expected) => {
  // A request is refilled every half minute.
  const begunAt = performance.now();
  const customer = await running.service.account("1", { limits: { requests_per_minute: 2 } });
  expect(await refusalOf(await customer.post(path, body))).toEqual(refusal(expected));
  await expectUntouched(running.service, customer, "1.00");
  expect(await customer.ledger("usage")).toEqual([]);
  const good = await customer.post(chat, hi);
  expect(good.status).toBe(200);
  const refilled = Math.floor((performance.now() - begunAt) / 30_000);
  expect(Number(good.headers.get("x-ratelimit-remaining-requests"))).toBeLessThanOrEqual(refilled);
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

test("a frozen account's calls are refused as such, whatever else is wrong, and count as requests", async () => {
  const customer = await running.service.account("1", { limits: { requests_per_minute: 2 } });
  // The account has a lease from now on.
  expect((await customer.post(chat, hi)).status).toBe(200);
  await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
  const frozen = refusal({ status: 403, type: "permission_error", code: "account_frozen" });
  const asked = [hi, { ...hi, model: "none/none" }, asking(providerModel), "{", { model: localModel }];
  for (const body of asked) expect(await refusalOf(await customer.post(chat, body))).toEqual(frozen);
  expect(await refusalOf(await customer.post(embeddings, { model: "local/embeddings", input: "x" }))).toEqual(frozen);
  expect(running.provider.requests).toEqual([]);
  await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: false });
  expect((await customer.post(chat, hi)).status).toBe(429);
});

test("a balance that does not cover the tokens covers exactly as many as the refusal says", async () => {
  const customer = await running.service.account("0.001");
  const { error } = await refusalOf(await customer.post(chat, { ...hi, max_tokens: 8_000 }));
  const covered = Number(/covers (\d+)/.exec(error.message)?.[1]);
  expect(covered).toBeGreaterThan(1_000);
  expect((await customer.post(chat, { ...hi, max_tokens: covered + 1 })).status).toBe(402);
  expect((await customer.post(chat, { ...hi, max_tokens: covered })).status).toBe(200);
});

test("a balance that does not cover embeddings is 402 in USD", async () => {
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
