import { describe, expect, onTestFinished, test } from "vitest";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import { createGemini } from "../../workers/providers/gemini/index.ts";
import { operatorKey, startGemini } from "../support/gemini-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { errorOf, gate, oneByOne } from "../support/upstreams-setup.ts";

describe("an answer", () => {
  test("is passed unchanged; the body goes unchanged, the model in the path, the key in its header", async () => {
    const { mock, provider, text } = await startGemini();
    const body = { generationConfig: { temperature: 0.5, maxOutputTokens: 100 }, store: false };
    expect(await provider.answer(text(body))).toEqual({
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
    expect(request).toMatchObject({
      method: "POST",
      path: "/v1beta/models/gemini-mock:generateContent",
      body: { contents: [{ role: "user", parts: [{ text: "Hi there" }] }], ...body },
    });
    expect(request?.headers).toMatchObject({ "x-goog-api-key": operatorKey, "accept-encoding": "identity" });
    expect(request?.headers).not.toHaveProperty("authorization");
  });

  test.each(["", "/", "/v1beta", "/v1beta/"])("the operator's address may end in '%s'", async (path) => {
    const { mock, provider, text } = await startGemini({ path });
    await provider.answer(text({}, { model: "models/a/b c" }));
    expect(mock.requests[0]?.path).toBe("/v1beta/models/a%2Fb%20c:generateContent");
  });

  test("an upstream without a key gets none", async () => {
    const { mock, target, text } = await startGemini();
    const provider = createGemini({ ...target, apiKey: undefined }, { clock: createManualClock() });
    onTestFinished(() => provider.close());
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "misconfigured", status: 403 });
    expect(mock.requests[0]?.headers).not.toHaveProperty("x-goog-api-key");
  });

  test("a prompt that is blocked is an answer, not a failure", async () => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ blockReason: "PROHIBITED_CONTENT" });
    const answer = await provider.answer(text());
    expect(answer).toMatchObject({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } });
    expect(geminiConverter.responseToChat(answer)).toMatchObject({ choices: [{ finish_reason: "content_filter" }] });
  });

  test.each([
    ["nothing", {}],
    ["an empty list of candidates", { candidates: [] }],
    ["candidates that are no list", { candidates: { 0: {} } }],
    ["candidates that are no objects", { candidates: [null] }],
    ["candidates that are no objects, with a block", { candidates: [7], promptFeedback: { blockReason: "SAFETY" } }],
    ["a block without a reason", { promptFeedback: { blockReason: "BLOCK_REASON_UNSPECIFIED" } }],
    ["a list", [{ candidates: [{}] }]],
    ["no JSON", "<html>"],
    ["an error inside", { error: { code: 500, message: "oops", status: "INTERNAL" } }],
  ])("%s is refused as an answer", async (_, body) => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ body });
    expect(await errorOf(provider.answer(text()))).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
  });

  test("another format is refused", async () => {
    const { mock, provider, text } = await startGemini();
    expect(provider.speaks).toEqual(["gemini"]);
    for (const made of [provider.answer(text({}, { format: "chat" })), provider.count?.(text({}, { format: "chat" }))])
      expect(await errorOf(made ?? Promise.resolve())).toMatchObject({ kind: "misconfigured" });
    expect(mock.requests).toEqual([]);
  });
});

const wordsOf = (events: readonly object[]) =>
  (events as { candidates: { content: { parts: { text: string }[] } }[] }[])
    .map(({ candidates }) => candidates[0]?.content.parts[0]?.text)
    .join("");

const said = (text: string, finishReason?: string) => ({
  candidates: [{ content: { parts: [{ text }], role: "model" }, ...(finishReason && { finishReason }), index: 0 }],
});

