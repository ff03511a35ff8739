import { expect, test } from "vitest";
import { chatCodec, geminiCodec, geminiCountCodec, messagesCodec, responsesCodec } from "#formats";

type Json = Readonly<Record<string, unknown>>;

/** Lists and objects in each other. */
const nested = (depth: number): unknown =>
  JSON.parse(`${'{"a":['.repeat(depth / 2)}1${"]}".repeat(depth / 2)}`) as unknown;

const said = { messages: [{ role: "user", content: "Hi" }], model: "m", max_tokens: 1 };
const tool = (parameters: unknown) => ({ type: "function", function: { name: "f", parameters } });

test.each<
  [what: string, codec: { parse(body: unknown, bytes: number): unknown }, field: string, body: (deep: unknown) => Json]
>([
  ["a tool of chat", chatCodec, "tools", (deep) => ({ ...said, tools: [tool(deep)] })],
  [
    "a schema of chat",
    chatCodec,
    "response_format",
    (deep) => ({ ...said, response_format: { type: "json_schema", x: deep } }),
  ],
  [
    "a message of chat",
    chatCodec,
    "messages",
    (deep) => ({ ...said, messages: [{ role: "user", content: "Hi", x: deep }] }),
  ],
  ["an unknown field of chat", chatCodec, "later", (deep) => ({ ...said, later: deep })],
  ["a tool of Messages", messagesCodec, "tools", (deep) => ({ ...said, tools: [{ name: "f", input_schema: deep }] })],
  ["an unknown field of Messages", messagesCodec, "later", (deep) => ({ ...said, later: deep })],
  ["an unknown field of Responses", responsesCodec, "later", (deep) => ({ model: "m", input: "Hi", later: deep })],
  [
    "contents of Gemini",
    geminiCodec("m", false, true),
    "contents",
    (deep) => ({ contents: [{ parts: [{ functionCall: { name: "f", args: { deep } } }] }] }),
  ],
  [
    "a count of Gemini",
    geminiCountCodec("m"),
    "generateContentRequest",
    (deep) => ({ generateContentRequest: { contents: [{ parts: [{ text: "Hi" }] }], later: deep } }),
  ],
])(
  "%s that is nested deeper than the stack is refused by name, and one that is not is taken",
  (_what, codec, field, body) => {
    expect(() => codec.parse(body(nested(100_000)), 10)).toThrow(
      expect.objectContaining({ status: 400, param: field, message: `${field}: is nested too deep.` }),
    );
    expect(codec.parse(body(nested(100)), 10)).toBeTruthy();
  },
);

test.each<[what: string, codec: { parse(body: unknown, bytes: number): unknown }, field: string, body: Json]>([
  ["messages", chatCodec, "messages", { ...said, messages: Array(60_000).fill({ role: "user", content: "Hi" }) }],
  ["tools", messagesCodec, "tools", { ...said, tools: Array(60_000).fill({ name: "f", input_schema: {} }) }],
  ["items", responsesCodec, "input", { model: "m", input: Array(60_000).fill({ role: "user", content: "Hi" }) }],
  ["parts", geminiCodec("m", false, true), "contents", { contents: [{ parts: Array(60_000).fill({ text: "Hi" }) }] }],
])("more %s than any request has are refused before they are read", (_, codec, field, body) => {
  expect(() => codec.parse(body, 5_000_000)).toThrow(
    expect.objectContaining({
      code: "invalid_value",
      param: field,
      message: expect.stringContaining("50000") as string,
    }),
  );
});

test("a long conversation is none of them", () => {
  const messages = Array(20_000).fill({ role: "user", content: "Hi" });
  expect(chatCodec.parse({ ...said, messages }, 500_000)).toMatchObject({ size: { messages: 20_000 } });
});
