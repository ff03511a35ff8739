import { describe, expect, test } from "vitest";
import { mockAccessKey, mockAwsError, mockFrames, mockSession } from "../support/mock-bedrock.ts";
import { chunkFrame, encodeFrame, eventFrame, exceptionFrame } from "../support/mock-event-stream.ts";
import { startBedrock, startConverse } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const claude = "anthropic.claude-haiku-4-5-20251001-v1:0";
const claudePath = `/model/us.${encodeURIComponent(claude)}`;
const arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3";

describe("Claude at InvokeModel", () => {
  test("a request has the documented differences, and its answer none", async () => {
    const { mock, ask, text } = await startBedrock();
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
    const asked = text(
      {
        messages: [{ role: "user", content: [{ type: "text", text: "Hi" }, image] }],
        stream: false,
        service_tier: "auto",
        inference_geo: "global",
        metadata: { user_id: "u" },
        tools: [
          { name: "look", input_schema: { type: "object" }, eager_input_streaming: true },
          { type: "bash_20250124", name: "bash" },
        ],
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
      },
      {
        headers: {
          "anthropic-version": "2026-10-21",
          "anthropic-beta": "context-1m-2025-08-07, , claude-code-20250219",
        },
      },
    );
    expect(await ask("answer", asked)).toMatchObject({ type: "message", content: [{ type: "text" }] });
    const { path, headers, body } = mock.requests[0] ?? {};
    expect(path).toBe(`${claudePath}/invoke`);
    expect(headers).not.toHaveProperty("anthropic-version");
    expect(headers).not.toHaveProperty("anthropic-beta");
    const { model: _, stream: __, service_tier: ___, inference_geo: ____, ...rest } = asked.body;
    expect(body).toEqual({
      ...rest,
      tools: [
        { name: "look", input_schema: { type: "object" } },
        { type: "bash_20250124", name: "bash" },
      ],
      tool_choice: { type: "auto" },
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: ["context-1m-2025-08-07", "fine-grained-tool-streaming-2025-05-14"],
    });
  });

  test("a stream has the events of the model, without what AWS measures", async () => {
    const { mock, ask, provider, text } = await startBedrock();
    const events = (await ask("stream")) as { type: string }[];
    expect(mock.requests[0]).toMatchObject({ path: `${claudePath}/invoke-with-response-stream` });
    expect(mock.requests[0]?.headers.accept).toBe("application/vnd.amazon.eventstream");
    expect(events.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      "ping",
      ...Array(4).fill("content_block_delta"),
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(events.at(-1)).toEqual({ type: "message_stop" });
    // Frames that arrive together are one list.
    const begun = chunkFrame({ type: "message_start", message: {} });
    const stop = chunkFrame({ type: "message_stop" });
    mock.respond(mockFrames([Buffer.concat([begun, eventFrame("event-of-tomorrow", {}), stop])]));
    const lists = await Array.fromAsync(provider.stream(text()));
    expect(lists.map((list) => list.length)).toEqual([2]);
  });

  test("tokens are counted under the model's own name, with a cap that fits the thinking", async () => {
    const { mock, ask, text } = await startBedrock();
    mock.respond({ inputTokens: 321 });
    const thinking = { type: "enabled", budget_tokens: 2_000 };
    const { max_tokens: _, ...body } = text().body;
    expect(await ask("count", { ...text(), body: { ...body, thinking } })).toBe(321);
    expect(mock.requests[0]?.path).toBe(`/model/${encodeURIComponent(claude)}/count-tokens`);
    const sent = mock.requests[0]?.body as { input: { invokeModel: { body: string } } } | undefined;
    const counted = JSON.parse(Buffer.from(sent?.input.invokeModel.body ?? "", "base64").toString()) as object;
    expect(counted).toMatchObject({ max_tokens: 2_001, thinking, messages: body["messages"] });
  });

  test.each([
    [
      "an image",
      { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
      "messages[0].content[0]",
    ],
    [
      "a document in a result",
      {
        type: "tool_result",
        tool_use_id: "t",
        content: [{ type: "document", source: { type: "url", url: "https://example.com/a.pdf" } }],
      },
      "messages[0].content[0].content[0]",
    ],
  ])("%s by a link is this host's limit", async (_, block, at) => {
    const { mock, ask, text } = await startBedrock();
    const asked = text({ messages: [{ role: "user", content: [block] }] });
    expect(await errorOf(ask("answer", asked))).toMatchObject({
      kind: "refused",
      param: `${at}.source`,
      isHostLimit: true,
    });
    expect(mock.requests).toHaveLength(0);
  });
});

describe("names of models", () => {
  test.each([
    ["the area's", "us-east-1", "us", `{geo}.${claude}`, `us.${claude}`],
    ["the area's", "eu-central-1", "eu", `{geo}.${claude}`, `eu.${claude}`],
    ["the area's", "ap-southeast-2", "au", `{geo}.${claude}`, `au.${claude}`],
    ["the world's", "sa-east-1", "none", `global.${claude}`, `global.${claude}`],
    ["the operator's own", "us-east-1", "us", arn, arn],
  ])("%s profile, in %s", async (_, region, prefix, model, sent) => {
    const apiKey = JSON.stringify(mockAccessKey);
    const { mock, ask, text } = await startBedrock({ apiKey, parts: { region }, place: { region, prefix } });
    for (const way of ["answer", "stream"] as const) await ask(way, text({ model }, { model }));
    expect(mock.requests[0]?.path).toBe(`/model/${encodeURIComponent(sent)}/invoke`);
    expect(mock.requests[1]?.path).toBe(`/model/${encodeURIComponent(sent)}/invoke-with-response-stream`);
  });

  test("a region without profiles of its own area is not sent elsewhere", async () => {
    const { mock, ask } = await startBedrock({ parts: { region: "sa-east-1" } });
    expect(await errorOf(ask("answer"))).toMatchObject({ kind: "misconfigured", message: /sa-east-1/ });
    expect(mock.requests).toHaveLength(0);
  });
});

describe("OpenAI's routes and bedrock-mantle", () => {
  const mantle = { baseUrl: (url: string) => `${url}/bedrock-mantle`, apiKey: JSON.stringify(mockSession) };
  const chat = { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 };
  const responses = { input: "Hi", max_output_tokens: 50 };
  const messages = { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 };
  test.each([
    ["chat", {}, "openai.gpt-oss-120b-1:0", chat, "/openai/v1/chat/completions", "openai.gpt-oss-120b-1:0"],
    ["chat", {}, "{geo}.openai.gpt-6-sol", chat, "/openai/v1/chat/completions", "us.openai.gpt-6-sol"],
    ["responses", {}, "{geo}.openai.gpt-6-sol", responses, "/openai/v1/responses", "us.openai.gpt-6-sol"],
    ["chat", mantle, "openai.gpt-oss-120b", chat, "/bedrock-mantle/v1/chat/completions", "openai.gpt-oss-120b"],
    ["chat", mantle, "mistral.ministral-3-8b", chat, "/bedrock-mantle/v1/chat/completions", "mistral.ministral-3-8b"],
    ["responses", mantle, "openai.gpt-6.1-sol", responses, "/bedrock-mantle/openai/v1/responses", "openai.gpt-6.1-sol"],
    [
      "messages",
      mantle,
      "anthropic.claude-opus-5-5",
      messages,
      "/bedrock-mantle/anthropic/v1/messages",
      "anthropic.claude-opus-5-5",
    ],
  ] as const)("%s goes to its vendor's route: %j %s", async (format, options, model, body, path, sent) => {
    const { mock, ask, text } = await startBedrock(options);
    const asked = { ...text({}, { format, model }), body: { ...body, model } };
    expect(await ask("answer", asked)).toMatchObject({ model: expect.any(String) });
    expect(((await ask("stream", asked)) as unknown[]).length).toBeGreaterThan(1);
    for (const request of mock.requests) expect(request).toMatchObject({ path, body: { model: sent } });
    expect(mock.requests[1]?.headers.accept).toBe("text/event-stream");
    expect(mock.requests.map(({ body: { store } }) => store)).toEqual(
      Array(2).fill(format === "responses" ? false : undefined),
    );
  });
});

test("at bedrock-mantle tokens of Claude are counted by Anthropic's route", async () => {
  const { mock, ask, text } = await startBedrock({ baseUrl: (url) => `${url}/bedrock-mantle` });
  const model = "anthropic.claude-opus-5-5";
  expect(await ask("count", text({ model }, { model }))).toBeGreaterThan(0);
  expect(mock.requests[0]).toMatchObject({
    path: "/bedrock-mantle/anthropic/v1/messages/count_tokens",
    body: { model },
  });
  expect(await errorOf(ask("count", text({}, { format: "chat" })))).toMatchObject({ kind: "misconfigured" });
});

const start = { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3, output_tokens: 1 } } };
const stop = chunkFrame({ type: "message_stop" });
const begun = [start, { type: "ping" }].map(chunkFrame);

