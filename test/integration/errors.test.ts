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
const messages = (...content: unknown[]) => ({ ...hi, messages: content });

/** Every fault in the request itself. */
const rows: readonly (readonly [name: string, path: string, body: unknown, refusal: Refusal])[] = [
  ["malformed JSON", chat, '{"model": ', invalid(null, /not valid JSON/)],
  ["malformed JSON with its place", chat, '{"model": "a",, }', invalid(null, /position 14/)],
  ["an empty body", chat, "", invalid(null, /empty/)],
  ["a list", chat, [], invalid(null, /object/)],
  ["null", chat, "null", invalid(null, /object/)],
  ["no model", chat, { messages: hi.messages }, invalid("model")],
  ["an empty model", chat, { ...hi, model: "" }, invalid("model")],
  ["a model that is a number", chat, { ...hi, model: 5 }, invalid("model", /string/)],
  ["no messages", chat, { model: localModel }, invalid("messages")],
  ["an empty message list", chat, messages(), invalid("messages", /at least|>=1/)],
  ["messages that are text", chat, { ...hi, messages: "hi" }, invalid("messages", /array/)],
  ["a message that is text", chat, messages("hi"), invalid("messages[0]", /object/)],
  ["an unknown role", chat, messages({ role: "robot", content: "x" }), invalid("messages[0].role", /user/)],
  ["content that is a number", chat, messages({ role: "user", content: 5 }), invalid("messages[0].content", /string/)],
  [
    "a wrong type deep inside",
    chat,
    messages({ role: "user", content: "x" }, { role: "user", content: [{ type: "text", text: "x" }, { type: 5 }] }),
    invalid("messages[1].content[1].type", /string/),
  ],
  [
    "an image without an address",
    chat,
    messages({ role: "user", content: [{ type: "image_url", image_url: {} }] }),
    invalid("messages[0].content[0].image_url.url"),
  ],
  [
    "an image of another scheme",
    chat,
    messages({ role: "user", content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }] }),
    invalid("messages[0].content[0].image_url.url"),
  ],
  [
    "a file stored at the provider",
    chat,
    { ...messages({ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }), model: providerModel },
    invalid("messages[0].content[0].file.file_id"),
  ],
  ["stream that is text", chat, { ...hi, stream: "yes" }, invalid("stream", /boolean/)],
  ["max_tokens of 0", chat, { ...hi, max_tokens: 0 }, invalid("max_tokens")],
  ["max_tokens of 1.5", chat, { ...hi, max_tokens: 1.5 }, invalid("max_tokens", /int/)],
  ["temperature of 3", chat, { ...hi, temperature: 3 }, invalid("temperature")],
  ["n of 0", chat, { ...hi, n: 0 }, invalid("n")],
  ["n of 129", chat, { ...hi, n: 129 }, invalid("n")],
  ["stop that is a number", chat, { ...hi, stop: 5 }, invalid("stop", /string/)],
  ["a stop that is a number", chat, { ...hi, stop: ["a", 5] }, invalid("stop[1]", /string/)],
  ["tools that are an object", chat, { ...hi, tools: {} }, invalid("tools", /array/)],
  ["a tool without a type", chat, { ...hi, tools: [{}] }, invalid("tools[0].type")],
  ["a response_format without a type", chat, { ...hi, response_format: {} }, invalid("response_format.type")],
  ["an unknown model", chat, { ...hi, model: "nobody/nothing" }, noModel],
  [
    "a bare model id",
    chat,
    { ...hi, model: "gpt-4.1-mini" },
    { ...noModel, message: /mean 'openai\/gpt-4.1-mini'\?$/ },
  ],
  ["a model whose provider has no key here", chat, { ...hi, model: "anthropic/claude-sonnet-4-5" }, noModel],
  ["a model of another type", chat, { ...hi, model: "local/embeddings" }, unsupported("model")],
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
    {
      model: "meta/llama-4-scout",
      messages: [
        {
          role: "user",
          content: [{ type: "input_audio", input_audio: { data: "UklGRgAAAABXQVZF", format: "wav" } }],
        },
      ],
    },
    unsupported("messages[0].content[0]"),
  ],
  [
    "tools of a model without",
    chat,
    { ...hi, model: "meta/llama-4-scout", tools: [{ type: "function", function: { name: "f" } }] },
    unsupported("tools"),
  ],
  ["no input", embeddings, { model: "local/embeddings" }, invalid("input")],
  ["an input that is a number", embeddings, { model: "local/embeddings", input: 5 }, invalid("input", /string/)],
  ["an empty input", embeddings, { model: "local/embeddings", input: "" }, invalid("input", /empty/)],
  ["an empty input list", embeddings, { model: "local/embeddings", input: [] }, invalid("input", /at least|>=1/)],
  [
    "an empty text in a list",
    embeddings,
    { model: "local/embeddings", input: ["a", ""] },
    invalid("input[1]", /empty/),
  ],
  ["a number in a list", embeddings, { model: "local/embeddings", input: ["a", 5] }, invalid("input[1]", /string/)],
  [
    "257 inputs",
    embeddings,
    { model: "local/embeddings", input: Array.from({ length: 257 }, () => "x") },
    invalid("input", /256/),
  ],
  [
    "an unknown encoding",
    embeddings,
    { model: "local/embeddings", input: "x", encoding_format: "hex" },
    invalid("encoding_format", /base64/),
  ],
  ["dimensions of 0", embeddings, { model: "local/embeddings", input: "x", dimensions: 0 }, invalid("dimensions")],
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

