import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { serverSentEvents } from "../../workers/providers/http/read-stream.ts";
import { mockChunk, mockError, mockText, mockUsage } from "../support/mock-openai.ts";
import { startOpenai, startResponses } from "../support/provider-setup.ts";
import { errorOf, gate } from "../support/upstreams-setup.ts";

describe("chat", () => {
  test("a request is sent unchanged, with unknown fields, under the operator's key", async () => {
    const { mock, ask, text } = await startOpenai();
    const body = { temperature: 0.5, vendor_field: { deep: [1, null] }, n: 2 };
    await ask("answer", text(body));
    const [request] = mock.requests;
    expect(request?.body).toEqual({ model: "m", messages: [{ role: "user", content: "Hi" }], ...body });
    expect(request?.headers).toMatchObject({
      authorization: "Bearer sk-operator",
      "content-type": "application/json",
      "accept-encoding": "identity",
    });
    expect(request?.headers).not.toHaveProperty("openai-organization");
  });

  test("a stream always requests its usage, with the caller's stream options; a JSON answer does not", async () => {
    const { mock, ask, text, stream } = await startOpenai();
    const options = { include_usage: false, include_obfuscation: false };
    const chunks = await Array.fromAsync(stream(text({ stream_options: options })));
    expect(mock.requests[0]?.body).toMatchObject({
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
    });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: mockUsage() });
    await ask("answer", text({ stream: true, stream_options: options }));
    expect(mock.requests[1]?.body).not.toHaveProperty("stream");
    expect(mock.requests[1]?.body).not.toHaveProperty("stream_options");
  });

  test("embeddings are passed unchanged in both directions", async () => {
    const { mock, ask, text } = await startOpenai();
    const body = { input: ["one", "two words"], dimensions: 3, encoding_format: "base64" };
    expect(await ask("embed", text(body))).toMatchObject({
      data: [{ index: 0 }, { index: 1, embedding: Buffer.from(new Float32Array([0, 1, 0]).buffer).toString("base64") }],
      usage: { prompt_tokens: 3 },
    });
    expect(mock.requests[0]).toMatchObject({ path: "/v1/embeddings", body });
  });

  test.each(["gzip", "br"] as const)(
    "an answer compressed without being asked (%s) is read: JSON, stream and error",
    async (encoding) => {
      const { mock, ask } = await startOpenai();
      mock.respond({ encoding }, { encoding }, { ...mockError(400, "no such field"), encoding });
      expect(await ask("answer")).toMatchObject({ choices: [{ message: { content: mockText } }] });
      expect(await ask("stream")).toHaveLength(11);
      expect(await errorOf(ask("answer"))).toMatchObject({ kind: "refused", message: "no such field" });
    },
  );

  test("a caller who disconnects before the connection is released at once, and nothing is sent", async () => {
    const { mock, ask, text } = await startOpenai({ concurrency: 1 });
    const caller = new AbortController();
    const answer = errorOf(ask("answer", text({}, { signal: caller.signal })));
    const reason = new Error("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await ask("answer");
    expect(mock.requests).toHaveLength(1);
  });
});

