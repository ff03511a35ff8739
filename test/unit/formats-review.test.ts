import { describe, expect, test } from "vitest";
import {
  type Codec,
  chatCodec,
  countTokensCodec,
  type Format,
  geminiCodec,
  messagesCodec,
  responsesCodec,
} from "../../shared/formats/index.ts";
import { converters, tokenUsage } from "../../workers/conversion/index.ts";

const gemini = geminiCodec("local/chat", false, false);

/** The code of the error that a body is answered with. */
function refusalOf(codec: Codec, body: unknown): string | undefined {
  try {
    codec.parse(body, 1_000);
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return undefined;
}

describe("of a list of faults only the first is looked at", () => {
  const length = 1_000;
  const lists: readonly [string, Codec, string, (list: unknown[]) => unknown][] = [
    ["messages", messagesCodec, "role", (list) => ({ model: "m", max_tokens: 1, messages: list })],
    ["count_tokens", countTokensCodec, "role", (list) => ({ model: "m", messages: list })],
    ["responses", responsesCodec, "role", (list) => ({ model: "m", input: list })],
    ["gemini", gemini, "role", (list) => ({ contents: list })],
    ["gemini's parts", gemini, "text", (list) => ({ contents: [{ parts: list }] })],
    ["chat", chatCodec, "role", (list) => ({ model: "m", messages: list })],
  ];

  test.each(lists)("%s", (_, codec, field, bodyOf) => {
    let reads = 0;
    const fault = Object.defineProperty({}, field, { enumerable: true, get: () => (reads++, 5) });
    expect(refusalOf(codec, bodyOf(Array(length).fill(fault)))).toBe("invalid_value");
    // Once each by the measure of depth, which comes first.
    expect(reads).toBeGreaterThanOrEqual(length);
    expect(reads).toBeLessThan(length + 20);
  });

  test("as many as a stack would not hold are refused like one", () => {
    expect(refusalOf(gemini, { contents: [{ parts: Array(200_000).fill(null) }] })).toBe("invalid_value");
  });
});

const impossible = [-1, 1.5, 1e15, Number.MAX_VALUE];

describe("a count of tokens that cannot be is no count: the answer is estimated, not free", () => {
  const usages: readonly [Format, (input: unknown, output: unknown) => object][] = [
    ["messages", (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } })],
    ["responses", (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } })],
    [
      "gemini",
      (promptTokenCount, candidatesTokenCount) => ({ usageMetadata: { promptTokenCount, candidatesTokenCount } }),
    ],
  ];

  test.each(usages)("%s", (format, answerOf) => {
    const used = (input: unknown, output: unknown) =>
      tokenUsage(converters[format].native.usage(answerOf(input, output) as Record<string, unknown>));
    expect(used(3, 4)).toMatchObject({ input: 3, output: 4 });
    expect(used(3, undefined)).toMatchObject({ input: 3, output: 0 });
    for (const count of impossible) {
      expect(used(count, 4)).toBeUndefined();
      expect(used(3, count)).toBeUndefined();
    }
  });

  test("gemini's thoughts", () => {
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, thoughtsTokenCount: -4 };
    expect(converters.gemini.native.usage({ usageMetadata })).toBeUndefined();
  });
});

test("a text without citations says nothing of them: AI SDK's Anthropic provider takes a list or nothing", () => {
  const ours = { model: "local/chat", created: 0, id: "chatcmpl-req_1" };
  const message = { role: "assistant", content: "Hello" };
  const answer = converters.messages.responseFromChat(
    { choices: [{ index: 0, message, finish_reason: "stop" }] },
    ours,
    {},
  );
  expect(answer["content"]).toStrictEqual([{ type: "text", text: "Hello" }]);
});
