import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { startMockAnthropicBatches } from "../support/mock-anthropic-batches.ts";
import { mockError } from "../support/mock-openai.ts";
import { startMockOpenaiBatches } from "../support/mock-openai-batches.ts";

type Endpoint = OpenAI.BatchCreateParams["endpoint"];
const chat = "/v1/chat/completions";
const hello = { model: "gpt-mock", messages: [{ role: "user", content: "Hello." }] };
const lineOf = (custom_id: string, body: object = hello, url: Endpoint = chat) => ({
  custom_id,
  method: "POST",
  url,
  body,
});
const jsonl = (...lines: readonly unknown[]) => lines.map((line) => JSON.stringify(line)).join("\n");
interface ResultLine {
  readonly custom_id: string;
  readonly response: { readonly body: { readonly usage: { readonly total_tokens: number } } } | null;
}
const parsed = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ResultLine);

async function openai(options: Parameters<typeof startMockOpenaiBatches>[0] = {}) {
  const mock = await startMockOpenaiBatches(options);
  onTestFinished(() => mock.close());
  const client = new OpenAI({ apiKey: "sk-batches", baseURL: mock.url, maxRetries: 0 });
  const upload = (content: string) =>
    client.files.create({ file: new File([content], "in.jsonl"), purpose: "batch" }).then(({ id }) => id);
  const submit = async (content: string, endpoint: Endpoint = chat) =>
    client.batches.create({ input_file_id: await upload(content), endpoint, completion_window: "24h" });
  const linesOf = async (id: string | undefined) => parsed(await (await client.files.content(id ?? "")).text());
  return { mock, client, upload, submit, linesOf };
}

async function anthropic(options: Parameters<typeof startMockAnthropicBatches>[0] = {}) {
  const mock = await startMockAnthropicBatches(options);
  onTestFinished(() => mock.close());
  return { mock, client: new Anthropic({ apiKey: "sk-ant-batches", baseURL: mock.url, maxRetries: 0 }) };
}

test.for([
  [chat, hello, { object: "chat.completion" }],
  ["/v1/responses", { model: "gpt-mock", input: "Hello." }, { object: "response" }],
  ["/v1/embeddings", { model: "gpt-mock", input: "Hello." }, { object: "list" }],
] as const)("OpenAI's client runs a batch of %s from its file to its results", async ([endpoint, body, answer]) => {
  const { mock, client, linesOf } = await openai();
  const ids = ["a", "b", "c", "d", "e"];
  const file = await client.files.create({
    file: new File([jsonl(...ids.map((id) => lineOf(id, body, endpoint)))], "in.jsonl"),
    purpose: "batch",
    expires_after: { anchor: "created_at", seconds: 7200 },
  });
  expect(file).toMatchObject({ object: "file", filename: "in.jsonl", purpose: "batch", status: "processed" });
  expect((file.expires_at ?? 0) - file.created_at).toBe(7200);
  const { id, status } = await client.batches.create({
    input_file_id: file.id,
    endpoint,
    completion_window: "24h",
    metadata: { part: "1" },
    output_expires_after: { anchor: "created_at", seconds: 3600 },
  });
  expect(status).toBe("validating");
  mock.batches.start(id);
  expect(await client.batches.retrieve(id)).toMatchObject({ status: "in_progress", request_counts: { total: 5 } });
  expect(mock.batches.lines(id).map(({ custom_id }) => custom_id)).toEqual(ids);
  await client.files.delete(file.id);
  mock.batches.finalize(id);
  expect(await client.batches.retrieve(id)).toMatchObject({ status: "finalizing", output_file_id: null });
  mock.batches.complete(id, { b: mockError(429, "Slow down."), c: "timed-out", d: "missing" });
  const done = await client.batches.retrieve(id);
  expect(done).toMatchObject({
    status: "completed",
    model: "gpt-mock",
    metadata: { part: "1" },
    errors: null,
    request_counts: { total: 5, completed: 2, failed: 2 },
  });
  const output = await linesOf(done.output_file_id);
  expect(output.map(({ custom_id }) => custom_id)).toEqual(["e", "a"]);
  for (const line of output)
    expect(line).toMatchObject({ response: { status_code: 200, body: { ...answer, model: "gpt-mock" } }, error: null });
  expect(await linesOf(done.error_file_id)).toMatchObject([
    { custom_id: "c", response: null, error: { code: "request_timeout" } },
    { custom_id: "b", response: { status_code: 429, body: { error: { message: "Slow down." } } }, error: null },
  ]);
  const tokens = output.map(({ response }) => response?.body.usage.total_tokens ?? 0);
  expect(tokens[0]).toBeGreaterThan(0);
  expect(done.usage?.total_tokens).toBe(tokens.reduce((sum, each) => sum + each));
  const stored = await client.files.retrieve(done.output_file_id ?? "");
  expect([stored.purpose, (stored.expires_at ?? 0) - stored.created_at]).toEqual(["batch_output", 3600]);
  expect((await client.files.list({ purpose: "batch_output" })).data).toHaveLength(2);
  expect(await client.files.delete(stored.id)).toEqual({ id: stored.id, object: "file", deleted: true });
  await expect(client.files.content(stored.id)).rejects.toMatchObject({ status: 404 });
});