test.each([
  ["an unknown field", "x", providerModel, (deep: string) => `"x":${deep}`],
  [
    "a function",
    "tools",
    localModel,
    (deep: string) => `"tools":[{"type":"function","function":{"name":"f","parameters":{"x":${deep}}}}]`,
  ],
  [
    "a schema",
    "response_format",
    localModel,
    (deep: string) => `"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"x":${deep}}}}`,
  ],
])("%s nested too deep to be serialized again is refused as the caller's error", async (_, param, model, field) => {
  const customer = await running.service.account("1");
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  const body = JSON.stringify({ ...asking(model), x: 0 }).replace('"x":0', field(deep));
  const response = await customer.post(chat, body);
  expect(await refusalOf(response)).toEqual(refusal(invalid(param, /deep/)));
  await expectUntouched(running.service, customer, "1.00");
});

describe("keys", () => {
  const send = (authorization?: string) =>
    fetch(running.service.baseUrl + chat, {
      method: "POST",
      body: JSON.stringify(hi),
      ...(authorization !== undefined && { headers: { authorization } }),
    });

  test.each([
    ["no key", undefined],
    ["an empty bearer", "Bearer "],
    ["another scheme", "Basic abc"],
    ["not one of ours", "Bearer sk-123"],
    ["an unknown key", `Bearer live_${"a".repeat(40)}`],
  ])("%s", async (_, authorization) => {
    expect(await refusalOf(await send(authorization))).toEqual(refusal(noKey));
  });

  test("a key is checked before the body is read", async () => {
    const response = await fetch(running.service.baseUrl + chat, { method: "POST", body: "{" });
    expect(await refusalOf(response)).toEqual(refusal(noKey));
  });

  test("a revoked key is refused at once, also where it was just in use", async () => {
    const customer = await running.service.account("1");
    expect((await send(`Bearer ${customer.key}`)).status).toBe(200);
    const keys = await running.service.admin<{ data: { id: string }[] }>("GET", `/accounts/${customer.id}/keys`);
    await running.service.admin("DELETE", `/keys/${keys.data[0]?.id}`);
    expect(await refusalOf(await send(`Bearer ${customer.key}`))).toEqual(refusal(noKey));
  });

  test("the scheme's name in any case", async () => {
    const { key } = await running.service.account("1");
    expect((await send(`bearer ${key}`)).status).toBe(200);
  });
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
