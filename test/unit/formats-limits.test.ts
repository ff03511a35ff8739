import { describe, expect, test } from "vitest";
import {
  type Codec,
  chatCodec,
  countTokensCodec,
  geminiCodec,
  geminiCountCodec,
  messagesCodec,
  responsesCodec,
} from "#formats";

type Json = Readonly<Record<string, unknown>>;

const nested = (depth: number): unknown =>
  JSON.parse(`${'{"a":['.repeat(depth / 2)}1${"]}".repeat(depth / 2)}`) as unknown;

const said = { messages: [{ role: "user", content: "Hi" }], model: "m", max_tokens: 1 };
type Parser = Pick<Codec, "parse">;
const functionCall = (deep: unknown) => ({ parts: [{ functionCall: { name: "f", args: { deep } } }] });

test.each<[what: string, codec: Parser, field: string, body: (deep: unknown) => Json]>([
  ["chat", chatCodec, "tools", (x) => ({ ...said, tools: [{ type: "function", function: { name: "f", x } }] })],
  ["Messages", messagesCodec, "messages", (x) => ({ ...said, messages: [{ role: "user", content: "Hi", x }] })],
  ["Responses", responsesCodec, "later", (later) => ({ model: "m", input: "Hi", later })],
  ["Gemini", geminiCodec("m", false, true), "contents", (x) => ({ contents: [functionCall(x)] })],
  [
    "a count of Gemini",
    geminiCountCodec("m"),
    "generateContentRequest",
    (x) => ({ generateContentRequest: { contents: [functionCall(x)] } }),
  ],
])("%s nested deeper than the stack is refused by name", (_what, codec, field, body) => {
  expect(() => codec.parse(body(nested(100_000)), 10)).toThrow(
    expect.objectContaining({ status: 400, param: field, message: `${field}: is nested too deep.` }),
  );
  expect(codec.parse(body(nested(100)), 10)).toBeTruthy();
});