test("an OpenAI batch is cancelled or expires with what is done, and cancelled only while it runs", async () => {
  const { mock, client, submit, linesOf } = await openai();
  const content = jsonl(lineOf("a"), lineOf("b"));
  const cancelled = await submit(content);
  mock.batches.start(cancelled.id);
  expect(await client.batches.cancel(cancelled.id)).toMatchObject({ status: "cancelling", cancelled_at: null });
  mock.batches.finishCancel(cancelled.id, { a: {} });
  const ended = await client.batches.retrieve(cancelled.id);
  expect(ended).toMatchObject({ status: "cancelled", request_counts: { total: 2, completed: 1, failed: 0 } });
  expect(await linesOf(ended.output_file_id)).toMatchObject([{ custom_id: "a" }]);
  expect(await linesOf(ended.error_file_id)).toMatchObject([{ response: null, error: { code: "batch_cancelled" } }]);
  await expect(client.batches.cancel(cancelled.id)).rejects.toMatchObject({ status: 409 });
  const { id } = await submit(content);
  mock.batches.start(id);
  mock.batches.expire(id);
  const expired = await client.batches.retrieve(id);
  expect(expired).toMatchObject({ status: "expired", output_file_id: null, expired_at: expect.any(Number) });
  expect(await linesOf(expired.error_file_id)).toMatchObject([
    { custom_id: "b", response: null, error: { code: "batch_expired" } },
    { custom_id: "a" },
  ]);
  const listed = await Array.fromAsync(client.batches.list({ limit: 1 }));
  expect(listed.map((batch) => batch.id)).toEqual([id, cancelled.id]);
});

test("an OpenAI batch whose answer is lost exists; a refused one does not", async () => {
  const { mock, client, submit } = await openai();
  const create = "POST /v1/batches";
  mock.respondTo(create, { lost: true }, mockError(429, "Slow down.", { headers: { "retry-after": "7" } }));
  await expect(submit(jsonl(lineOf("a")))).rejects.toThrow("Connection error");
  expect(mock.batches.all()).toMatchObject([{ status: "validating" }]);
  const refused = await submit(jsonl(lineOf("a"))).catch(
    (error: unknown) => error as InstanceType<typeof OpenAI.APIError>,
  );
  expect(refused).toMatchObject({ status: 429 });
  expect((refused as { headers: Headers }).headers.get("retry-after")).toBe("7");
  expect((await client.batches.list()).data).toHaveLength(1);
  mock.respond(mockError(500, "Broken."));
  await expect(client.batches.list()).rejects.toMatchObject({ status: 500 });
});