describe("a stream", () => {
  test("is requested as server-sent events, and its events arrive whole", async () => {
    const { mock, provider, text } = await startGemini();
    const events = await Array.fromAsync(oneByOne(provider.stream(text())));
    expect(mock.requests[0]).toMatchObject({
      method: "POST",
      path: "/v1beta/models/gemini-mock:streamGenerateContent?alt=sse",
      headers: { accept: "text/event-stream" },
    });
    expect(wordsOf(events)).toBe("You said: Hi there");
    expect(events).toHaveLength(4);
    expect(events.at(-1)).toMatchObject({
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: { candidatesTokenCount: 4 },
    });
  });

  test("events after the finish reason are still delivered", async () => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ events: [said("Hi", "STOP"), { usageMetadata: { promptTokenCount: 1 } }] });
    const events = await Array.fromAsync(oneByOne(provider.stream(text())));
    expect(events.at(-1)).toEqual({ usageMetadata: { promptTokenCount: 1 } });
  });

  test("a prompt that is blocked ends it", async () => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ blockReason: "SAFETY" });
    expect(await Array.fromAsync(oneByOne(provider.stream(text())))).toMatchObject([
      { promptFeedback: { blockReason: "SAFETY" } },
    ]);
  });

  test.each([
    ["breaks off after a word", [said("Hi")]],
    ["says nothing", []],
    ["tells no reason", [said("Hi", "FINISH_REASON_UNSPECIFIED")]],
    ["tells usage alone", [{ usageMetadata: { promptTokenCount: 1 } }]],
    ["blocks for no reason", [{ promptFeedback: { blockReason: "BLOCK_REASON_UNSPECIFIED" } }]],
    ["blocks what it has begun", [said("Hi"), { candidates: [{}], promptFeedback: { blockReason: "SAFETY" } }]],
  ])("that %s has failed, and what came is delivered", async (_, events) => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ events });
    const got: object[] = [];
    const read = async () => {
      for await (const event of oneByOne(provider.stream(text()))) got.push(event);
    };
    expect(await errorOf(read())).toMatchObject({ kind: "unavailable", message: "the stream ended before its end" });
    expect(got).toEqual(events);
  });

  test.each([
    ["no list", { candidates: {} }],
    ["no objects", { candidates: ["Hi"] }],
  ])("candidates that are %s are no event", async (_, event) => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ events: [event, said("", "STOP")] });
    expect(await errorOf(Array.fromAsync(provider.stream(text())))).toMatchObject({ kind: "unavailable" });
  });

  test.each([
    ["full", { code: 429, message: "Slow down", status: "RESOURCE_EXHAUSTED" }, "busy"],
    ["down", { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" }, "unavailable"],
    ["broken", { code: 500, message: "An internal error has occurred.", status: "INTERNAL" }, "unavailable"],
    ["too slow", { code: 504, message: "Deadline expired.", status: "DEADLINE_EXCEEDED" }, "timeout"],
    ["refusing", { code: 400, message: "No such thing.", status: "INVALID_ARGUMENT" }, "refused"],
    ["naming its status alone", { message: "Full.", status: "RESOURCE_EXHAUSTED" }, "busy"],
  ])("an error in the middle (%s) ends it; what came before is delivered", async (_, error, kind) => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ events: [said("Hi "), { error }, said("there", "STOP")] });
    const got: object[] = [];
    const read = async () => {
      for await (const event of oneByOne(provider.stream(text()))) got.push(event);
    };
    expect(await errorOf(read())).toMatchObject({ kind });
    expect(got).toEqual([said("Hi ")]);
  });

  test("an error instead of a stream is an error", async () => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ body: { error: { code: 503, message: "overloaded", status: "UNAVAILABLE" } } });
    expect(await errorOf(Array.fromAsync(provider.stream(text())))).toMatchObject({ kind: "unavailable", status: 503 });
  });

  test("a caller who disconnects in the middle frees the connection", async () => {
    const { mock, provider, text } = await startGemini({ concurrency: 1 });
    mock.respond({ events: [said("Hi"), said("there", "STOP")], beforeEvent: { 1: gate().promise } });
    const caller = new AbortController();
    const reason = new Error("disconnected");
    const read = async () => {
      for await (const _ of provider.stream(text({}, { signal: caller.signal }))) caller.abort(reason);
    };
    expect(await errorOf(read())).toBe(reason);
    await mock.requests[0]?.closed;
    expect(mock.requests[0]?.aborted).toBe(true);
    expect(await provider.answer(text())).toBeTruthy();
  });
});

describe("counting", () => {
  test("asks the provider, with the whole request", async () => {
    const { mock, provider, text } = await startGemini();
    const systemInstruction = { parts: [{ text: "Be brief, please." }] };
    expect(await provider.count?.(text({ systemInstruction }, { model: "models/gemini-mock" }))).toBe(5);
    expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1beta/models/gemini-mock:countTokens" });
    expect(mock.requests[0]?.body).toEqual({
      generateContentRequest: {
        contents: [{ role: "user", parts: [{ text: "Hi there" }] }],
        systemInstruction,
        model: "models/gemini-mock",
      },
    });
  });

  test.each([undefined, "7", 1.5, -1, null, 1e300])("%s is refused as a count", async (totalTokens) => {
    const { mock, provider, text } = await startGemini();
    mock.respond({ body: { totalTokens } });
    expect(await errorOf(provider.count?.(text()) ?? Promise.resolve())).toMatchObject({ kind: "unavailable" });
  });

  test("a refused request is refused", async () => {
    const { provider, text } = await startGemini();
    expect(await errorOf(provider.count?.(text({}, { model: "missing" })) ?? Promise.resolve())).toMatchObject({
      kind: "misconfigured",
      status: 404,
    });
  });
});
