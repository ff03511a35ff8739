import fc from "fast-check";
import { expect, test } from "vitest";
import { chatStream } from "../../workers/conversion/chat/complete-chat.ts";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

type Json = Readonly<Record<string, unknown>>;
interface Delta {
  readonly content?: string;
  readonly refusal?: string;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly Json[];
  readonly tool_calls?: readonly { index: number; id?: string; function: { name?: string; arguments?: string } }[];
}

const ours = { model: "anthropic/claude-opus-5-5", created: 1_700_000_000, id: "chatcmpl-req_abc" };
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
const choiceOf = (chunk: Json) => (chunk["choices"] as { delta: Delta; finish_reason: string | null }[])[0];

/** What a chat client makes of the chunks, once `chatStream` has written them. */
function assemble(chunks: readonly Json[]): Json {
  const stream = chatStream(ours);
  const written = chunks.map((chunk) => stream.write(chunk)).join("") + stream.end({ input: 0, output: 0 });
  const message = { content: "", reasoning_content: "", reasoning_details: [] as Json[] };
  const calls: { id: string; type: "function"; function: { name: string; arguments: string } }[] = [];
  let finish: string | null = null;
  let usage: unknown;
  for (const line of written.split("\n\n").filter((each) => each && each !== "data: [DONE]")) {
    const event = JSON.parse(line.slice("data: ".length)) as Json;
    expect(event).toMatchObject({ id: "msg_1", object: "chat.completion.chunk", model: ours.model });
    usage = event["usage"] ?? usage;
    const choice = choiceOf(event);
    finish = choice?.finish_reason ?? finish;
    message.content += choice?.delta.content ?? "";
    message.reasoning_content += choice?.delta.reasoning_content ?? "";
    message.reasoning_details.push(...(choice?.delta.reasoning_details ?? []));
    for (const { index, id, function: given } of choice?.delta.tool_calls ?? []) {
      const call = (calls[index] ??= { id: id ?? "", type: "function", function: { name: "", arguments: "" } });
      call.function.name += given.name ?? "";
      call.function.arguments += given.arguments ?? "";
    }
  }
  return { message: { ...message, tool_calls: calls }, finish, usage };
}

test("each event says in chat what it says", () => {
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

test("an answer that broke off has no usage but for its prompt: the provider has counted no more", () => {
  const { usage } = chunksOf([begin(), start(0, { type: "text", text: "a" })]);
  expect(usage()).toBeUndefined();
  expect(usage(true)).toMatchObject({ prompt_tokens: 3 });
});

test("nothing is said before the provider says something, so that another upstream may still answer", () => {
  expect(chunksOf([begin(), { type: "ping" }, start(0, { type: "text", text: "" })]).chunks).toEqual([]);
  expect(chunksOf([{ type: "error", error: { type: "overloaded_error", message: "" } }]).chunks).toEqual([]);
});

test("a tool without parameters has an empty object as arguments", () => {
  const { chunks } = chunksOf([start(0, { type: "tool_use", id: "a", name: "now", input: {} }), stop(0)]);
  expect(choiceOf(chunks[1] ?? {})?.delta).toEqual({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] });
});

test("what the provider runs itself leaves nothing in chat", () => {
  const { chunks } = chunksOf([
    start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
    delta(0, { type: "input_json_delta", partial_json: "{}" }),
    stop(0),
    start(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
    stop(1),
  ]);
  expect(chunks).toEqual([]);
});

test("a refusal and a stop sequence are told at the end", () => {
  const stop_details = { type: "refusal", category: null, explanation: "No." };
  expect(chunksOf(end("refusal", { output_tokens: 1 }, { stop_details })).chunks).toMatchObject([
    { choices: [{ delta: { refusal: "No." }, finish_reason: "content_filter" }] },
  ]);
  expect(chunksOf(end("stop_sequence", {}, { stop_sequence: "END" })).chunks).toMatchObject([
    { choices: [{ finish_reason: "stop", stop_reason: "END" }] },
  ]);
});

const words = fc.string({ unit: "binary", maxLength: 12 });
const blocks = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant("thinking"), thinking: words, signature: fc.stringMatching(/^[a-z]{1,5}$/) }),
    fc.record({ type: fc.constant("redacted_thinking"), data: words }),
    fc.record({ type: fc.constant("text"), text: words }),
    fc.record({
      type: fc.constant("tool_use"),
      id: fc.uuid(),
      name: fc.stringMatching(/^[a-z]{1,5}$/),
      input: fc.dictionary(words, fc.jsonValue({ maxDepth: 1 })),
    }),
  ),
  { maxLength: 5 },
);

function cut(text: string, next: () => number): string[] {
  const made: string[] = [];
  for (let at = 0; at < text.length; ) {
    const size = 1 + (next() % text.length);
    made.push(text.slice(at, at + size));
    at += size;
  }
  return made;
}

/** A block as the provider streams it, cut at random places. */
function eventsOf(block: Json, index: number, next: () => number): Json[] {
  const pieces = (value: unknown, type: string, field: string) =>
    cut(String(value), next).map((piece) => delta(index, { type, [field]: piece }));
  switch (block["type"]) {
    case "thinking":
      return [
        start(index, { type: "thinking", thinking: "", signature: "" }),
        ...pieces(block["thinking"], "thinking_delta", "thinking"),
        delta(index, { type: "signature_delta", signature: block["signature"] }),
        stop(index),
      ];
    case "text":
      return [start(index, { ...block, text: "" }), ...pieces(block["text"], "text_delta", "text"), stop(index)];
    case "tool_use":
      return [
        start(index, { ...block, input: {} }),
        ...pieces(JSON.stringify(block["input"]), "input_json_delta", "partial_json"),
        stop(index),
      ];
    default:
      return [start(index, block), stop(index)];
  }
}

test("the stream assembled is the answer, wherever the provider cuts it", () => {
  fc.assert(
    fc.property(blocks, fc.infiniteStream(fc.nat(1000)), (content, random) => {
      const next = () => Number(random.next().value);
      const usage = { input_tokens: 3, cache_read_input_tokens: 2, output_tokens: 8 };
      const events = content.flatMap((block, index) => eventsOf(block, index, next));
      const { chunks } = chunksOf([begin({ ...usage, output_tokens: 1 }), ...events, ...end("end_turn", usage)]);
      const answer = messagesConverter.responseToChat({ id: "msg_1", content, stop_reason: "end_turn", usage });
      const [choice] = answer["choices"] as { message: Json; finish_reason: string }[];
      const { content: said, reasoning_content = "", reasoning_details = [], tool_calls = [] } = choice?.message ?? {};
      expect(assemble(chunks)).toEqual({
        message: { content: said ?? "", reasoning_content, reasoning_details, tool_calls },
        finish: choice?.finish_reason,
        usage: answer["usage"],
      });
    }),
    { numRuns: 150 },
  );
});