test.for([
  ["not JSON", ["{"], { code: "invalid_json_line", line: 1 }],
  ["a custom_id twice", [jsonl(lineOf("a"), lineOf("b"), lineOf("a"))], { code: "duplicate_custom_id", line: 3 }],
  ["another url", [jsonl(lineOf("a", hello, "/v1/responses"))], { code: "invalid_url", line: 1 }],
  ["two models", [jsonl(lineOf("a"), lineOf("b", { ...hello, model: "o" }))], { code: "mismatched_model", line: 2 }],
  ["a stream", [jsonl(lineOf("a", { ...hello, stream: true }))], { param: "body.stream", line: 1 }],
  ["no model", [jsonl(lineOf("a", {}))], { param: "body.model", line: 1 }],
  ["another field", [jsonl({ ...lineOf("a"), more: 1 })], { code: "unknown_parameter", param: "more" }],
  ["no custom_id", [jsonl({ ...lineOf("a"), custom_id: undefined })], { param: "custom_id", line: 1 }],
  ["another method", [jsonl({ ...lineOf("a"), method: "GET" })], { code: "invalid_method", line: 1 }],
  ["a blank line", [`${jsonl(lineOf("a"))}\n\n${jsonl(lineOf("b"))}`], { code: "invalid_json_line", line: 2 }],
  ["only a line break", ["\n"], { code: "invalid_json_line", line: 1 }],
  ["too many lines", [jsonl(lineOf("a"), lineOf("b"), lineOf("c"), lineOf("d"))], { code: "too_many_tasks" }],
  ["too many bytes", [jsonl(lineOf("x".repeat(1000)))], { code: "file_too_large" }],
] as const)("an OpenAI batch fails in validation: %s", async ([, [content], error]) => {
  const { mock, client, submit } = await openai({ maxLines: 3, maxBytes: 900 });
  const { id } = await submit(content);
  mock.batches.complete(id);
  expect(await client.batches.retrieve(id)).toMatchObject({
    status: "failed",
    output_file_id: null,
    error_file_id: null,
    errors: { object: "list", data: [error] },
  });
});

