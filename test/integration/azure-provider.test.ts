import { describe, expect, test } from "vitest";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockAzureError, mockAzureKey, mockBlocked, mockPromptResults } from "../support/mock-azure.ts";
import { mockText, mockUsage } from "../support/mock-openai.ts";
import { mockMp3, mockTranscript } from "../support/mock-openai-media.ts";
import { startAzure, startDatedAzure, startFoundry } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const recording = uploadsOf([{ id: "upl_1", param: "input.file", mime: "audio/mpeg", content: mockMp3 }]);

describe("addresses", () => {
  test("the v1 API has OpenAI's paths, and deployments in the place of models", async () => {
    const { mock, ask, text, provider, call } = await startAzure();
    const response = { format: "responses", body: { model: "gpt-main", input: "Hi", max_output_tokens: 50 } } as const;
    await ask("answer");
    await ask("answer", text({}, response));
    await ask("embed", text({ model: "vectors", input: "Hi" }, { model: "vectors" }));
    await provider.generate(call("images", { prompt: "A cat" }, { model: "pictures" }));
    await provider.generate(call("speech", { text: "Hi", voice: "alloy" }, { model: "voice" }));
    const heard = await provider.generate(
      call("transcription", { file: "upl_1" }, { model: "ears", uploads: recording }),
    );
    expect(heard.output).toMatchObject({ text: mockTranscript });
    const paths = ["chat/completions", "responses", "embeddings", "images/generations", "audio/speech"];
    expect(mock.requests.map(({ path }) => path)).toEqual(
      [...paths, "audio/transcriptions"].map((path) => `/openai/v1/${path}`),
    );
    for (const { headers } of mock.requests) {
      expect(headers["api-key"]).toBe(mockAzureKey);
      expect(headers).not.toHaveProperty("authorization");
    }
  });

  test("a dated version has the deployment and the version in its paths, also for forms", async () => {
    const { mock, ask, text, provider, call } = await startDatedAzure();
    await ask("answer");
    await ask("stream");
    await ask("embed", text({ model: "vectors", input: "Hi" }, { model: "vectors" }));
    await provider.generate(call("transcription", { file: "upl_1" }, { model: "ears", uploads: recording }));
    expect(mock.requests.map(({ path }) => path)).toEqual([
      ...Array(2).fill("/openai/deployments/gpt-main/chat/completions?api-version=2024-10-21"),
      "/openai/deployments/vectors/embeddings?api-version=2024-10-21",
      "/openai/deployments/ears/audio/transcriptions?api-version=2024-10-21",
    ]);
  });

  test("a dated version answers responses at a path without the deployment", async () => {
    const quirks = { stream_usage: "request", whole_answer_cap: undefined, api_version: "2025-04-01-preview" } as const;
    const { mock, ask, text } = await startDatedAzure({ quirks });
    const body = { model: "gpt-main", input: "Hi", max_output_tokens: 50 };
    await ask("answer", text(body, { format: "responses", body }));
    expect(mock.requests[0]?.path).toBe("/openai/responses?api-version=2025-04-01-preview");
  });

  test("Claude has Anthropic's paths, version and token counts", async () => {
    const { mock, ask, text } = await startFoundry();
    expect(await ask("answer")).toMatchObject({ type: "message", model: "claude-opus-5-5" });
    const events = await ask("stream", text({}, { headers: { "anthropic-version": "2026-10-21" } }));
    expect((events as unknown[]).at(-1)).toEqual({ type: "message_stop" });
    expect(await ask("count")).toBe(2);
    const paths = ["messages", "messages", "messages/count_tokens"];
    expect(mock.requests.map(({ path }) => path)).toEqual(paths.map((path) => `/anthropic/v1/${path}`));
    const versions = mock.requests.map(({ headers }) => headers["anthropic-version"]);
    expect(versions).toEqual(["2023-06-01", "2026-10-21", "2023-06-01"]);
  });

  test.each([
    ["v1", startAzure, "gpt-main"],
    ["dated", startDatedAzure, "gpt-main"],
    ["Claude's", startFoundry, "claude-main"],
  ] as const)("a customer's names of deployments are used (%s)", async (_, startProvider, deployment) => {
    const { mock, ask, text } = await startProvider({ deployments: { "catalog/name": deployment } });
    await ask("answer", text({ model: "catalog/name" }, { model: "catalog/name" }));
    await ask("stream", text({ model: "catalog/name" }, { model: "catalog/name" }));
    expect(mock.requests.map(({ body }) => body["model"])).toEqual([deployment, deployment]);
  });
});

