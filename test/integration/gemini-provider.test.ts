import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import { googleKey, startGemini } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const hi = { contents: [{ role: "user", parts: [{ text: "Hi there" }] }] };

test("an answer is passed unchanged; the body goes unchanged, the model in the path, the key in its header", async () => {
  const { mock, ask, text } = await startGemini();
  const body = { generationConfig: { temperature: 0.5, maxOutputTokens: 100 }, store: false };
  expect(await ask("answer", text(body))).toEqual({
    candidates: [
      { content: { parts: [{ text: "You said: Hi there" }], role: "model" }, finishReason: "STOP", index: 0 },
    ],
    usageMetadata: {
      promptTokenCount: 2,
      candidatesTokenCount: 4,
      totalTokenCount: 6,
      promptTokensDetails: [{ modality: "TEXT", tokenCount: 2 }],
    },
    modelVersion: "gemini-mock",
    responseId: "mock-response",
  });
  const [request] = mock.requests;
  expect(request).toMatchObject({ method: "POST", path: "/v1beta/models/gemini-mock:generateContent" });
  expect(request?.body).toEqual({ ...hi, ...body });
  expect(request?.headers).toMatchObject({ "x-goog-api-key": googleKey, "accept-encoding": "identity" });
  expect(request?.headers).not.toHaveProperty("authorization");
});

test("the key is not in a requested address", async () => {
  const { mock, clock, provider, ask, text, call } = await startGemini();
  for (const way of ["answer", "count"] as const) await ask(way);
  await ask("embed", text({ input: "Hi" }));
  const made = provider.generate(call("video", { prompt: "a fox", duration: 8 }));
  await clock.pass(2_000);
  await made;
  expect(mock.requests.map(({ path }) => path).join(" ")).not.toContain("AIza");
  expect(mock.requests.map(({ headers }) => headers["x-goog-api-key"])).toEqual(mock.requests.map(() => googleKey));
});

test.each(["", "/", "/v1beta", "/v1beta/"])("the operator's address may end in '%s'", async (end) => {
  const { mock, ask, text } = await startGemini({ baseUrl: (url) => url + end });
  await ask("answer", text({}, { model: "models/a/b c" }));
  expect(mock.requests[0]?.path).toBe("/v1beta/models/a%2Fb%20c:generateContent");
});

test("a prompt that is blocked is an answer, whole and streamed, and no failure", async () => {
  const { mock, ask } = await startGemini();
  mock.always({ blockReason: "PROHIBITED_CONTENT" });
  const blocked = { promptFeedback: { blockReason: "PROHIBITED_CONTENT" } };
  const answer = (await ask("answer")) as JsonObject;
  expect(answer).toMatchObject(blocked);
  expect(geminiConverter.responseToChat(answer)).toMatchObject({ choices: [{ finish_reason: "content_filter" }] });
  expect(await ask("stream")).toMatchObject([blocked]);
});

describe("a stream", () => {
  test("is requested as server-sent events, and its events arrive whole", async () => {
    const { mock, stream } = await startGemini();
    const events = await Array.fromAsync(stream());
    expect(mock.requests[0]).toMatchObject({
      method: "POST",
      path: "/v1beta/models/gemini-mock:streamGenerateContent?alt=sse",
      headers: { accept: "text/event-stream" },
    });
    expect(events).toMatchObject([
      ...["You", " said:", " Hi"].map((text) => ({ candidates: [{ content: { parts: [{ text }] } }] })),
      {
        candidates: [{ content: { parts: [{ text: " there" }] }, finishReason: "STOP" }],
        usageMetadata: { candidatesTokenCount: 4 },
      },
    ]);
  });

  test("delivers events after the finish reason, too", async () => {
    const { mock, ask } = await startGemini();
    const events = [
      { candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }] },
      { usageMetadata: { promptTokenCount: 1 } },
    ];
    mock.respond({ events });
    expect(await ask("stream")).toEqual(events);
  });
});

