import { expect, test } from "vitest";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { mockErrorInfo, mockGeminiError, mockGeminiProblem, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockExpressKey } from "../support/mock-vertex.ts";
import { mockAccountWith, mockProject } from "../support/mock-vertex-tokens.ts";
import { startVertex, startVertexChat, startVertexClaude, type Way } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const at = `/v1/projects/${mockProject}/locations/global`;
const google = `${at}/publishers/google/models/gemini-mock`;
const anthropic = `${at}/publishers/anthropic/models/claude-mock`;

const starts = { Gemini: startVertex, Claude: startVertexClaude, Llama: startVertexChat };
test.each([
  ["Gemini", "answer", `${google}:generateContent`],
  ["Gemini", "stream", `${google}:streamGenerateContent?alt=sse`],
  ["Gemini", "count", `${google}:countTokens`],
  ["Claude", "answer", `${anthropic}:rawPredict`],
  ["Claude", "stream", `${anthropic}:streamRawPredict`],
  ["Claude", "count", `${at}/publishers/anthropic/models/count-tokens:rawPredict`],
  ["Llama", "answer", `${at}/endpoints/openapi/chat/completions`],
  ["Llama", "stream", `${at}/endpoints/openapi/chat/completions`],
] as const)("%s has a path of its own: %s %s", async (vendor, way, path) => {
  const { mock, ask } = await starts[vendor]();
  expect(await ask(way)).toBeTruthy();
  expect(mock.requests.map((request) => [request.method, request.path])).toEqual([["POST", path]]);
  expect(mock.requests[0]?.headers.authorization).toMatch(/^Bearer ya29\.c\./);
  expect(mock.requests[0]?.headers).not.toHaveProperty("x-forwarded-for");
});

test("Gemini gets roles, none of the fields that only the Gemini API knows, and no settings of the operator's project", async () => {
  const { mock, ask, text } = await startVertex();
  const asked = text({
    contents: [
      { parts: [{ text: "Hi" }] },
      { role: "model", parts: [{ functionCall: { name: "look", args: {} } }] },
      { role: "function", parts: [{ functionResponse: { name: "look", response: {} } }] },
    ],
    systemInstruction: { parts: [{ text: "Be kind." }] },
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
    generationConfig: { maxOutputTokens: 50 },
    labels: { team: "caller" },
    modelArmorConfig: { promptTemplateName: "projects/acme-prod/locations/eu/templates/a" },
    store: false,
  });
  await ask("answer", asked);
  await ask("count", asked);
  const { store: _, labels: __, modelArmorConfig: ___, contents, ...kept } = asked.body;
  const roles = [{ role: "user" }, { role: "model" }, { role: "user" }];
  const sent = (contents as object[]).map((content, n) => ({ ...content, ...roles[n] }));
  const { safetySettings: ____, ...counted } = kept;
  expect(mock.requests.map(({ body }) => body)).toEqual([
    { ...kept, contents: sent },
    { ...counted, contents: sent },
  ]);
});

test("Claude's version is in the body, its model in the path, and betas that Google lacks are left out", async () => {
  const { mock, ask, text } = await startVertexClaude();
  const headers = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219, interleaved-thinking-2025-05-14,oauth-2025-04-20,context-1m-2025-08-07",
  };
  const model = "claude-haiku-4-5@20251001";
  await ask("answer", text({ stream: true, system: "Be kind." }, { headers, model }));
  await ask("stream", text({ model }, { headers: { "anthropic-beta": "files-api-2025-04-14" }, model }));
  await ask("count", text({ model }, { model }));
  const { model: _, ...body } = text().body;
  const version = { anthropic_version: "vertex-2023-10-16" };
  const { max_tokens: __, ...counted } = body;
  // The model of the body leads to the address.
  expect(mock.requests.map((request) => [request.path.split("/").at(-1), request.body])).toEqual([
    ["claude-mock:rawPredict", { ...body, system: "Be kind.", ...version }],
    [`${model}:streamRawPredict`, { ...body, stream: true, ...version }],
    ["count-tokens:rawPredict", { ...counted, model, ...version }],
  ]);
  expect(mock.requests.map((request) => request.headers["anthropic-beta"])).toEqual([
    "interleaved-thinking-2025-05-14,context-1m-2025-08-07",
    undefined,
    undefined,
  ]);
});

const link = { type: "url", url: "https://example.com/a.png" };
test.each([
  ["messages[0].content[0].source", [{ type: "image", source: link }]],
  [
    "messages[0].content[0].content[1].source",
    [toolResult({ type: "text", text: "a" }, { type: "image", source: link })],
  ],
  [
    "messages[0].content[0].source.content[0].source",
    [{ type: "document", source: { type: "content", content: [{ type: "image", source: link }] } }],
  ],
])("links to Claude are left to other upstreams, naming %s", async (param, content) => {
  const { mock, ask, text } = await startVertexClaude();
  for (const way of ["answer", "stream", "count"] as const) {
    const failure = await errorOf(ask(way, text({ messages: [{ role: "user", content }] })));
    expect(failure).toMatchObject({ kind: "refused", status: 400, param, isHostLimit: true });
  }
  expect(mock.requests).toEqual([]);
});

