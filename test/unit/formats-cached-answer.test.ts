import { expect, test } from "vitest";
import { type Format, fromTemplate, partsFrom, toTemplate } from "../../shared/formats/index.ts";

const requestId = "req_0123456789abcdefghijklmn";
const now = 1_800_000_000_000;
const again = (format: Format | undefined, ...parts: readonly string[]) => {
  const template = toTemplate(format);
  return parts.map((part) => fromTemplate(template.convert(part), requestId, now)).join("");
};

test.each<[name: string, format: Format | undefined, first: readonly string[], hit: readonly string[]]>([
  [
    "chat",
    "chat",
    ['{"id":"chatcmpl-old-12","created":17,"model":"m","usage":{"details":{"n":1},"cost_usd":"0.0012"}}'],
    [
      '{"id":"chatcmpl-0123456789abcdefghijklmn","created":1800000000,"model":"m","usage":{"details":{"n":1},"cost_usd":"0.00","cached_response":true}}',
    ],
  ],
  [
    "an id that occurs in the text, and a number that begins like the time",
    "chat",
    [
      'data: {"id": "gen-12345678", "created": 17, "n": {"created": 170}, "text": "\\"id\\": \\"gen-12345678\\""}\n\n',
      'data: {"id": "gen-12345678", "created": 17, "usage": null}\n\n',
    ],
    [
      'data: {"id":"gen-0123456789abcdefghijklmn", "created":1800000000, "n": {"created": 170}, "text": "\\"id\\": \\"gen-12345678\\""}\n\n',
      'data: {"id":"gen-0123456789abcdefghijklmn", "created":1800000000, "usage": null}\n\n',
    ],
  ],
  [
    "a tool's input in Messages",
    "messages",
    ['{"id":"msg_12345678","content":[{"type":"tool_use","id":"toolu_1","input":{"cost_usd":"12.50","created":17}}]}'],
    [
      '{"id":"msg_0123456789abcdefghijklmn","content":[{"type":"tool_use","id":"toolu_1","input":{"cost_usd":"12.50","created":17}}]}',
    ],
  ],
  [
    "Responses with metadata of the caller",
    "responses",
    [
      'data: {"response":{"id":"resp_12345678","created_at":1700000000,"metadata":{"cost_usd":"3.50"}}}\n\n',
      'data: {"response":{"id":"resp_12345678","created_at":1700000000,"completed_at":1700000001,"usage":{"cost_usd":"1.00"},"metadata":{"cost_usd":"3.50"}}}\n\n',
    ],
    [
      'data: {"response":{"id":"resp_0123456789abcdefghijklmn","created_at":1800000000,"metadata":{"cost_usd":"3.50"}}}\n\n',
      'data: {"response":{"id":"resp_0123456789abcdefghijklmn","created_at":1800000000,"completed_at":1800000000,"usage":{"cost_usd":"0.00","cached_response":true},"metadata":{"cost_usd":"3.50"}}}\n\n',
    ],
  ],
  [
    "Gemini as an array",
    "gemini",
    ['[{"responseId":"abcdefgh","x":1}', ',{"x":{"args":{"cost_usd":"1.00"}},"responseId":"abcdefgh"}', "]"],
    [
      '[{"responseId":"0123456789abcdefghijklmn","x":1}',
      ',{"x":{"args":{"cost_usd":"1.00"}},"responseId":"0123456789abcdefghijklmn"}',
      "]",
    ],
  ],
  [
    "documents of a rerank call, a short id, no JSON at all",
    undefined,
    ['{"id":"1","results":[{"document":{"cost_usd":"9.99","id":"1"}}]}', "AAAA"],
    ['{"id":"1","results":[{"document":{"cost_usd":"9.99","id":"1"}}]}', "AAAA"],
  ],
])("an answer that is sent again differs in its own id, time and cost only: %s", (_, format, first, hit) => {
  expect(again(format, ...first)).toBe(hit.join(""));
});

test("a text in parts is the whole text, without a character that is cut", () => {
  for (const length of [0, 1, 65_534, 65_535, 65_536, 65_537, 200_000]) {
    const template = `${"x".repeat(length)}\u{1f600}\u0001${"\u{1f600}".repeat(70_000)}\u0002`;
    const parts = [...partsFrom(template, requestId, now)];
    expect(parts.join("")).toBe(fromTemplate(template, requestId, now));
    for (const part of parts) expect(part.isWellFormed()).toBe(true);
  }
});

test.each<[Format, string]>([
  ["chat", '{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}'],
  ["chat", '{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}'],
  ["messages", 'data: {"type":"message_delta","delta":{"stop_reason":"refusal"}}'],
  ["responses", '{"status":"incomplete","incomplete_details":{"reason": "content_filter"}}'],
  ["responses", '{"output":[{"content":[{"type":"refusal","refusal":"No."}]}]}'],
  ["gemini", '{"candidates":[{"finishReason": "SAFETY"}]}'],
  ["gemini", '{"promptFeedback":{"blockReason":"OTHER"}}'],
])("a withheld answer is not sent again: %s %s", (format, text) => {
  const template = toTemplate(format);
  template.convert(text);
  expect(template.isWithheld()).toBe(true);
});

test.each<[Format, string]>([
  [
    "chat",
    '{"choices":[{"message":{"content":"\\"finish_reason\\":\\"content_filter\\"","refusal":null},"finish_reason":"length"}]}',
  ],
  ["gemini", '{"candidates":[{"finishReason":"MAX_TOKENS"}]}'],
  ["responses", '{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}'],
])("an answer that ended as the caller asked is sent again: %s %s", (format, text) => {
  const template = toTemplate(format);
  template.convert(text);
  expect(template.isWithheld()).toBe(false);
});