test("the provider counts the whole request; a refusal of it is one", async () => {
  const { mock, ask, text } = await startGemini();
  const systemInstruction = { parts: [{ text: "Be brief, please." }] };
  expect(await ask("count", text({ systemInstruction }, { model: "models/gemini-mock" }))).toBe(5);
  expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1beta/models/gemini-mock:countTokens" });
  const generateContentRequest = { ...hi, systemInstruction, model: "models/gemini-mock" };
  expect(mock.requests[0]?.body).toEqual({ generateContentRequest });
  const missing = text({}, { model: "missing" });
  expect(await errorOf(ask("count", missing))).toMatchObject({ kind: "misconfigured", status: 404 });
});

describe("embeddings", () => {
  async function start() {
    const { mock, provider, text } = await startGemini();
    return { mock, embed: (body: JsonObject) => provider.embed({ ...text(), model: "embed-mock", body }) };
  }

  test("are requested together and answered in OpenAI's shape; usage is absent if the provider reports none", async () => {
    const { mock, embed } = await start();
    const answer = await embed({ model: "embed-mock", input: ["one", "two"], encoding_format: "base64" });
    expect(answer).toEqual({
      data: [
        { index: 0, embedding: [0.5, 0, 0, 0, 0, 0, 0, 0] },
        { index: 1, embedding: [0, 0.5, 0, 0, 0, 0, 0, 0] },
      ],
    });
    expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1beta/models/embed-mock:batchEmbedContents" });
    expect(mock.requests[0]?.body).toEqual({
      requests: ["one", "two"].map((text) => ({ model: "models/embed-mock", content: { parts: [{ text }] } })),
    });
  });

  test("of one text are a list of one; truncated vectors are normalized", async () => {
    const { mock, embed } = await start();
    expect(await embed({ input: "one", dimensions: 3 })).toEqual({ data: [{ index: 0, embedding: [1, 0, 0] }] });
    expect(mock.requests[0]?.body).toMatchObject({ requests: [{ outputDimensionality: 3 }] });
    mock.respond({ body: { embeddings: [{ values: [0, 0] }] } });
    expect(await embed({ input: "one", dimensions: 2 })).toEqual({ data: [{ index: 0, embedding: [0, 0] }] });
  });

  test("of 256 texts are requested by hundreds, and returned in their order", async () => {
    const { mock, embed } = await start();
    const input = Array.from({ length: 256 }, (_, i) => `text ${i}`);
    const { data } = await embed({ input, dimensions: 100 });
    const sizes = mock.requests.map(({ body }) => (body["requests"] as object[]).length);
    expect(sizes).toEqual([100, 100, 56]);
    const vectors = data as { index: number; embedding: number[] }[];
    expect(vectors.map(({ index, embedding }) => [index, embedding.indexOf(1)])).toEqual(
      input.map((_, i) => [i, i % 100]),
    );
  });

  test("of several batches report their tokens where each does, and fail with any", async () => {
    const { mock, embed } = await start();
    const values = (count: number) => Array.from({ length: count }, () => ({ values: [1] }));
    const batch = (count: number, promptTokenCount?: number) => ({
      body: { embeddings: values(count), ...(promptTokenCount && { usageMetadata: { promptTokenCount } }) },
    });
    mock.respond(batch(100, 200), batch(1, 3), batch(100, 200), batch(1), {}, mockGeminiError(429, "Slow down"));
    const input = Array.from({ length: 101 }, () => "text");
    expect(await embed({ input })).toMatchObject({ usage: { prompt_tokens: 203, total_tokens: 203 } });
    expect(await embed({ input })).not.toHaveProperty("usage");
    expect(await errorOf(embed({ input }))).toMatchObject({ kind: "busy" });
  });

  test("of tokens instead of texts are refused before the provider is called", async () => {
    const { mock, embed } = await start();
    for (const input of [[[1, 2]], [1], undefined])
      expect(await errorOf(embed({ input }))).toMatchObject({ kind: "refused", param: "input" });
    expect(mock.requests).toEqual([]);
  });
});