function toolResult(...content: object[]) {
  return { type: "tool_result", tool_use_id: "toolu_1", content };
}

test("usage has thoughts, cached content and the traffic's type", async () => {
  const { mock, ask } = await startVertex();
  const usage = { promptTokenCount: 100, cachedContentTokenCount: 60, thoughtsTokenCount: 7, candidatesTokenCount: 3 };
  mock.respond({ text: "Hello", usage });
  expect(await ask("answer")).toMatchObject({ usageMetadata: { ...usage, trafficType: "ON_DEMAND" } });
});

test("embeddings are requested text by text, and answered in order", async () => {
  const { mock, provider, text } = await startVertex();
  const input = Array.from({ length: 19 }, (_, n) => `text ${n}`);
  const call = { ...text(), model: "gemini-embedding-001" };
  const answer = await provider.embed({ ...call, body: { input, dimensions: 256 } });
  const again = await provider.embed({ ...call, body: { input: "text 18", dimensions: 256 } });
  const vectors = (answer["data"] as { embedding: number[]; index: number }[]).map(({ embedding }) => embedding);
  expect(answer).toMatchObject({ usage: { prompt_tokens: 38, total_tokens: 38 } });
  expect(vectors).toHaveLength(19);
  expect(vectors.map((vector) => Math.hypot(...vector))).toEqual(Array(19).fill(1));
  expect((again["data"] as { embedding: number[] }[])[0]?.embedding).toEqual(vectors[18]);
  expect(mock.requests[0]).toMatchObject({
    path: `${at}/publishers/google/models/gemini-embedding-001:predict`,
    body: { instances: [{ content: "text 0" }], parameters: { outputDimensionality: 256 } },
  });
});

test("an embedding that fails ends the call", async () => {
  const { mock, provider, text } = await startVertex();
  mock.respond({}, mockGeminiError(429, "Quota exceeded"));
  const failing = provider.embed({ ...text(), body: { input: ["a", "b", "c"] } });
  expect(await errorOf(failing)).toMatchObject({ kind: "busy", retryAfterMs: 1_000 });
});

test("images are made by generateContent", async () => {
  const { mock, provider, call, stored } = await startVertex();
  const made = await provider.generate(call("images", { prompt: "A cat", n: 2, size: "1536x1024" }));
  expect(made).toEqual({ output: {}, usage: { image: 2 } });
  expect(stored).toHaveLength(2);
  expect(mock.requests[0]).toMatchObject({ path: `${google}:generateContent`, body: { contents: [{ role: "user" }] } });
});

const exhausted = mockGeminiProblem(429, "Resource exhausted. Please try again later.");
test.each<readonly [string, object, object]>([
  ["a list as body", { status: 429, body: [exhausted] }, { kind: "busy", status: 429, retryAfterMs: 1_000 }],
  ["a list in place of a stream", { body: [exhausted] }, { kind: "busy", status: 429 }],
  ["an event that is a list", { events: [[exhausted]] }, { kind: "busy", status: 429 }],
  ["an event", { events: [exhausted] }, { kind: "busy", status: 429 }],
  [
    "a delay",
    mockGeminiError(429, "Quota exceeded.", { details: [mockRetryInfo("7s")] }),
    { kind: "busy", retryAfterMs: 7_000 },
  ],
  ["an overload", mockGeminiError(503, "The model is overloaded."), { kind: "unavailable", status: 503 }],
  [
    "a blocked API",
    mockGeminiError(403, "Requests to this API are blocked.", { details: [mockErrorInfo("API_KEY_SERVICE_BLOCKED")] }),
    { kind: "misconfigured", status: 403 },
  ],
  [
    "a field of the Gemini API alone",
    mockGeminiError(400, 'Invalid JSON payload received. Unknown name "partMetadata": Cannot find field.'),
    { kind: "refused", isHostLimit: true },
  ],
  [
    "a beta of Anthropic alone",
    mockAnthropicError(400, "Unexpected value(s) `a-2026-01-01` for the `anthropic-beta` header."),
    { kind: "refused", isHostLimit: true },
  ],
])("Google's errors: %s", async (_, answer, failure) => {
  const { mock, readFailing } = await startVertex();
  mock.respond(answer);
  expect((await readFailing()).failure).toMatchObject({ name: "UpstreamFailure", ...failure });
});

test.each<readonly [string, Parameters<typeof startVertex>[0], string, object]>([
  [
    "another project",
    { parts: { project: "other", region: "global" } },
    "gemini-mock",
    { kind: "misconfigured", status: 403 },
  ],
  [
    "a location that does not exist",
    { parts: { project: mockProject, region: "mars-1" } },
    "gemini-mock",
    { kind: "refused", status: 400, isHostLimit: true },
  ],
  ["a model that the location does not have", {}, "gemini-missing", { kind: "misconfigured", status: 404 }],
])("%s is not the caller's fault, so that another upstream is tried", async (_, options, model, failure) => {
  const { ask, text } = await startVertex(options);
  expect(await errorOf(ask("answer", text({}, { model })))).toMatchObject(failure);
});