test.each<[what: string, codec: Parser, field: string, body: Json]>([
  ["messages", chatCodec, "messages", { ...said, messages: Array(60_000).fill({ role: "user", content: "Hi" }) }],
  ["tools", messagesCodec, "tools", { ...said, tools: Array(60_000).fill({ name: "f", input_schema: {} }) }],
  ["items", responsesCodec, "input", { model: "m", input: Array(60_000).fill({ role: "user", content: "Hi" }) }],
  ["parts", geminiCodec("m", false, true), "contents", { contents: [{ parts: Array(60_000).fill({ text: "Hi" }) }] }],
  [
    "fields of a part",
    geminiCodec("m", false, true),
    "contents",
    { contents: [{ parts: [Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${i}`, ""]))] }] },
  ],
])("too many %s are refused before validation", (_, codec, field, body) => {
  expect(() => codec.parse(body, 5_000_000)).toThrow(
    expect.objectContaining({
      code: "invalid_value",
      param: field,
      message: expect.stringContaining("50000") as string,
    }),
  );
});

const data = "aGk=";
const geminiPart = (part: Json) => ({ contents: [{ parts: [part] }] });
const userPart = (part: Json) => ({ ...said, messages: [{ role: "user", content: [part] }] });
const gemini1 = geminiCodec("m", false, true);

test.each<[field: string, codec: Parser, body: (type: string) => Json]>([
  [
    "messages[0].content[0].input_audio.format",
    chatCodec,
    (format) => userPart({ type: "input_audio", input_audio: { data, format } }),
  ],
  [
    "messages[0].content[0].input_audio.format",
    chatCodec,
    (format) => userPart({ type: "input_audio", input_audio: { data: `upl_${"a".repeat(26)}`, format } }),
  ],
  [
    "input[0].content[0].input_audio.format",
    responsesCodec,
    (format) => ({
      model: "m",
      input: [{ role: "user", content: [{ type: "input_audio", input_audio: { data, format } }] }],
    }),
  ],
  [
    "messages[0].content[0].source.media_type",
    messagesCodec,
    (media_type) => userPart({ type: "document", source: { type: "base64", media_type, data } }),
  ],
  [
    "messages[0].content[0].content[0].source.media_type",
    countTokensCodec,
    (media_type) =>
      userPart({
        type: "tool_result",
        tool_use_id: "t",
        content: [{ type: "image", source: { type: "base64", media_type, data } }],
      }),
  ],
  ["contents[0].parts[0].inlineData.mimeType", gemini1, (mimeType) => geminiPart({ inlineData: { mimeType, data } })],
  [
    "contents[0].parts[0].fileData.mimeType",
    gemini1,
    (mimeType) => geminiPart({ fileData: { mimeType, fileUri: "https://a.example/b" } }),
  ],
  [
    "generateContentRequest.contents[0].parts[0].functionResponse.parts[0].inlineData.mimeType",
    geminiCountCodec("m"),
    (mimeType) => ({
      generateContentRequest: geminiPart({
        functionResponse: { name: "f", response: {}, parts: [{ inlineData: { mimeType, data } }] },
      }),
    }),
  ],
  [
    "generationConfig.responseMimeType",
    gemini1,
    (responseMimeType) => ({ ...geminiPart({ text: "Hi" }), generationConfig: { responseMimeType } }),
  ],
  [
    "generationConfig.responseFormat[0].text.mimeType",
    gemini1,
    (mimeType) => ({ ...geminiPart({ text: "Hi" }), generationConfig: { responseFormat: [{ text: { mimeType } }] } }),
  ],
])("%s of more than 255 characters is refused by name", (field, codec, body) => {
  expect(() => codec.parse(body(`audio/${";".repeat(250)}`), 10)).toThrow(
    expect.objectContaining({ status: 400, param: field, message: expect.stringContaining("255") as string }),
  );
});

test.each<[field: string, codec: Parser, body: (link: string) => Json]>([
  ["messages[0].content[0].image_url.url", chatCodec, (url) => userPart({ type: "image_url", image_url: { url } })],
  [
    "messages[0].content[0].source.url",
    messagesCodec,
    (url) => userPart({ type: "image", source: { type: "url", url } }),
  ],
  [
    "input[0].content[0].image_url",
    responsesCodec,
    (image_url) => ({ model: "m", input: [{ role: "user", content: [{ type: "input_image", image_url }] }] }),
  ],
  [
    "contents[0].parts[0].fileData.fileUri",
    gemini1,
    (fileUri) => geminiPart({ fileData: { mimeType: "image/png", fileUri } }),
  ],
])("a link of more than 8,192 characters in %s is refused by name", (field, codec, body) => {
  expect(codec.parse(body(`https://a.example/${"a".repeat(8_000)}`), 10)).toBeTruthy();
  expect(() => codec.parse(body(`https://a.example/${"a".repeat(8_192)}`), 10)).toThrow(
    expect.objectContaining({ status: 400, param: field, message: expect.stringContaining("8192") as string }),
  );
});

test("a long conversation is accepted", () => {
  const messages = Array(16_000).fill({ role: "user", content: "Hi" });
  expect(chatCodec.parse({ ...said, messages }, 500_000)).toMatchObject({ size: { messages: 16_000 } });
});

const gemini = geminiCodec("local/chat", false, false);

/** The code of a body's error. */
function refusalOf(codec: Codec, body: unknown): string | undefined {
  try {
    codec.parse(body, 1_000);
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return undefined;
}

describe("validation stops at the first invalid item", () => {
  const length = 1_000;
  const lists: readonly [string, Codec, string, (list: unknown[]) => unknown][] = [
    ["messages", messagesCodec, "role", (list) => ({ model: "m", max_tokens: 1, messages: list })],
    ["count_tokens", countTokensCodec, "role", (list) => ({ model: "m", messages: list })],
    ["responses", responsesCodec, "role", (list) => ({ model: "m", input: list })],
    ["gemini", gemini, "role", (list) => ({ contents: list })],
    ["gemini parts", gemini, "text", (list) => ({ contents: [{ parts: list }] })],
    ["chat", chatCodec, "role", (list) => ({ model: "m", messages: list })],
  ];

  test.each(lists)("%s", (_, codec, field, bodyOf) => {
    let reads = 0;
    const fault = Object.defineProperty({}, field, { enumerable: true, get: () => (reads++, 5) });
    expect(refusalOf(codec, bodyOf(Array(length).fill(fault)))).toBe("invalid_value");
    // The preceding depth check reads each once.
    expect(reads).toBeGreaterThanOrEqual(length);
    expect(reads).toBeLessThan(length + 20);
  });

  test("more invalid items than the stack holds are refused", () => {
    expect(refusalOf(gemini, { contents: [{ parts: Array(200_000).fill(null) }] })).toBe("invalid_value");
  });
});