describe("the content filter", () => {
  const wordsOf = (chunks: unknown) =>
    (chunks as { choices: { delta: { content?: string } }[] }[])
      .map(({ choices }) => choices[0]?.delta.content ?? "")
      .join("");

  test("annotations of an answer pass", async () => {
    const { ask } = await startAzure();
    expect(await ask("answer")).toMatchObject({
      prompt_filter_results: mockPromptResults,
      choices: [{ content_filter_results: { hate: { filtered: false } }, message: { content: mockText } }],
    });
  });

  test.each(["gpt-main", "gpt-async"])(
    "every chunk of %s has a choice with a delta, but the one with the usage",
    async (model) => {
      const { ask, text } = await startAzure();
      const chunks = (await ask("stream", text({ model }, { model }))) as Record<string, unknown>[];
      const texts = chunks.filter(({ usage }) => usage == null);
      expect(chunks).toHaveLength(texts.length + 1);
      for (const chunk of texts) expect(chunk).toMatchObject({ choices: [{ delta: expect.any(Object) }] });
      expect(texts[0]).toMatchObject({ prompt_filter_results: mockPromptResults, id: "chatcmpl-mock" });
      expect(wordsOf(chunks)).toBe(mockText);
      expect(chunks.find(({ usage }) => usage != null)).toMatchObject({ usage: mockUsage() });
      expect(chunks.filter(({ id, created }) => id === "" || created === 0)).toEqual([]);
      const notes = chunks.filter((chunk) => JSON.stringify(chunk).includes("content_filter_offsets"));
      expect(notes).toHaveLength(model === "gpt-async" ? 2 : 0);
    },
  );

  test("the annotation of the prompt is not the first item of a stream", async () => {
    const { mock, stream } = await startAzure();
    const waiting = Promise.withResolvers<void>();
    mock.respond({ beforeEvent: { 1: waiting.promise } });
    const first = stream().next();
    await mock.request(0);
    waiting.resolve();
    expect((await first).value).toMatchObject({ choices: [{ delta: { role: "assistant" } }] });
  });

  test("text that the filter stops during a stream ends it, without a delta", async () => {
    const { mock, ask } = await startAzure();
    const last = {
      index: 0,
      finish_reason: "content_filter",
      content_filter_results: { violence: { filtered: true } },
    };
    const events = [
      { id: "c", choices: [{ index: 0, delta: { content: "Hey" }, finish_reason: null }] },
      { id: "", object: "", created: 0, model: "", choices: [last], usage: null },
    ];
    mock.respond({ events });
    const chunks = await ask("stream");
    expect(chunks).toEqual([events[0], { choices: [{ ...last, delta: {} }], usage: null }]);
  });

  test.each([
    ["chat", startAzure],
    ["dated", startDatedAzure],
  ] as const)(
    "a blocked prompt is refused with the code content_filter, for this server and all others (%s)",
    async (_, startProvider) => {
      const { ask, text } = await startProvider();
      const asked = text({ messages: [{ role: "user", content: "Do the forbidden." }] });
      for (const way of ["answer", "stream"] as const)
        expect(await errorOf(ask(way, asked))).toMatchObject({
          kind: "refused",
          status: 400,
          code: "content_filter",
          isHostLimit: false,
          message: expect.stringContaining("content management policy"),
        });
    },
  );

  test.each(["contentFilter", "content_policy_violation", null])("whatever code is above it: %s", async (code) => {
    const { mock, ask, readFailing } = await startAzure();
    mock.respond(mockBlocked(code as string), { events: [mockBlocked(code as string).body] });
    expect(await errorOf(ask("answer"))).toMatchObject({ kind: "refused", code: "content_filter" });
    expect((await readFailing()).failure).toMatchObject({ kind: "refused", code: "content_filter" });
  });
});

test.each([
  ["an unknown deployment", "nothing", undefined, { kind: "misconfigured", status: 404 }],
  ["a deployment of another kind", "vectors", undefined, { kind: "misconfigured", status: 400, isForbidden: true }],
  [
    "a limit in milliseconds",
    "gpt-main",
    {
      ...mockAzureError(429, "429", "Requests have exceeded token rate limit. Please retry after 6 seconds."),
      headers: { "retry-after": "6", "retry-after-ms": "5500" },
    },
    { kind: "busy", retryAfterMs: 5_500 },
  ],
  [
    "a quota",
    "gpt-main",
    mockAzureError(429, "insufficient_quota", "You exceeded your current quota."),
    { kind: "misconfigured" },
  ],
  [
    "a limit in a stream, with the status as text",
    "gpt-main",
    { events: [{ error: { code: "429", message: "Please retry after 6 seconds." } }] },
    { kind: "busy" },
  ],
  [
    "a right that is missing",
    "gpt-main",
    mockAzureError(403, "PermissionDenied", "The principal lacks the required data action"),
    { kind: "misconfigured", status: 403 },
  ],
])("%s has its kind", async (_, model, answer, expected) => {
  const { mock, readFailing, text } = await startAzure();
  if (answer) mock.respond(answer);
  expect((await readFailing(text({ model }, { model }))).failure).toMatchObject(expected);
});

test("a version that Azure does not know is a configuration fault, a field that it does not have is not", async () => {
  const quirks = { stream_usage: "request", whole_answer_cap: undefined } as const;
  const old = await startDatedAzure({ quirks: { ...quirks, api_version: "2023-05-15" } });
  expect(await errorOf(old.ask("answer"))).toMatchObject({ kind: "misconfigured", status: 400, isForbidden: true });
  const { ask, text } = await startDatedAzure();
  expect(await errorOf(ask("answer", text({ verbosity: "low" })))).toMatchObject({
    kind: "refused",
    isHostLimit: true,
  });
});
