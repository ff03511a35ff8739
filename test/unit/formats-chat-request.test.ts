import { expect, test } from "vitest";
import { insufficientBalance, ServiceError, upstreamTimeout } from "#errors";
import { chatCodec } from "#formats";
import { toUpstream } from "../../workers/conversion/chat/index.ts";
import { dataAddress, pdf, png, wav } from "../support/media-files.ts";

const user = { role: "user", content: "hi" };
const chat = (fields: object = {}) => ({ model: "local/chat", messages: [user], ...fields });
const withPart = (part: object) => chat({ messages: [user, { role: "user", content: [part] }] });

const parse = (body: unknown) => chatCodec.parse(body, JSON.stringify(body)?.length ?? 0);
const featuresOf = (body: unknown) => Object.fromEntries(parse(body).features);

function refusal(body: unknown): ServiceError {
  try {
    parse(body);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

test.each<[what: string, body: unknown, param: string | undefined]>([
  ["no object", "hi", undefined],
  ["null", null, undefined],
  ["a list", [], undefined],
  ["no model", { messages: [user] }, "model"],
  ["an empty model", chat({ model: "" }), "model"],
  ["a model that is no text", chat({ model: 5 }), "model"],
  ["no messages", { model: "local/chat" }, "messages"],
  ["an empty list of messages", chat({ messages: [] }), "messages"],
  ["messages that are a text", chat({ messages: "hi" }), "messages"],
  ["a message without a role", chat({ messages: [user, { content: "x" }] }), "messages[1].role"],
  ["an unknown role", chat({ messages: [{ role: "robot", content: "x" }] }), "messages[0].role"],
  ["content that is a number", chat({ messages: [{ role: "user", content: 5 }] }), "messages[0].content"],
  ["a part without a type", withPart({ text: "x" }), "messages[1].content[0].type"],
  ["a part of an unknown type", withPart({ type: "video_url", video_url: {} }), "messages[1].content[0].type"],
  ["an image without an address", withPart({ type: "image_url" }), "messages[1].content[0].image_url.url"],
  [
    "an image from the server's disk",
    withPart({ type: "image_url", image_url: { url: "file:///etc/passwd" } }),
    "messages[1].content[0].image_url.url",
  ],
  ["audio without data", withPart({ type: "input_audio", input_audio: {} }), "messages[1].content[0].input_audio.data"],
  ["a file without data", withPart({ type: "file", file: null }), "messages[1].content[0].file.file_data"],
  [
    "a file stored at the provider",
    withPart({ type: "file", file: { file_id: "file-1", file_data: "x" } }),
    "messages[1].content[0].file.file_id",
  ],
  [
    "audio stored at the provider",
    chat({ messages: [user, { role: "assistant", audio: { id: "audio_1" } }] }),
    "messages[1].audio",
  ],
  [
    "a cache stored at the provider",
    chat({ extra_body: { google: { cached_content: "cachedContents/1" } } }),
    "extra_body.google.cached_content",
  ],
  ["stream that is no boolean", chat({ stream: "true" }), "stream"],
  ["max_tokens 0", chat({ max_tokens: 0 }), "max_tokens"],
  ["max_tokens with a fraction", chat({ max_tokens: 1.5 }), "max_tokens"],
  ["max_completion_tokens below 0", chat({ max_completion_tokens: -1 }), "max_completion_tokens"],
  ["temperature over 2", chat({ temperature: 2.1 }), "temperature"],
  ["temperature below 0", chat({ temperature: -0.1 }), "temperature"],
  ["top_p over 1", chat({ top_p: 1.1 }), "top_p"],
  ["n of 0", chat({ n: 0 }), "n"],
  ["n of 129", chat({ n: 129 }), "n"],
  ["stop that is a number", chat({ stop: 5 }), "stop"],
  ["stop that holds a number", chat({ stop: ["a", 5] }), "stop[1]"],
  ["seed with a fraction", chat({ seed: 0.5 }), "seed"],
  ["tools that are no list", chat({ tools: {} }), "tools"],
  ["a tool without a type", chat({ tools: [{}] }), "tools[0].type"],
  [
    "a tool that runs at the provider",
    chat({ tools: [{ type: "function" }, { type: "web_search" }] }),
    "tools[1].type",
  ],
  ["tool_choice that is a number", chat({ tool_choice: 5 }), "tool_choice"],
  ["parallel_tool_calls that is a text", chat({ parallel_tool_calls: "yes" }), "parallel_tool_calls"],
  ["response_format without a type", chat({ response_format: {} }), "response_format.type"],
  ["response_format that is a text", chat({ response_format: "json" }), "response_format"],
  ["stream_options that is a text", chat({ stream_options: "usage" }), "stream_options"],
  ["logprobs that is a number", chat({ logprobs: 1 }), "logprobs"],
  ["top_logprobs over 20", chat({ top_logprobs: 21 }), "top_logprobs"],
  ["images as output", chat({ modalities: ["text", "image"] }), "modalities"],
])("refuses %s, and names the field", (_what, body, param) => {
  const error = refusal(body);
  expect(error).toMatchObject({ code: "invalid_value", status: 400, type: "invalid_request_error" });
  expect(error.param).toBe(param);
  expect(error.message).toContain(param ?? "The body is not valid");
});

test("an error does not repeat the refused value", () => {
  expect(refusal(chat({ messages: [{ role: "a secret", content: "x" }] })).message).not.toContain("a secret");
});

test("accepts null for optional fields, and unknown fields", () => {
  const absent = ["stream", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed"];
  const more = ["tools", "tool_choice", "parallel_tool_calls", "response_format", "stream_options", "logprobs"];
  const call = parse(chat(Object.fromEntries([...absent, ...more, "unknown"].map((field) => [field, null]))));
  expect(call).toMatchObject({ model: "local/chat", stream: false, size: { choices: 1, messages: 1 } });
  expect(call.size).not.toHaveProperty("outputCap");
  expect(call.features.size).toBe(0);
});

test.each<[what: string, fields: object, features: object]>([
  ["tools", { tools: [{ type: "function" }, { type: "custom" }] }, { tools: "tools" }],
  ["no tools", { tools: [] }, {}],
  ["functions, as they once were", { functions: [{ name: "f" }] }, { tools: "functions" }],
  ["JSON mode", { response_format: { type: "json_object" } }, { json: "response_format" }],
  ["a schema", { response_format: { type: "json_schema", json_schema: {} } }, { json: "response_format" }],
  ["text as the format", { response_format: { type: "text" } }, {}],
  ["logprobs", { logprobs: true }, { logprobs: "logprobs" }],
  ["no logprobs", { logprobs: false }, {}],
  ["spoken output", { modalities: ["text", "audio"] }, { audio_output: "modalities" }],
  ["text alone", { modalities: ["text"] }, {}],
  ["web search", { web_search_options: {} }, { web_search: "web_search_options" }],
  ["web search as others take it", { enable_search: true }, { web_search: "enable_search" }],
  ["no web search", { enable_search: false }, {}],
  ["a search as OpenRouter's plugin", { plugins: [{ id: "web" }] }, { web_search: "plugins" }],
  ["no plugins", { plugins: [] }, {}],
  ["a service tier", { service_tier: "priority" }, { service_tier: "service_tier" }],
  ["any service tier", { service_tier: "auto" }, {}],
  ["the default service tier", { service_tier: "default" }, {}],
])("finds the features of %s", (_what, fields, features) => {
  expect(featuresOf(chat(fields))).toEqual(features);
});

test("names the part that requests a feature", () => {
  expect(featuresOf(withPart({ type: "image_url", image_url: { url: "https://a.example/b.png" } }))).toEqual({
    image: "messages[1].content[0]",
  });
  expect(
    featuresOf(withPart({ type: "input_audio", input_audio: { data: "UklGRgAAAABXQVZF", format: "wav" } })),
  ).toEqual({
    audio: "messages[1].content[0]",
  });
  expect(featuresOf(withPart({ type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0=" } }))).toEqual({
    file: "messages[1].content[0]",
  });
});

test("input bytes exclude inline media and include links", () => {
  const sizes = (part: object) => {
    const body = withPart(part);
    const { parts, inputBytes } = parse(body).size;
    return { parts, inputBytes, bodyBytes: JSON.stringify(body).length };
  };
  const imageAddress = dataAddress("image/png", png(300, 200));
  const asImage = { kind: "image", content: "image", dimensions: { width: 300, height: 200 } };
  const image = sizes({ type: "image_url", image_url: { url: imageAddress } });
  expect(image).toMatchObject({ parts: [asImage], inputBytes: image.bodyBytes - imageAddress.length });
  const bare = sizes({ type: "image_url", image_url: imageAddress });
  expect(bare).toMatchObject({ parts: [asImage], inputBytes: bare.bodyBytes - imageAddress.length });
  const address = sizes({ type: "image_url", image_url: { url: `https://a.example/${"A".repeat(8_000)}` } });
  expect(address).toEqual({ ...address, parts: [{ kind: "image" }], inputBytes: address.bodyBytes });
  const sound = wav(1).toString("base64");
  const audio = sizes({ type: "input_audio", input_audio: { data: sound, format: "wav" } });
  expect(audio).toMatchObject({
    parts: [{ kind: "audio", content: "audio", seconds: expect.closeTo(1, 1) }],
    inputBytes: audio.bodyBytes - sound.length,
  });
  const paper = pdf(["words"]);
  const file = sizes({ type: "file", file: { file_data: paper.toString("base64"), filename: "a.pdf" } });
  expect(file.parts).toMatchObject([{ kind: "file", content: "pdf", bytes: expect.closeTo(paper.length, -1) }]);
  expect(file.inputBytes).toBe(file.bodyBytes - paper.toString("base64").length);
  const text = sizes({ type: "text", text: "A".repeat(10_000) });
  expect(text).toMatchObject({ parts: [], inputBytes: text.bodyBytes });
});

test("adds up the parts of all messages, and never counts below 0", () => {
  const image = { type: "image_url", image_url: { url: dataAddress("image/png", png()) } };
  const body = chat({
    messages: [user, { role: "user", content: [image, image] }, { role: "user", content: [image] }],
  });
  expect(parse(body).size).toMatchObject({
    messages: 3,
    parts: [{ kind: "image" }, { kind: "image" }, { kind: "image" }],
  });
  expect(chatCodec.parse(body, 10).size.inputBytes).toBe(0);
});

test("uses the smaller output cap, and n as the choices", () => {
  expect(parse(chat({ max_tokens: 7, max_completion_tokens: 5, n: 3 })).size).toMatchObject({
    outputCap: 5,
    choices: 3,
  });
  expect(parse(chat({ max_tokens: 7 })).size.outputCap).toBe(7);
});

const to = { model: "native", capField: "max_completion_tokens", cap: 9 } as const;

test("an upstream receives the request with its own model and cap", () => {
  const request = chat({ max_tokens: 5, stop: ["a"], unknown: { x: 1 }, user: "u", temperature: null });
  const { model: _, max_tokens: __, ...rest } = request as Record<string, unknown>;
  expect(toUpstream(request, to)).toEqual({ ...rest, model: "native", max_completion_tokens: 9 });
});

test("the cap is sent in the upstream's field alone", () => {
  const request = chat({ max_tokens: 5, max_completion_tokens: 6 });
  expect(toUpstream(request, { ...to, capField: "max_tokens" })).toEqual(chat({ model: "native", max_tokens: 9 }));
});

test("renders errors in the common shape, and in a stream as one event", () => {
  const timeout = upstreamTimeout("late");
  const body = {
    error: { message: "late", type: "server_error", code: "upstream_timeout", param: null },
    request_id: "req_1",
  };
  expect(JSON.parse(chatCodec.error(timeout, "req_1"))).toEqual(body);
  expect(chatCodec.streamError(timeout, "req_1", true)).toBe(`data: ${JSON.stringify(body)}\n\n`);
  expect(chatCodec.ping).toBe(": ping\n\n");
  expect(JSON.parse(chatCodec.error(insufficientBalance("empty"), "req_2"))).toMatchObject({
    error: { type: "insufficient_quota", code: "insufficient_balance" },
  });
});

test("text bytes are those of the messages, and with tools of the whole body", () => {
  const messages = [
    { role: "system", content: "12345" },
    {
      role: "user",
      content: [
        { type: "text", text: "é" },
        { type: "image_url", image_url: { url: dataAddress("image/png", png()) } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "ab", arguments: "{}" } }],
    },
  ];
  expect(parse(chat({ messages })).textBytes).toBe(5 + 2 + 2 + 2);
  const tools = [{ type: "function", function: { name: "ab" } }];
  const { textBytes, size } = parse(chat({ messages, tools }));
  expect(textBytes).toBe(size.inputBytes);
});