describe("failures", () => {
  const text = "The words of AWS.";
  const onDemand = "Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID";
  const canonical = "The signature does not match. The Canonical String was 'POST\nx-amz-security-token:SECRET'";
  const cases = [
    [400, "ValidationException", text, { kind: "refused", status: 400, message: text, isHostLimit: false }],
    [400, "ValidationException", "Input is too long for requested model.", { code: "context_length_exceeded" }],
    [400, "ValidationException", "The model doesn't support this.", { kind: "refused", isHostLimit: true }],
    [400, "ValidationException", "invalid beta flag", { kind: "refused", isHostLimit: true }],
    [
      400,
      "ValidationException",
      "Malformed input request: #: extraneous key [container] is not permitted, please reformat your input and try again.",
      { kind: "refused", isHostLimit: true },
    ],
    [400, "ValidationException", "Output blocked by content filtering policy", { code: "content_filter" }],
    [400, "ValidationException", onDemand, { kind: "misconfigured" }],
    [400, "ValidationException", "The provided model identifier is invalid.", { kind: "misconfigured" }],
    [400, "ServiceQuotaExceededException", text, { kind: "misconfigured" }],
    [403, "AccessDeniedException", text, { kind: "misconfigured", message: /The words of AWS$/ }],
    [403, "InvalidSignatureException", canonical, { kind: "misconfigured", message: /does not match$/ }],
    [403, "UnrecognizedClientException", text, { kind: "misconfigured", status: 401, message: /The words of AWS$/ }],
    [404, "ResourceNotFoundException", text, { kind: "misconfigured", status: 404 }],
    [408, "ModelTimeoutException", text, { kind: "timeout" }],
    [424, "ModelErrorException", text, { kind: "unavailable" }],
    [429, "ThrottlingException", text, { kind: "busy", status: 429, retryAfterMs: 1_000 }],
    [429, "ModelNotReadyException", text, { kind: "busy" }],
    [500, "InternalServerException", text, { kind: "unavailable" }],
    [503, "ServiceUnavailableException", text, { kind: "unavailable", status: 503 }],
    [418, "ExceptionOfTomorrow", text, { kind: "misconfigured", status: 418 }],
  ] as const;

  test.each(cases)("%i %s, in a header or in the body: %s", async (status, type, message, expected) => {
    const { mock, ask } = await startBedrock();
    mock.respond(mockAwsError(status, type, message), {
      status,
      body: { __type: `com.amazon.coral.service#${type}`, Message: message },
    });
    for (const way of ["answer", "stream"] as const) {
      const failure = (await errorOf(ask(way))) as Error;
      const { message: shown, ...fields } = { message: /./, ...expected };
      expect(failure).toMatchObject({ name: "UpstreamFailure", ...fields });
      expect(failure.message).toMatch(shown);
      expect(failure.message).not.toMatch(/SECRET/);
    }
  });

  test.each([
    ["throttlingException", { kind: "busy", status: 429 }],
    ["validationException", { kind: "refused", status: 400, message: "The words of AWS." }],
    ["modelStreamErrorException", { kind: "unavailable" }],
    ["modelTimeoutException", { kind: "timeout" }],
    ["internalServerException", { kind: "unavailable" }],
    ["serviceUnavailableException", { kind: "unavailable", status: 503 }],
    ["exceptionOfTomorrow", { kind: "unavailable" }],
  ])("%s in a stream comes after the events before it, though all arrive at once", async (type, expected) => {
    const { mock, readFailing } = await startBedrock();
    mock.respond(mockFrames([Buffer.concat([...begun, exceptionFrame(type, text), stop])]));
    expect(await readFailing()).toMatchObject({ events: [start, { type: "ping" }], failure: expected });
    const converse = await startConverse();
    const delta = eventFrame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Hi" } });
    converse.mock.respond(mockFrames([Buffer.concat([delta, exceptionFrame(type, text)])]));
    const { events, failure } = await converse.readFailing();
    expect([events.length, failure]).toMatchObject([1, expected]);
  });

  const cut = Buffer.concat([...begun, stop]);
  test.each<readonly [what: string, frames: readonly Buffer[], more: object]>([
    ["ends in a frame", [cut.subarray(0, -5)], {}],
    ["ends before its end", begun, {}],
    ["is cut", [...begun, stop], { cutAfter: 2 }],
    ["has a wrong checksum", [Buffer.concat([...begun, stop.subarray(0, -1), Buffer.from([0])])], {}],
    ["says a length that no frame has", [...begun, Buffer.from("ffffffff00000000", "hex")], {}],
    [
      "has an error that is no event",
      [...begun, encodeFrame({ ":message-type": "error", ":error-code": "x" }, "")],
      {},
    ],
    ["has a frame without a type", [...begun, encodeFrame({}, "{}")], {}],
    ["has an event that is not JSON", [...begun, eventFrame("chunk", "{oops")], {}],
    ["has base64 that is not JSON", [...begun, eventFrame("chunk", { bytes: "b29wcw==" })], {}],
    ["has an event without bytes", [...begun, eventFrame("chunk", {})], {}],
    [
      "has an error of the model",
      [...begun, chunkFrame({ type: "error", error: { type: "api_error", message: "x" } })],
      {},
    ],
  ])("a stream that %s is a failure after what came", async (_, frames, more) => {
    const { mock, readFailing } = await startBedrock();
    mock.respond(mockFrames(frames, more));
    const { events, failure } = await readFailing();
    expect(failure).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
    expect(events.slice(0, 1)).toEqual([start]);
  });

  test.each([
    ["server-sent events", "text/event-stream", "data: {}\n\n", ""],
    ["a page", "text/html", "<html>", ""],
    ["JSON", "application/json", '{"message":"no"}', ""],
    ["nonsense that is said to be compressed", "application/vnd.amazon.eventstream", "xx", "deflate"],
  ])("%s in place of an event stream is a failure", async (_, type, body, encoding) => {
    const { mock, readFailing } = await startBedrock();
    const headers = { "content-type": type, ...(encoding && { "content-encoding": encoding }) };
    mock.respond({ events: [body], headers });
    expect(await readFailing()).toMatchObject({ events: [], failure: { kind: "unavailable" } });
  });
});