test("OpenAI's stand-in refuses what OpenAI refuses", async () => {
  const { mock, upload } = await openai();
  const id = await upload(jsonl(lineOf("a")));
  const sent = { input_file_id: id, endpoint: chat, completion_window: "24h" };
  const json = { "content-type": "application/json" };
  const call = (
    path: string,
    { headers = {}, ...init }: Pick<RequestInit, "method" | "body"> & { headers?: Record<string, string> } = {},
    key = "sk-batches",
  ) => fetch(`${mock.url}${path}`, { ...init, headers: { authorization: `Bearer ${key}`, ...headers } });
  const create = (more: object) =>
    call("/batches", { method: "POST", headers: json, body: JSON.stringify({ ...sent, ...more }) });
  const form = (fields: Record<string, string | File>) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    return call("/files", { method: "POST", body });
  };
  const file = new File(["{}"], "in.jsonl");
  const { id: other } = (await (await form({ file, purpose: "user_data" })).json()) as { id: string };
  const expiry = { anchor: "created_at", seconds: 3600 };
  const cases: readonly [Promise<Response>, number, string | null][] = [
    [call("/batches", {}, "sk-wrong"), 401, null],
    [fetch(`${mock.url}/batches`), 401, null],
    [call("/files", { method: "POST", headers: json, body: "{}" }), 415, null],
    [form({ purpose: "batch" }), 400, "file"],
    [form({ file }), 400, "purpose"],
    [form({ file, purpose: "batches" }), 400, "purpose"],
    [form({ file, purpose: "batch", more: "1" }), 400, "more"],
    [form({ file: "{}", purpose: "batch" }), 400, "file"],
    [form({ file: new File([""], "in.jsonl"), purpose: "batch" }), 400, "file"],
    [form({ file: new File(["{}"], "in.json"), purpose: "batch" }), 400, "file"],
    [form({ file, purpose: "batch", "expires_after[seconds]": "3600" }), 400, "expires_after.anchor"],
    [
      form({ file, purpose: "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "3599" }),
      400,
      "expires_after.seconds",
    ],
    [call("/batches", { method: "POST", body: JSON.stringify(sent) }), 415, null],
    [create({ input_file_id: undefined }), 400, "input_file_id"],
    [create({ input_file_id: "file-none" }), 404, "input_file_id"],
    [create({ input_file_id: other }), 400, "input_file_id"],
    [create({ endpoint: "/v1/audio/speech" }), 400, "endpoint"],
    [create({ completion_window: "1h" }), 400, "completion_window"],
    [create({ more: 1 }), 400, "more"],
    [create({ metadata: { a: 1 } }), 400, "metadata"],
    [create({ metadata: { a: "x".repeat(513) } }), 400, "metadata"],
    [create({ output_expires_after: { ...expiry, anchor: "now" } }), 400, "output_expires_after.anchor"],
    [create({ output_expires_after: { ...expiry, seconds: 2_592_001 } }), 400, "output_expires_after.seconds"],
    [call("/batches?limit=101"), 400, "limit"],
    [call("/batches?after=batch_none"), 404, null],
    [call("/batches/batch_none"), 404, null],
    [call("/batches/batch_none/cancel", { method: "POST" }), 404, null],
    [call("/files/file-none/content"), 404, "id"],
  ];
  for (const [at, [response, status, param]] of cases.entries()) {
    const answer = await response;
    const body = (await answer.json()) as { error: { param: unknown; message: unknown } };
    expect([at, answer.status, body.error.param, typeof body.error.message]).toEqual([at, status, param, "string"]);
  }
  expect(mock.batches.all()).toEqual([]);
});

const message = { model: "claude-mock", max_tokens: 9, messages: [{ role: "user" as const, content: "Hello." }] };
const requestsOf = (...ids: readonly string[]) => ids.map((custom_id) => ({ custom_id, params: message }));
const resultsOf = async (client: Anthropic, id: string) =>
  Array.fromAsync(await client.messages.batches.results(id), ({ custom_id, result }) => [custom_id, result.type]);

test("Anthropic's client runs a batch to its results, and deletes it", async () => {
  const { mock, client } = await anthropic();
  const { batches } = client.messages;
  const { id } = await batches.create({ requests: requestsOf("a", "b", "c", "d", "e") });
  const counts = { processing: 5, succeeded: 0, errored: 0, canceled: 0, expired: 0 };
  expect(await batches.retrieve(id)).toMatchObject({
    type: "message_batch",
    processing_status: "in_progress",
    request_counts: counts,
    results_url: null,
    ended_at: null,
  });
  await expect(batches.delete(id)).rejects.toMatchObject({ status: 400 });
  mock.batches.end(id, { b: mockAnthropicError(529, "Overloaded"), c: "expired", d: { text: "Hi." } });
  expect(await batches.retrieve(id)).toMatchObject({
    processing_status: "ended",
    request_counts: { processing: 0, succeeded: 3, errored: 1, canceled: 0, expired: 1 },
    results_url: `${mock.url}/v1/messages/batches/${id}/results`,
  });
  const results = await Array.fromAsync(await batches.results(id));
  expect(results).toMatchObject([
    {
      custom_id: "b",
      result: { type: "errored", error: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } } },
    },
    { custom_id: "d", result: { type: "succeeded", message: { content: [{ text: "Hi." }] } } },
    { custom_id: "e", result: { type: "succeeded", message: { type: "message", model: "claude-mock" } } },
    { custom_id: "c", result: { type: "expired" } },
    { custom_id: "a", result: { type: "succeeded" } },
  ]);
  expect(await batches.delete(id)).toEqual({ id, type: "message_batch_deleted" });
  await expect(batches.retrieve(id)).rejects.toMatchObject({ status: 404 });
});

