import { expect, test } from "vitest";
import { type Codec, chatCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import type { JsonObject } from "#json";
import { dataAddress, pdf, png, wav } from "../support/media-files.ts";

type Json = JsonObject;

const user = { role: "user", content: "hi" };
const chat = (fields: object = {}) => ({ model: "local/chat", messages: [user], ...fields });
const withPart = (part: object) => chat({ messages: [user, { role: "user", content: [part] }] });
const parsedBy = (codec: Codec) => (body: unknown) => codec.parse(body, Buffer.byteLength(JSON.stringify(body)));
const parse = parsedBy(chatCodec);

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

test("media of Messages count as parts, not as bytes, in nested blocks too", () => {
  const base64 = (media_type: string, data: string) => ({ type: "base64", media_type, data });
  const image = { type: "image", source: base64("image/png", `iVBORw0KGgo${"A".repeat(5000)}`) };
  const document = { type: "document", source: base64("application/pdf", `JVBERi0${"B".repeat(7000)}`) };
  const cut = { type: "document", source: { type: "content", content: [image] } };
  const plain = { type: "document", source: { type: "text", media_type: "text/plain", data: "words" } };
  const result = { type: "tool_result", tool_use_id: "a", content: [image, document] };
  const content = [image, document, cut, plain, result];
  const call = parsedBy(messagesCodec)({ model: "m", max_tokens: 9, messages: [{ role: "user", content }] });
  expect(call.size.parts.map(({ kind }) => kind)).toEqual(["image", "file", "image", "image", "file"]);
  expect(call.size.inputBytes).toBeLessThan(1500);
  expect([...call.features]).toEqual([
    ["image", "messages[0].content[4].content[0]"],
    ["file", "messages[0].content[4].content[1]"],
  ]);
});

test("media of Gemini count as parts, not as bytes, wherever they are", () => {
  const image = { inlineData: { mimeType: "image/png", data: `iVBORw0KGgo${"A".repeat(5000)}` } };
  const parts: Json[] = [
    image,
    { inlineData: { mimeType: "audio/wav", data: `UklGRgAAAABXQVZF${"B".repeat(5000)}` } },
    { fileData: { mimeType: "application/pdf", fileUri: "https://a.example/x.pdf" } },
    { fileData: { fileUri: "https://www.youtube.com/watch?v=1" } },
    { functionResponse: { name: "look", response: {}, parts: [image] } },
  ];
  const call = parsedBy(geminiCodec("m", true, true))({ contents: [{ role: "user", parts }] });
  expect(call.size.parts.map(({ kind }) => kind)).toEqual(["image", "audio", "file", "file", "image"]);
  expect(call.size.inputBytes).toBeLessThan(1000);
  expect([...call.features]).toEqual([
    ["image", "contents[0].parts[4].functionResponse.parts[0].inlineData"],
    ["audio", "contents[0].parts[1].inlineData"],
    ["file", "contents[0].parts[3].fileData"],
  ]);
});

test("a request of Responses is sized by its text, its parts and its cap", () => {
  const image = dataAddress("image/png", png(30, 20));
  const body = {
    model: "gpt-5",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is it?" },
          { type: "input_image", image_url: image, detail: "auto" },
        ],
      },
    ],
    instructions: "Be brief.",
    max_output_tokens: 100,
    stream: true,
  };
  const call = parsedBy(responsesCodec)(body);
  expect(call).toMatchObject({ model: "gpt-5", stream: true, uploads: [] });
  expect(call.size).toEqual({
    inputBytes: JSON.stringify(body).length - image.length,
    messages: 2,
    parts: [
      { kind: "image", content: "image", bytes: expect.any(Number) as number, dimensions: { width: 30, height: 20 } },
    ],
    choices: 1,
    outputCap: 100,
  });
  expect(call.textBytes).toBe("What is it?Be brief.".length);
  expect([...call.features]).toEqual([["image", "input[0].content[1]"]]);
});