describe("a stream", () => {
  const begun = mockChunk({ content: "a" });

  test("may end without [DONE] once it has finished", async () => {
    const { mock, ask } = await startOpenai();
    mock.respond({ events: [begun, mockChunk({}, "stop")], done: false });
    expect(await ask("stream")).toHaveLength(2);
  });

  const half = gzipSync(`data: ${JSON.stringify(mockChunk({}, "stop"))}\n\n`).subarray(0, 40);
  test.each([
    ["is cut", { cutAfter: 4 }],
    ["is cut, compressed", { events: [half], done: false as const, headers: { "content-encoding": "gzip" } }],
  ])("that %s fails", async (_, answer) => {
    const { mock, ask } = await startOpenai();
    mock.respond(answer);
    expect(await errorOf(ask("stream"))).toMatchObject({ kind: "unavailable" });
  });

  test.each([
    ["that is whole", "}\n\n"],
    ["that has no end yet", ""],
  ])("is broken by an event over 8 MB %s", async (_, end) => {
    const { mock, stream } = await startOpenai();
    const event = `data: {"choices": []${" ".repeat(9 * 1024 * 1024)}${end}`;
    mock.respond({ events: [begun, event], done: false, beforeEnd: new Promise(() => {}) });
    const chunks = stream();
    await chunks.next();
    expect(await errorOf(chunks.next())).toMatchObject({
      kind: "unavailable",
      message: expect.stringMatching(/one event/i) as string,
    });
  });

  test("is read no faster than its chunks are taken", async () => {
    const { mock, stream } = await startOpenai();
    const event = mockChunk({ content: "a".repeat(100_000) }, "stop");
    mock.respond({ events: Array.from({ length: 500 }, () => event) });
    const chunks = stream();
    await chunks.next();
    const request = await mock.request(0);
    // Wait until the provider has been blocked for a hundred turns.
    for (let turns = 0, sent = 0; turns < 100; turns = request.eventsSent === sent ? turns + 1 : 0) {
      sent = request.eventsSent;
      await new Promise(setImmediate);
    }
    expect(request.eventsSent).toBeLessThan(250);
    let read = 1;
    while (!(await chunks.next()).done) read++;
    expect(read).toBe(500);
  });

  test("delivers its chunks before a failure in the same read", async () => {
    const { mock, readFailing } = await startOpenai();
    const lines = [begun, { error: { message: "oops", type: "server_error" } }].map((each) => JSON.stringify(each));
    mock.respond({ events: [lines.map((line) => `data: ${line}\n\n`).join("")] });
    const { failure, events } = await readFailing();
    expect(failure).toMatchObject({ kind: "unavailable" });
    expect(events).toEqual([begun]);
  });

  test("delivers its chunks before the failure that follows them", async () => {
    const { mock, stream } = await startOpenai();
    const cutNow = gate();
    mock.respond({ beforeEvent: { 5: cutNow.promise }, cutAfter: 5 });
    const chunks = stream();
    await chunks.next();
    cutNow.resolve();
    const request = await mock.request(0);
    await request.closed;
    let seen = 1;
    const read = async () => {
      while (!(await chunks.next()).done) seen++;
    };
    expect(await errorOf(read())).toMatchObject({ kind: "unavailable" });
    expect(seen).toBe(5);
  });
});

describe("the events of a stream", () => {
  const read = (bytes: Buffer, size: number) => {
    const events: string[] = [];
    const decoder = serverSentEvents.createDecoder((data) => events.push(data));
    for (let at = 0; at < bytes.length; at += size) decoder.push(bytes.subarray(at, at + size));
    return events;
  };

  test.each(["\n", "\r\n", "\r"])("are the same wherever they are split, with lines that end in %j", (end) => {
    const lines = [
      "\uFEFF: a comment first",
      "",
      'data: {"text":"grüße 你好 👩‍👩‍👧"}',
      "",
      "event: message",
      "id: 7",
      "data:no blank",
      "retry: 1000",
      "",
      ": ping",
      "",
      "data: two",
      "data: lines",
      "",
      "unknown: field",
      "data",
      "",
      "data: [DONE]",
      "",
      "data: without an end",
    ];
    const bytes = Buffer.from(lines.join(end));
    const expected = ['{"text":"grüße 你好 👩‍👩‍👧"}', "no blank", "two\nlines", "", "[DONE]"];
    for (let size = 1; size <= bytes.length; size++)
      expect({ size, events: read(bytes, size) }).toEqual({ size, events: expected });
  });

  test("have replacements for bytes that are not UTF-8", () => {
    const bytes = Buffer.concat([Buffer.from("data: a"), Buffer.from([0xff, 0xc3]), Buffer.from("b\n\n")]);
    expect(read(bytes, 3)).toEqual(["a\ufffd\ufffdb"]);
  });
});