test("an Anthropic batch is canceled or expires, and its answer is lost or refused", async () => {
  const { mock, client } = await anthropic();
  const { batches } = client.messages;
  const { id } = await batches.create({ requests: requestsOf("a", "b") });
  expect(await batches.cancel(id)).toMatchObject({ processing_status: "canceling", request_counts: { processing: 2 } });
  mock.batches.end(id, { a: {} });
  expect(await resultsOf(client, id)).toEqual([
    ["b", "canceled"],
    ["a", "succeeded"],
  ]);
  await expect(batches.cancel(id)).rejects.toMatchObject({ status: 400 });
  const create = "POST /v1/messages/batches";
  mock.respondTo(create, { lost: true }, mockAnthropicError(429, "Slow down."));
  await expect(batches.create({ requests: requestsOf("c") })).rejects.toThrow("Connection error");
  await expect(batches.create({ requests: requestsOf("c") })).rejects.toMatchObject({ status: 429 });
  const [lost] = (await batches.list({ limit: 1 })).data;
  mock.batches.expire(lost?.id ?? "");
  expect(await resultsOf(client, lost?.id ?? "")).toEqual([["c", "expired"]]);
  const listed = await Array.fromAsync(batches.list({ limit: 1 }));
  expect(listed.map((batch) => batch.id)).toEqual([lost?.id, id]);
  const before = await batches.list({ limit: 1, before_id: id });
  expect([before.data.map((batch) => batch.id), before.has_more]).toEqual([[lost?.id], false]);
});

test("Anthropic's stand-in refuses what Anthropic refuses", async () => {
  const { mock } = await anthropic({ maxRequests: 2, maxBytes: 1000 });
  const usual = { "x-api-key": "sk-ant-batches", "anthropic-version": "2023-06-01" };
  const call = (method: string, path: string, body?: object, headers: object = usual) =>
    fetch(`${mock.url}/v1/messages/batches${path}`, {
      method,
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  const create = (...requests: readonly object[]) => call("POST", "", { requests });
  const params = (more: object) => create({ custom_id: "a", params: { ...message, ...more } });
  const cases: readonly [Promise<Response>, number, RegExp][] = [
    [call("GET", "", undefined, { ...usual, "x-api-key": "sk-wrong" }), 401, /x-api-key/],
    [call("GET", "", undefined, { "anthropic-version": "2023-06-01" }), 401, /x-api-key/],
    [call("GET", "", undefined, { "x-api-key": "sk-ant-batches" }), 400, /anthropic-version/],
    [call("POST", ""), 400, /content-type/],
    [call("POST", "", {}), 400, /^requests:/],
    [call("POST", "", { requests: requestsOf("a"), more: 1 }), 400, /^more:/],
    [create(), 400, /at least 1/],
    [create(...requestsOf("a", "b", "c")), 400, /at most 2/],
    [create(...requestsOf("a", "a")), 400, /^requests.1.custom_id/],
    [create(...requestsOf("a.b")), 400, /pattern/],
    [create(...requestsOf("a".repeat(65))), 400, /at most 64/],
    [create({ custom_id: "a", params: message, more: 1 }), 400, /^requests.0.more/],
    [create({ custom_id: "a" }), 400, /^requests.0.params/],
    [params({ stream: true }), 400, /params.stream/],
    [params({ max_tokens: 0 }), 400, /params.max_tokens/],
    [params({ system: "x".repeat(1000) }), 413, /size/],
    [call("GET", "?limit=1001"), 400, /^limit/],
    [call("GET", "?after_id=msgbatch_none"), 404, /not found/],
    [call("GET", "/msgbatch_none"), 404, /not found/],
    [call("GET", "/msgbatch_none/results"), 404, /not found/],
  ];
  for (const [at, [response, status, text]] of cases.entries()) {
    const answer = await response;
    const body = (await answer.json()) as { type: unknown; error: { type: unknown; message: string } };
    expect([at, answer.status, body.type]).toEqual([at, status, "error"]);
    expect(body.error.message).toMatch(text);
  }
  expect(mock.batches.all()).toEqual([]);
});