test("a whole address of the operator's own stays as it is", async () => {
  const { mock, ask } = await startVertex({ baseUrl: (url) => `${url}/v1/projects/${mockProject}/locations/eu` });
  await ask("answer");
  expect(mock.requests[0]?.path).toContain("/locations/eu/");
});

test("the project of a key's own file counts if no other is given", async () => {
  const { mock, ask } = await startVertex({ parts: { region: "us-east5" } });
  await ask("answer");
  expect(mock.requests[0]?.path).toContain(`/projects/${mockProject}/locations/us-east5/`);
});

test("an API key reaches Gemini without project and location, and nothing else", async () => {
  const { mock, ask, provider, text } = await startVertex({ apiKey: mockExpressKey });
  for (const way of ["answer", "stream", "count"] as const) await ask(way);
  expect(mock.requests.map(({ path }) => path)).toEqual(
    ["generateContent", "streamGenerateContent?alt=sse", "countTokens"].map(
      (method) => `/v1/publishers/google/models/gemini-mock:${method}`,
    ),
  );
  expect(mock.tokens.requests).toEqual([]);
  const claude = text({}, { format: "messages", body: { model: "claude-mock", max_tokens: 1, messages: [] } });
  expect(await errorOf(provider.answer(claude))).toMatchObject({ kind: "misconfigured" });
  expect(mock.requests).toHaveLength(3);
});

test("an API key is never used for a location that promises where data is processed", async () => {
  const { mock, ask } = await startVertex({ apiKey: mockExpressKey, parts: { region: "eu" } });
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "misconfigured" });
  expect(mock.requests).toEqual([]);
});

test("a wrong API key is told", async () => {
  const { ask } = await startVertex({ apiKey: "AIzaSyWrong_0123456789" });
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "misconfigured", status: 400 });
});

test("a format that the cloud does not speak is refused", async () => {
  const { provider, text, ask } = await startVertex();
  expect(await errorOf(provider.answer(text({}, { format: "responses" })))).toMatchObject({ kind: "misconfigured" });
  expect(provider.takesLinks).toBe(false);
  expect(await errorOf(ask("count", text({}, { format: "chat" })))).toMatchObject({ kind: "misconfigured" });
});

const accepted = { name: "accepted" };
test.each<readonly [string, object, object]>([
  ["works", {}, accepted],
  ["works where the location lacks the model", mockGeminiError(404, "Publisher Model was not found"), accepted],
  ["does not work", mockGeminiError(403, "Permission denied"), { kind: "misconfigured", status: 403 }],
  ["is not known to work", mockGeminiError(503, "Overloaded"), { kind: "unavailable" }],
])("a check by a free request tells that a credential %s", async (_, answer, outcome) => {
  const { mock, provider, text } = await startVertex();
  mock.respond(answer);
  const { signal, log } = text();
  const checked = provider.check?.({ signal, log }).then(
    () => accepted,
    (error: unknown) => error,
  );
  expect(await checked).toMatchObject(outcome);
  expect(mock.requests.map(({ path }) => path.split(":").at(-1))).toEqual(["countTokens"]);
});

const ways: readonly Way[] = ["answer", "stream", "count"];

test("calls at the same time share one request for a token, which is renewed before it expires", async () => {
  const { mock, clock, ask } = await startVertex();
  await Promise.all([...ways, ...ways].map((way) => ask(way)));
  expect(mock.tokens.requests).toHaveLength(1);
  clock.advance(54 * 60_000);
  await ask("answer");
  expect(mock.tokens.requests).toHaveLength(1);
  clock.advance(6 * 60_000);
  await ask("answer");
  expect(mock.tokens.requests).toHaveLength(2);
  expect(new Set(mock.requests.map(({ headers }) => headers.authorization)).size).toBe(2);
});

test("a token that Google refuses is replaced for the next call", async () => {
  const { mock, clock, ask } = await startVertex();
  await ask("answer");
  mock.tokens.revoke();
  clock.advance(2 * 60_000);
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "unavailable", status: 401 });
  await ask("answer");
  expect(mock.tokens.requests).toHaveLength(2);
});

test.each([
  ["of another key", { private_key_id: "f".repeat(40) }, "misconfigured"],
  ["of another account", { client_email: "other@acme-prod.iam.gserviceaccount.com" }, "misconfigured"],
])("a key file %s gives no token, and no part of it is in the failure", async (_, change, kind) => {
  const { mock, ask } = await startVertex({ apiKey: mockAccountWith(change) });
  const failure = (await errorOf(ask("answer"))) as Error;
  expect(failure).toMatchObject({ name: "UpstreamFailure", kind, status: 400 });
  expect(failure.message).toContain("invalid_grant");
  expect(failure.message).not.toMatch(/eyJ/);
  expect(mock.requests).toEqual([]);
});
