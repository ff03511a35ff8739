import { expect, test } from "vitest";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, startService } from "../support/service.ts";

/** The main routes once, with the local models: the addition of `npm run test:quick` to the unit tests. */

interface Started {
  readonly service: Client;
  readonly customer: Customer;
}

const started = ofFile<Started>(
  async (onEnd) => {
    const service = await startService(await testStores(), { onEnd });
    return { service, customer: await service.account("5.00") };
  },
  () => {},
);

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const isJson = typeof body === "object" && !Buffer.isBuffer(body);
  const response = await fetch(new URL(path, started.service.baseUrl), {
    method,
    headers: {
      authorization: `Bearer ${started.customer.key}`,
      ...(isJson && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as Buffer) }),
  });
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  const text = await response.text();
  const answer: Answer = {
    status: response.status,
    type,
    headers: response.headers,
    text,
    body: type === "application/json" ? (JSON.parse(text) as Answer["body"]) : {},
  };
  return answer;
}

const json = { status: 200, type: "application/json" };
const events = { status: 200, type: "text/event-stream" };
const hello = [{ role: "user", content: "Hello!" }];
const contents = [{ role: "user", parts: [{ text: "Hello!" }] }];
const words = expect.stringContaining("Hello!") as string;
const count = expect.any(Number) as number;

test.each([
  [
    "/v1/chat/completions",
    { model: "local/chat", messages: hello },
    { object: "chat.completion", choices: [{ message: { role: "assistant", content: words } }] },
  ],
  [
    "/v1/messages",
    { model: "local/chat", max_tokens: 100, messages: hello },
    { type: "message", role: "assistant", content: [{ type: "text", text: words }], usage: { input_tokens: count } },
  ],
  ["/v1/messages/count_tokens", { model: "local/chat", messages: hello }, { input_tokens: count }],
  [
    "/v1/responses",
    { model: "local/chat", input: "Hello!" },
    { object: "response", status: "completed", output: [{ content: [{ type: "output_text", text: words }] }] },
  ],
  [
    "/v1/responses/input_tokens",
    { model: "local/chat", input: "Hello!" },
    { object: "response.input_tokens", input_tokens: count },
  ],
  [
    "/v1beta/models/local/chat:generateContent",
    { contents },
    { candidates: [{ content: { role: "model", parts: [{ text: words }] }, finishReason: "STOP" }] },
  ],
  ["/v1beta/models/local/chat:countTokens", { contents }, { totalTokens: count }],
  [
    "/v1beta/models/local/embeddings:embedContent",
    { content: contents[0] },
    { embedding: { values: expect.any(Array) as number[] } },
  ],
  [
    "/v1/embeddings",
    { model: "local/embeddings", input: ["one", "two"] },
    { object: "list", data: [{ index: 0 }, { index: 1, embedding: expect.arrayContaining([count]) as number[] }] },
  ],
])("POST %s answers", async (path, body, shape) => {
  const answer = await ask("POST", path, body);
  expect(answer).toMatchObject({ ...json, body: shape });
  expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
});

test.each([
  ["/v1/chat/completions", { model: "local/chat", messages: hello, stream: true }, "data: [DONE]"],
  ["/v1/messages", { model: "local/chat", max_tokens: 100, messages: hello, stream: true }, "event: message_stop"],
  ["/v1/responses", { model: "local/chat", input: "Hello!", stream: true }, "event: response.completed"],
  ["/v1beta/models/local/chat:streamGenerateContent?alt=sse", { contents }, '"finishReason":"STOP"'],
])("POST %s streams to the end", async (path, body, end) => {
  const answer = await ask("POST", path, body);
  expect(answer).toMatchObject(events);
  expect(answer.text).toMatch(/^(data|event): /);
  expect(answer.text).toContain(end);
});