describe.each([
  ["chat", startOpenai],
  ["responses", startResponses],
] as const)("%s", (format, start) => {
  test("a request that sets store gets false; so does each at an upstream that stores answers", async () => {
    const { mock, ask, text } = await start();
    await ask("answer", text({ store: true }));
    await ask("stream", text({ store: null }));
    await ask("answer");
    expect(mock.requests.map(({ body }) => body["store"])).toEqual([false, false, undefined]);
    const storing = await start({ storesAnswers: true });
    await storing.ask("answer");
    await storing.ask("stream", text({ store: true }));
    expect(storing.mock.requests.map(({ path, body }) => [path, body["store"]])).toEqual(
      Array(2).fill([format === "chat" ? "/v1/chat/completions" : "/v1/responses", false]),
    );
  });
});

describe("responses", () => {
  test("a request is sent unchanged, with unknown fields, and without chat's stream options", async () => {
    const { mock, ask, text } = await startResponses();
    const more = { reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"], vendor: [null] };
    const { body } = text(more);
    await ask("answer", text(more));
    await ask("stream", text(more));
    expect(mock.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(2).fill("POST /v1/responses"));
    expect(mock.requests.map((each) => each.body)).toEqual([body, { ...body, stream: true }]);
    expect(mock.requests[0]?.headers.authorization).toBe("Bearer sk-operator");
  });

  test("answer and events are passed unchanged, in their order: reasoning with its state, calls, unknown items", async () => {
    const { mock, ask, stream } = await startResponses();
    const output = [
      { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "ZW5j" },
      { type: "function_call", call_id: "call_1", name: "look", arguments: "{}", status: "completed" },
      { type: "message", role: "assistant", status: "completed", content: [{ type: "refusal", refusal: "No." }] },
      { type: "item_of_tomorrow", value: 1 },
    ];
    mock.respond({ output }, { output });
    expect(await ask("answer")).toMatchObject({ object: "response", status: "completed", output, error: null });
    const events = await Array.fromAsync(stream());
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const types = events.map(({ type }) => String(type).replace("response.", ""));
    expect(types).toEqual(
      [
        "created in_progress",
        "output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done",
        "reasoning_summary_part.done output_item.done",
        "output_item.added function_call_arguments.delta function_call_arguments.done output_item.done",
        "output_item.added content_part.added refusal.delta refusal.done content_part.done output_item.done",
        "output_item.added output_item.done completed",
      ].flatMap((line) => line.split(" ")),
    );
    expect(events.at(-1)?.response).toMatchObject({ status: "completed", output });
  });

  test("an incomplete answer is an answer", async () => {
    const { mock, ask, stream } = await startResponses();
    mock.always({ incomplete: "max_output_tokens" });
    const incomplete = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
    expect(await ask("answer")).toMatchObject(incomplete);
    const events = await Array.fromAsync(stream());
    expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: incomplete });
  });

  test.each([
    [{ code: "server_error", message: "It broke." }, "unavailable", "status 500: It broke."],
    [{ code: "rate_limit_exceeded", message: "Slowly." }, "busy", "status 429: Slowly."],
    [{ code: "invalid_prompt", message: "Not that." }, "refused", "Not that."],
    [{ code: "image_content_policy_violation", message: "Not that." }, "refused", "Not that."],
    [{ code: "failed_to_download_image", message: "No such image." }, "refused", "No such image."],
    [{ code: "insufficient_quota", message: "Pay." }, "misconfigured", "status 500: Pay."],
    [{ code: "data_residency_mismatch", message: "Elsewhere." }, "misconfigured", "status 403: Elsewhere."],
    [{ code: "code_of_tomorrow", message: "Who knows." }, "unavailable", "status 500: Who knows."],
    [{}, "unavailable", "status 500: The model failed."],
  ])("that failed with %j are no answer though the status is 200, and end the stream: %s", async (...row) => {
    const [failed, kind, message] = row;
    const { mock, ask, readFailing } = await startResponses();
    mock.respond({ failed }, { failed, text: "Hello" });
    expect(await errorOf(ask("answer"))).toMatchObject({ name: "UpstreamFailure", kind, message });
    const { failure, events } = await readFailing();
    expect(failure).toMatchObject({ name: "UpstreamFailure", kind, message });
    const types = (events as { type: string }[]).map(({ type }) => type);
    expect(types).toContain("response.output_text.delta");
    expect(types).not.toContain("response.failed");
  });
});
