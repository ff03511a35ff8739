import { expect, test } from "vitest";
import { type ErrorCode, errorKinds, isProviderCode, ServiceError } from "#errors";
import { countedRequest, geminiCodec, geminiCountCodec } from "../../shared/formats/index.ts";
import { geminiArrayConverter } from "../../workers/conversion/gemini/index.ts";

type Json = Readonly<Record<string, unknown>>;

const codec = geminiCodec("gemini-3.8-flash", true, true);
const request = (fields: Json = {}): Json => ({ contents: [{ role: "user", parts: [{ text: "Hello" }] }], ...fields });
const withParts = (...parts: Json[]): Json => request({ contents: [{ role: "user", parts }] });
const configured = (generationConfig: Json): Json => request({ generationConfig });
const parse = (body: unknown) => codec.parse(body, JSON.stringify(body).length);
const refusedParam = (body: unknown, by = codec): string | undefined => {
  try {
    by.parse(body, JSON.stringify(body).length);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};

test("a call has the model and stream of its path, and the size of its body", () => {
  const body = request({
    systemInstruction: { parts: [{ text: "Be kind." }] },
    generationConfig: { maxOutputTokens: 100, candidateCount: 2 },
  });
  expect(parse(body)).toMatchObject({
    model: "gemini-3.8-flash",
    stream: true,
    textBytes: "HelloBe kind.".length,
    size: { inputBytes: JSON.stringify(body).length, messages: 2, choices: 2, outputCap: 100 },
  });
  expect(geminiCodec("local/chat", false, false).parse(request(), 50)).toMatchObject({
    model: "local/chat",
    stream: false,
    size: { messages: 1, choices: 1 },
    uploads: [],
  });
});

test("fields have two spellings, and one object may replace a list", () => {
  const snake = {
    contents: {
      role: "USER",
      parts: [{ text: "x" }, { inline_data: { mime_type: "image/png", data: `iVBORw0KGgo${"A".repeat(900)}` } }],
    },
    system_instruction: { parts: { text: "Be kind." } },
    generation_config: { max_output_tokens: 7, response_mime_type: "application/json" },
    tools: { function_declarations: [{ name: "now" }] },
  };
  const call = parse(snake);
  expect(call.size).toMatchObject({ messages: 2, outputCap: 7, parts: [{ kind: "image" }] });
  expect(call.size.inputBytes).toBeLessThan(500);
  expect([...call.features.keys()]).toEqual(["tools", "json", "image"]);
  expect(refusedParam({ ...request(), cached_content: "cachedContents/a" })).toBe("cachedContent");
  expect(refusedParam({ ...request(), Cached_Content: "cachedContents/a" })).toBe("cachedContent");
  expect(refusedParam({ ...request(), cachedContent: null, cached_content: "cachedContents/a" })).toBe("cachedContent");
  const twice = { fileUri: "https://a.example/x", file_uri: "https://a.example/y" };
  expect(refusedParam(withParts({ fileData: twice }))).toBe("contents[0].parts[0].fileData.fileUri");
});

test("media count as parts, not as bytes, wherever they are", () => {
  const image = { inlineData: { mimeType: "image/png", data: `iVBORw0KGgo${"A".repeat(5000)}` } };
  const call = parse(
    withParts(
      image,
      { inlineData: { mimeType: "audio/wav", data: `UklGRgAAAABXQVZF${"B".repeat(5000)}` } },
      { fileData: { mimeType: "application/pdf", fileUri: "https://a.example/x.pdf" } },
      { fileData: { fileUri: "https://www.youtube.com/watch?v=1" } },
      { functionResponse: { name: "look", response: {}, parts: [image] } },
    ),
  );
  expect(call.size.parts.map(({ kind }) => kind)).toEqual(["image", "audio", "file", "file", "image"]);
  expect(call.size.inputBytes).toBeLessThan(1000);
  expect([...call.features]).toEqual([
    ["image", "contents[0].parts[4].functionResponse.parts[0].inlineData"],
    ["audio", "contents[0].parts[1].inlineData"],
    ["file", "contents[0].parts[3].fileData"],
  ]);
});

test("uploads are found in either field, and resolved there", () => {
  const body = withParts(
    { fileData: { mimeType: "image/png", fileUri: "upl_a" } },
    { inlineData: { mimeType: "audio/wav", data: "upl_b" } },
    {
      functionResponse: { name: "f", response: {}, parts: [{ inlineData: { mimeType: "image/png", data: "upl_c" } }] },
    },
    { file_data: { file_uri: "upl_d" }, videoMetadata: { fps: 1 } },
  );
  const { uploads } = parse(body);
  expect(uploads).toEqual([
    { id: "upl_a", param: "contents[0].parts[0].fileData.fileUri", kind: "image" },
    { id: "upl_b", param: "contents[0].parts[1].inlineData.data", kind: "audio" },
    { id: "upl_c", param: "contents[0].parts[2].functionResponse.parts[0].inlineData.data", kind: "image" },
    { id: "upl_d", param: "contents[0].parts[3].fileData.fileUri" },
  ]);
  const seen: unknown[] = [];
  const placed = geminiArrayConverter.resolveUploads(body, (ref) => {
    seen.push(ref);
    return ref.id === "upl_d"
      ? { mime: "video/mp4", address: "https://s3.example/d", base64: "" }
      : { mime: "image/webp", address: "data:image/webp;base64,QUJD", base64: "QUJD" };
  });
  const bytes = { inlineData: { mimeType: "image/webp", data: "QUJD" } };
  expect(seen).toEqual(uploads);
  expect(placed).toEqual(
    withParts(
      bytes,
      bytes,
      { functionResponse: { name: "f", response: {}, parts: [bytes] } },
      { videoMetadata: { fps: 1 }, fileData: { mimeType: "video/mp4", fileUri: "https://s3.example/d" } },
    ),
  );
});

test("data stored at the provider is refused by name", () => {
  const linked = (fileUri: string) => refusedParam(withParts({ fileData: { mimeType: "image/png", fileUri } }));
  for (const uri of [
    "https://generativelanguage.googleapis.com/v1beta/files/abc",
    "HTTPS://GenerativeLanguage.googleapis.com./v1beta/files/abc",
    "https://us-generativelanguage.googleapis.com/v1beta/files/abc",
    "https://a.example\\@generativelanguage.googleapis.com/v1beta/files/abc",
    "https://user@generativelanguage.googleapis.com/v1beta/files/abc",
    "files/abc",
    "gs://bucket/abc",
    "https://a.example/x y",
    "https://",
  ])
    expect([uri, linked(uri)]).toEqual([uri, "contents[0].parts[0].fileData.fileUri"]);
  for (const uri of ["https://a.example/@me/x.png", "http://a.example", "https://storage.googleapis.com/b/x.png"])
    expect([uri, linked(uri)]).toEqual([uri, undefined]);
  expect(refusedParam(request({ cachedContent: "cachedContents/abc" }))).toBe("cachedContent");
  expect(refusedParam(request({ cachedContent: "" }))).toBeUndefined();
  expect(refusedParam(request({ generationOutputConfig: { outputUriPrefix: "gs://a" } }))).toBe(
    "generationOutputConfig",
  );
});

test("content without a bound or a price is refused by name", () => {
  expect(refusedParam(request({ tools: [{ googleSearch: {} }] }))).toBe("tools[0].googleSearch");
  expect(refusedParam(request({ tools: [{ functionDeclarations: [] }, { code_execution: {} }] }))).toBe(
    "tools[1].codeExecution",
  );
  expect(refusedParam(request({ tools: [{ somethingNew: {} }] }))).toBe("tools[0].somethingNew");
  expect(refusedParam(request({ continuationToken: "abc" }))).toBe("continuationToken");
  expect(refusedParam(configured({ routingConfig: {} }))).toBe("generationConfig.routingConfig");
  expect(refusedParam(configured({ responseModalities: ["TEXT", "IMAGE"] }))).toBe(
    "generationConfig.responseModalities",
  );
  expect(refusedParam(configured({ responseFormat: { image: {} } }))).toBe("generationConfig.responseFormat");
  expect(refusedParam(withParts({ executableCode: { code: "1" } }))).toBe("contents[0].parts[0].executableCode");
  expect(refusedParam(withParts({ text: "x", mediaProcessing: "AGENTIC" }))).toBe(
    "contents[0].parts[0].mediaProcessing",
  );
});

test("features have the field that requests them", () => {
  const features = (fields: Json) => [...parse(request(fields)).features];
  expect(features({ tools: [{ functionDeclarations: [{ name: "now" }] }] })).toEqual([["tools", "tools"]]);
  expect(features({ generationConfig: { responseSchema: { type: "OBJECT" } } })).toEqual([
    ["json", "generationConfig.responseSchema"],
  ]);
  expect(features({ generationConfig: { responseMimeType: "text/plain" } })).toEqual([]);
  expect(features({ generationConfig: { responseLogprobs: true } })).toEqual([
    ["logprobs", "generationConfig.responseLogprobs"],
  ]);
  expect(features({ generationConfig: { responseModalities: ["AUDIO"] } })).toEqual([
    ["audio_output", "generationConfig.responseModalities"],
  ]);
  expect(features({ serviceTier: "priority" })).toEqual([["service_tier", "serviceTier"]]);
  expect(features({ serviceTier: "standard" })).toEqual([]);
});

test("a malformed body is refused with its first invalid field", () => {
  expect(refusedParam({})).toBe("contents");
  expect(() => parse([])).toThrow(ServiceError);
  expect(() => codec.parse("x", 1)).toThrow(ServiceError);
  expect(refusedParam({ contents: [] })).toBe("contents");
  expect(refusedParam({ contents: "Hello" })).toBe("contents");
  expect(refusedParam({ contents: [{ role: "system", parts: [] }] })).toBe("contents[0].role");
  expect(refusedParam(withParts({ text: 1 }))).toBe("contents[0].parts[0].text");
  expect(refusedParam(withParts({ functionCall: { args: {} } }))).toBe("contents[0].parts[0].functionCall.name");
  expect(refusedParam(withParts({ inlineData: { data: "QUJD" } }))).toBe("contents[0].parts[0].inlineData.mimeType");
  expect(refusedParam(configured({ max_output_tokens: 0 }))).toBe("generationConfig.maxOutputTokens");
  expect(refusedParam(configured({ temperature: 3 }))).toBe("generationConfig.temperature");
});

test("countTokens accepts contents or a whole request", () => {
  const count = geminiCountCodec("gemini-3.8-flash");
  const whole = { generate_content_request: { model: "models/x", ...request() } };
  expect(count.parse(request(), 50)).toMatchObject({ model: "gemini-3.8-flash", stream: false, textBytes: 5 });
  expect(count.parse(whole, 90)).toMatchObject({ textBytes: 5, size: { messages: 1 } });
  expect(countedRequest(whole)).toEqual(request());
  expect(countedRequest(request())).toEqual(request());
  const stored = { generateContentRequest: { ...request(), cachedContent: "cachedContents/a" } };
  expect(refusedParam(stored, count)).toBe("generateContentRequest.cachedContent");
  expect(refusedParam({ generateContentRequest: {} }, count)).toBe("generateContentRequest.contents");
  expect(refusedParam({ ...request(), ...whole }, count)).toBe("contents");
});

test("errors have the provider's status names", () => {
  const status = (code: ErrorCode) => {
    const body = codec.error(new ServiceError({ code, message: "No." }), "req_1");
    return (JSON.parse(body) as { error: { status: string } }).error.status;
  };
  const codes = Object.keys(errorKinds) as ErrorCode[];
  const refusals = codes.filter(isProviderCode).map((code) => [code, "INVALID_ARGUMENT"]);
  expect(Object.fromEntries(codes.map((code) => [code, status(code)]))).toEqual({
    ...Object.fromEntries(refusals),
    invalid_value: "INVALID_ARGUMENT",
    model_not_supported: "INVALID_ARGUMENT",
    invalid_api_key: "UNAUTHENTICATED",
    key_expired: "UNAUTHENTICATED",
    insufficient_balance: "FAILED_PRECONDITION",
    budget_exceeded: "FAILED_PRECONDITION",
    account_frozen: "PERMISSION_DENIED",
    insufficient_scope: "PERMISSION_DENIED",
    model_not_allowed: "PERMISSION_DENIED",
    cross_site_request: "PERMISSION_DENIED",
    model_not_found: "NOT_FOUND",
    unknown_url: "NOT_FOUND",
    not_found: "NOT_FOUND",
    upload_not_found: "NOT_FOUND",
    method_not_allowed: "NOT_FOUND",
    upgrade_required: "INVALID_ARGUMENT",
    conflict: "ABORTED",
    upload_expired: "NOT_FOUND",
    upload_deleted: "NOT_FOUND",
    file_expired: "NOT_FOUND",
    length_required: "INVALID_ARGUMENT",
    request_too_large: "INVALID_ARGUMENT",
    unsupported_media_type: "INVALID_ARGUMENT",
    expectation_failed: "INVALID_ARGUMENT",
    headers_too_large: "INVALID_ARGUMENT",
    rate_limit_exceeded: "RESOURCE_EXHAUSTED",
    request_timeout: "DEADLINE_EXCEEDED",
    internal_error: "INTERNAL",
    upstream_error: "INTERNAL",
    no_capacity: "UNAVAILABLE",
    generation_in_progress: "UNAVAILABLE",
    upstream_timeout: "DEADLINE_EXCEEDED",
  });
});

test("a failure of a stream is an event, or the last element of the array", () => {
  const error = new ServiceError({ code: "upstream_error", message: "No." });
  const body = { error: { code: 502, message: "No.", status: "INTERNAL" } };
  expect(codec.streamError(error, "req_1", true)).toBe(`data: ${JSON.stringify(body)}\n\n`);
  expect(codec.ping).toBe("\n\n");
  expect(codec.streamType).toBeUndefined();
  const array = geminiCodec("m", true, false);
  const identity = { model: "m", created: 0, id: "r" };
  const begun = (writes: string[], wasBegun: boolean): unknown =>
    JSON.parse([array.ping, ...writes, array.ping, array.streamError(error, "req_1", wasBegun)].join(""));
  expect(begun([], false)).toEqual([body]);
  const stream = geminiArrayConverter.streamFromChat(identity, {});
  const first = stream.write({ choices: [{ delta: { content: "Hi" } }] });
  expect(begun([first], true)).toEqual([expect.objectContaining({ responseId: identity.id }), body]);
  expect(array.streamType).toMatch(/^application\/json/);
});
