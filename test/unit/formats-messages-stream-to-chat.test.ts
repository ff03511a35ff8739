import { expect, test } from "vitest";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

type Json = Readonly<Record<string, unknown>>;

const begin = (usage: Json = { input_tokens: 3, output_tokens: 1 }): Json => ({
  type: "message_start",
  message: { id: "msg_1", type: "message", role: "assistant", model: "claude-opus-5-5", content: [], usage },
});
const end = (stop_reason: string, usage: Json, fields: Json = {}): Json[] => [
  { type: "message_delta", delta: { stop_reason, stop_sequence: null, ...fields }, usage },
  { type: "message_stop" },
];
const start = (index: number, content_block: Json): Json => ({ type: "content_block_start", index, content_block });
const delta = (index: number, given: Json): Json => ({ type: "content_block_delta", index, delta: given });
const stop = (index: number): Json => ({ type: "content_block_stop", index });

function chunksOf(events: readonly Json[]) {
  const stream = messagesConverter.streamToChat();
  return { chunks: events.flatMap((event) => stream.write(event)), usage: (soFar?: boolean) => stream.usage(soFar) };
}
const choiceOf = (chunk: Json) => (chunk["choices"] as { delta: Json; finish_reason: string | null }[])[0];

test("each event becomes its chat delta", () => {
  const { chunks, usage } = chunksOf([
    begin({ input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 1 }),
    { type: "ping" },
    start(0, { type: "thinking", thinking: "", signature: "" }),
    delta(0, { type: "thinking_delta", thinking: "Hm" }),
    delta(0, { type: "signature_delta", signature: "sig" }),
    stop(0),
    start(1, { type: "redacted_thinking", data: "xyz" }),
    stop(1),
    start(2, { type: "text", text: "" }),
    delta(2, { type: "text_delta", text: "So" }),
    delta(2, { type: "citations_delta", citation: {} }),
    stop(2),
    start(3, { type: "tool_use", id: "toolu_1", name: "look", input: {} }),
    delta(3, { type: "input_json_delta", partial_json: "" }),
    delta(3, { type: "input_json_delta", partial_json: '{"at"' }),
    delta(3, { type: "input_json_delta", partial_json: ":1}" }),
    stop(3),
    ...end("tool_use", { output_tokens: 9 }),
  ]);
  const format = "anthropic-claude-v1";
  expect(chunks.map((chunk) => choiceOf(chunk)?.delta)).toEqual([
    { reasoning_content: "Hm" },
    { reasoning_details: [{ type: "reasoning.text", text: "Hm", signature: "sig", format, index: 0 }] },
    { reasoning_details: [{ type: "reasoning.encrypted", data: "xyz", format, index: 1 }] },
    { content: "So" },
    { tool_calls: [{ index: 0, id: "toolu_1", type: "function", function: { name: "look", arguments: "" } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"at"' } }] },
    { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
    {},
  ]);
  expect(choiceOf(chunks.at(-1) ?? {})?.finish_reason).toBe("tool_calls");
  expect(usage()).toMatchObject({
    prompt_tokens: 7,
    completion_tokens: 9,
    prompt_tokens_details: { cached_tokens: 4 },
  });
  expect(chunks.at(-1)?.["usage"]).toEqual(usage());
});

test("an interrupted answer has usage of its prompt alone", () => {
  const { usage } = chunksOf([begin(), start(0, { type: "text", text: "a" })]);
  expect(usage()).toBeUndefined();
  expect(usage(true)).toMatchObject({ prompt_tokens: 3 });
});

test("events without content write no chunk, so that another upstream may still answer", () => {
  expect(chunksOf([begin(), { type: "ping" }, start(0, { type: "text", text: "" })]).chunks).toEqual([]);
  expect(chunksOf([{ type: "error", error: { type: "overloaded_error", message: "" } }]).chunks).toEqual([]);
});

test("a tool without parameters has an empty object as arguments", () => {
  const { chunks } = chunksOf([start(0, { type: "tool_use", id: "a", name: "now", input: {} }), stop(0)]);
  expect(choiceOf(chunks[1] ?? {})?.delta).toEqual({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] });
});

test("tools that run at the provider leave nothing in chat", () => {
  const { chunks } = chunksOf([
    start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
    delta(0, { type: "input_json_delta", partial_json: "{}" }),
    stop(0),
    start(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
    stop(1),
  ]);
  expect(chunks).toEqual([]);
});

test("a refusal and a stop sequence are in the last chunk", () => {
  const stop_details = { type: "refusal", category: null, explanation: "No." };
  expect(chunksOf(end("refusal", { output_tokens: 1 }, { stop_details })).chunks).toMatchObject([
    { choices: [{ delta: { refusal: "No." }, finish_reason: "content_filter" }] },
  ]);
  expect(chunksOf(end("stop_sequence", {}, { stop_sequence: "END" })).chunks).toMatchObject([
    { choices: [{ finish_reason: "stop", stop_reason: "END" }] },
  ]);
});