test.each([
  ["/v1/images/generations", { model: "local/image", prompt: "A lighthouse", size: "256x256" }, "image/png"],
  ["/v1/media/generations", { model: "local/speech", input: { text: "Hello!" } }, /^audio\//],
])("POST %s makes a file, and GET /media/{id} serves it", async (path, body, type) => {
  const answer = await ask("POST", path, body);
  expect(answer).toMatchObject(json);
  const { data, files } = answer.body as Record<"data" | "files", [{ url: string }] | undefined>;
  const [file] = data ?? files ?? [];
  expect(file?.url).toMatch(new RegExp(`^${started.service.baseUrl}/media/`));
  const served = await ask("GET", file?.url ?? "");
  expect(served.status).toBe(200);
  expect(served.type).toMatch(type);
});

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

test("an upload is created, found, listed, used and deleted", async () => {
  const created = await ask("POST", "/v1/uploads", png, { "content-type": "image/png" });
  expect(created).toMatchObject({ ...json, body: { object: "upload", status: "active", kind: "image" } });
  const { id } = created.body as { id: string };
  expect(await ask("GET", `/v1/uploads/${id}`)).toMatchObject({ ...json, body: { id, bytes: png.length } });
  expect(await ask("GET", "/v1/uploads")).toMatchObject({ ...json, body: { object: "list", data: [{ id }] } });
  const content = [{ type: "image_url", image_url: { url: id } }];
  const chat = await ask("POST", "/v1/chat/completions", {
    model: "local/chat",
    messages: [{ role: "user", content }],
  });
  expect(chat.text).toContain("PNG image of 1 x 1");
  expect(await ask("DELETE", `/v1/uploads/${id}`)).toMatchObject({ ...json, body: { id, deleted: true } });
  expect(await ask("GET", `/v1/uploads/${id}`)).toMatchObject({ status: 410 });
});

test("an upload in parts is completed", async () => {
  const created = await ask("POST", "/v1/uploads", { bytes: png.length, mime: "image/png" });
  expect(created).toMatchObject({ ...json, body: { status: "pending" } });
  const { complete_url, part_urls } = created.body as { complete_url: string; part_urls: [{ url: string }] };
  expect((await fetch(part_urls[0].url, { method: "PUT", body: png })).status).toBe(200);
  expect(await ask("POST", complete_url)).toMatchObject({ ...json, body: { status: "active", bytes: png.length } });
});

const model = expect.objectContaining({ id: "local/chat" }) as object;

test.each([
  ["/v1/models", { object: "list", data: expect.arrayContaining([model]) as object[] }],
  ["/v1/models/local/chat", model],
  ["/v1beta/models", { models: expect.arrayContaining([expect.objectContaining({ name: "models/local/chat" })]) }],
  ["/v1beta/models/local/chat", { name: "models/local/chat" }],
  ["/healthz", { status: "ok" }],
  ["/readyz", { status: "ready", mongodb: true, redis: true }],
  ["/openapi.json", { openapi: expect.stringMatching(/^3\.1/) as string }],
])("GET %s answers without a key", async (path, body) => {
  await expect.poll(() => ask("GET", path, undefined, { authorization: "" })).toMatchObject({ ...json, body });
});

test("/docs is a page", async () => {
  expect(await ask("GET", "/docs")).toMatchObject({ status: 200, type: "text/html" });
});

test("every admin route answers", async () => {
  const admin: Client["admin"] = (...request) => started.service.admin(...request);
  const account = await admin<{ id: string }>("POST", "/accounts", { name: "smoke" });
  const at = `/accounts/${account.id}`;
  expect(await admin("PATCH", at, { name: "renamed" })).toMatchObject({ id: account.id, name: "renamed" });
  const credit = { amount_usd: "1.00", idempotency_key: "smoke" };
  expect(await admin("POST", `${at}/credits`, credit)).toMatchObject({ kind: "credit", amount_usd: "1.00" });
  expect(await admin("GET", at)).toMatchObject({ id: account.id, available_usd: "1.00" });
  const key = await admin<{ id: string; key: string }>("POST", `${at}/keys`, {});
  expect(key.key).toMatch(/^live_/);
  expect(await admin("PATCH", `/keys/${key.id}`, { name: "named" })).toMatchObject({ id: key.id, name: "named" });
  expect(await admin("DELETE", `/keys/${key.id}`)).toMatchObject({ revoked_at: count });
  for (const path of ["/accounts", `${at}/keys`, `${at}/ledger`, "/owed", "/buyback/accruals", "/buyback/batches"])
    expect([path, await admin("GET", path)]).toEqual([path, expect.objectContaining({ object: "list" })]);
  expect(await admin("GET", "/owed/total")).toMatchObject({ owed_usd: expect.any(String) as string });
  await expect(
    admin("POST", "/owed/none/refunds", { amount_usd: "1.00", transaction: "1".repeat(64) }),
  ).rejects.toThrow("404");
});

test("a call is found by its request id, and the ledger adds up", async () => {
  const { headers } = await ask("POST", "/v1/embeddings", { model: "local/embeddings", input: "one" });
  const { service } = started;
  expect(await service.settled()).toMatchObject({ ok: true });
  const found = await service.admin("GET", `/requests/${headers.get("x-request-id")}`);
  expect(found).toMatchObject({ kind: "usage", request: { model: "local/embeddings", status: "succeeded" } });
});
