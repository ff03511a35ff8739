import { expect, test } from "vitest";
import type { JsonObject } from "#json";
import type { Format } from "../../shared/formats/index.ts";
import { finishReasonReader } from "../../workers/conversion/index.ts";

const chunk = (finish_reason: string | null, index = 0) => ({ choices: [{ index, delta: {}, finish_reason }] });
const call = { content: { parts: [{ functionCall: { name: "f", args: {} } }] } };
const response = (status: string, more: JsonObject = {}) => ({ object: "response", status, output: [], ...more });

test.each<[Format, expected: string | undefined, ...JsonObject[]]>([
  ["chat", "tool_calls", chunk(null), chunk("tool_calls"), { choices: [], usage: {} }],
  ["chat", "length", chunk("stop", 1), chunk("length")],
  ["chat", undefined, chunk(null), chunk("")],
  ["chat", "stop", { choices: [{ index: 0, message: { content: "Hi" }, finish_reason: "stop" }] }],
  ["messages", "tool_calls", { type: "message_start" }, { type: "message_delta", delta: { stop_reason: "tool_use" } }],
  ["messages", "length", { content: [], stop_reason: "max_tokens" }],
  ["messages", undefined, { type: "content_block_delta", delta: { type: "text_delta", text: "Hi" } }],
  ["responses", "tool_calls", { response: response("completed", { output: [{ type: "function_call" }] }) }],
  ["responses", "length", response("incomplete", { incomplete_details: { reason: "max_output_tokens" } })],
  ["responses", "stop", { response: response("in_progress") }, { response: response("completed") }],
  ["responses", undefined, { response: response("in_progress") }, { response: response("failed") }],
  ["gemini", "tool_calls", { candidates: [call] }, { candidates: [{ finishReason: "STOP" }] }],
  ["gemini", "content_filter", { candidates: [{ finishReason: "SAFETY" }] }],
  ["gemini", undefined, { candidates: [{ content: { parts: [{ text: "Hi" }] } }] }],
])("in %s an answer that ended with %s", (format, expected, ...items) => {
  const read = finishReasonReader(format);
  const reasons = items.map(read).filter((reason) => reason !== undefined);
  expect(reasons.at(-1)).toBe(expected);
});
