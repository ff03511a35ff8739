import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { chatCodec } from "#formats";
import { countTokensCodec, messagesCodec } from "../../shared/formats/index.ts";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";
import { runs } from "../support/property-runs.ts";

type Json = Readonly<Record<string, unknown>>;

const ours = { model: "m", created: 1, id: "req_a" };

const messagesBody = {
  model: "claude-opus-5-5",
  max_tokens: 5,
  system: [{ type: "text", text: "s", cache_control: { type: "ephemeral", ttl: "1h" } }],
  messages: [
    {
      role: "user",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
        { type: "document", source: { type: "content", content: [{ type: "text", text: "x" }] }, title: "t" },
        { type: "document", source: { type: "text", data: "x" }, citations: { enabled: true } },
        { type: "search_result", title: "t", source: "s", content: [{ type: "text", text: "x" }] },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "h", signature: "s" },
        { type: "redacted_thinking", data: "d" },
        { type: "text", text: "x" },
        { type: "tool_use", id: "a", name: "n", input: {} },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "x" }] }] },
  ],
  tools: [{ name: "n", description: "d", input_schema: { type: "object" }, strict: true }],
  tool_choice: { type: "tool", name: "n" },
  thinking: { type: "enabled", budget_tokens: 2000 },
  output_config: { effort: "high", format: { type: "json_schema", schema: {} } },
  context_management: { edits: [{ type: "clear_x" }] },
  diagnostics: { previous_message_id: null },
  stop_sequences: ["x"],
};

const chatBody = {
  model: "claude-haiku-4-5",
  max_tokens: 5000,
  messages: [
    { role: "system", content: [{ type: "text", text: "s" }] },
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "https://a.example/b" } },
        { type: "file", file: { filename: "f", file_data: "data:text/plain;base64,AA==" } },
      ],
    },
    {
      role: "assistant",
      content: "x",
      tool_calls: [{ id: "a", type: "function", function: { name: "n", arguments: "{}" } }],
      reasoning_details: [{ type: "reasoning.text", text: "t", signature: "s", format: "anthropic-claude-v1" }],
    },
    { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "x" }] },
  ],
  tools: [{ type: "function", function: { name: "n", parameters: { type: "object" } } }],
  tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [{ function: { name: "n" } }] } },
  response_format: {
    type: "json_schema",
    json_schema: { schema: { type: "object", properties: { a: { items: {}, anyOf: [{}] } } } },
  },
  reasoning_effort: "high",
  temperature: 0.5,
  top_p: 0.5,
  stop: ["x"],
  modalities: ["text"],
};

const answer = {
  id: "msg_1",
  content: messagesBody.messages[1]?.content,
  stop_reason: "tool_use",
  stop_details: { explanation: "x" },
  usage: { input_tokens: 1, output_tokens: 1, cache_creation: { ephemeral_1h_input_tokens: 1 } },
};

const chatAnswer = {
  choices: [{ index: 0, message: { ...chatBody.messages[2], content: [{ type: "text", text: "x" }] } }],
  usage: { prompt_tokens: 1, prompt_tokens_details: { cached_tokens: 1 }, completion_tokens_details: {} },
};

const events = [
  { type: "message_start", message: { id: "a", usage: { input_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "a", name: "n", input: {} } },
  { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "{}" } },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 1, content_block: { type: "thinking", thinking: "", signature: "" } },
  { type: "content_block_delta", index: 1, delta: { type: "signature_delta", signature: "s" } },
  { type: "content_block_stop", index: 1 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_details: {} }, usage: { output_tokens: 1 } },
];

const chunks = [
  { choices: [{ index: 0, delta: { content: "x", reasoning_content: "h", refusal: "r" } }] },
  { choices: [{ index: 0, delta: { reasoning_details: chatBody.messages[2]?.reasoning_details } }] },
  { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "a", function: { name: "n", arguments: "{" } }] } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 1 } },
];

/** Every path to a value inside. */
function pathsOf(value: unknown, at: readonly string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [[...at]];
  return [[...at], ...Object.entries(value).flatMap(([field, each]) => pathsOf(each, [...at, field]))];
}

function replaced(value: unknown, [field, ...rest]: readonly string[], by: unknown): unknown {
  if (field === undefined) return by;
  if (Array.isArray(value)) return value.map((each, i) => (String(i) === field ? replaced(each, rest, by) : each));
  return { ...(value as Json), [field]: replaced((value as Json)[field], rest, by) };
}

const wrongs: readonly unknown[] = [
  null,
  0,
  -1.5,
  true,
  "",
  "upl_a",
  "__proto__",
  [],
  [null],
  [[[]]],
  {},
  { toString: 1, length: 3, type: { toString: null } },
];

/** Any error other than a 400. */
function fault(work: () => unknown, what: string): string[] {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status !== 400) return [`${what}: ${String(error)}`];
  }
  return [];
}

function faults<T>(good: T, work: (bad: T) => unknown): string[] {
  const paths = pathsOf(good).filter((path) => path.length > 0);
  return paths.flatMap((path) =>
    wrongs.flatMap((wrong) =>
      fault(() => work(replaced(good, path, wrong) as T), `${path.join(".")} = ${JSON.stringify(wrong)}`),
    ),
  );
}

test("a field of any wrong type in a Messages request is a 400 or ignored", () => {
  expect(faults(messagesBody, (body) => messagesCodec.parse(body, 100))).toEqual([]);
  expect(faults(messagesBody, (body) => countTokensCodec.parse(body, 100))).toEqual([]);
  expect(faults(messagesBody, (body) => messagesConverter.requestToChat(body))).toEqual([]);
  expect(
    faults(messagesBody, (body) =>
      messagesConverter.native.prepare(body, { model: "m", cap: 1, capField: "max_tokens" }),
    ),
  ).toEqual([]);
  const placed = { mime: "image/png", address: "https://a.example", base64: "" };
  expect(faults(messagesBody, (body) => messagesConverter.resolveUploads(body, () => placed))).toEqual([]);
});

test("a field of any wrong type in a chat request is a 400 or ignored", () => {
  expect(faults(chatBody, (body) => messagesConverter.requestFromChat(body))).toEqual([]);
});

test("a field of any wrong type in an answer does not throw", () => {
  expect(faults(answer, (body) => messagesConverter.responseToChat(body))).toEqual([]);
  expect(
    faults(answer, (body) =>
      messagesConverter.native.usage(messagesConverter.native.finish(body, ours, { input: 0, output: 0 })),
    ),
  ).toEqual([]);
  expect(faults(chatAnswer, (body) => messagesConverter.responseFromChat(body, ours, { stop_sequences: 1 }))).toEqual(
    [],
  );
});

test("a field of any wrong type in a stream does not throw", () => {
  const read = (bad: typeof events) => {
    const stream = messagesConverter.streamToChat();
    const native = messagesConverter.native.stream(ours);
    for (const event of bad) {
      stream.write(event ?? {});
      native.write(event ?? {});
    }
    native.end({ input: 0, output: native.outputBytes() });
  };
  const write = (bad: typeof chunks) => {
    const stream = messagesConverter.streamFromChat(ours, {});
    for (const chunk of bad) stream.write(chunk ?? {});
    stream.end({ input: 0, output: stream.outputBytes() });
  };
  expect(faults(events, read)).toEqual([]);
  expect(faults(chunks, write)).toEqual([]);
});

test("any JSON is a 400 or a call", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (body) => {
      expect(fault(() => messagesCodec.parse(body, 10), JSON.stringify(body))).toEqual([]);
    }),
    { numRuns: runs(300) },
  );
});

test("JSON nested deeper than the stack is a 400", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`) as Json;
  const call = { type: "tool_use", id: "a", name: "n", input: deep };
  const body = { ...messagesBody, messages: [{ role: "assistant", content: [call] }] };
  expect(fault(() => messagesCodec.parse(body, 100), "parse")).toEqual([]);
  expect(() => messagesConverter.requestToChat(body)).toThrow("messages[0].content[0].input: is nested too deep");
  const items = JSON.parse(`${'{"items":'.repeat(1000)}{}${"}".repeat(1000)}`) as Json;
  const response_format = { type: "json_schema", json_schema: { schema: items } };
  expect(() => messagesConverter.requestFromChat({ ...chatBody, response_format })).toThrow("is nested too deep");
});

test("a converted request is valid in its new format", () => {
  const { diagnostics: _, context_management: __, output_config: ___, ...body } = messagesBody;
  const { request } = messagesConverter.requestToChat(body);
  expect(chatCodec.parse(request, 1000)).toMatchObject({ model: body.model, size: { outputCap: 5 } });
  expect(messagesCodec.parse(messagesConverter.requestFromChat(chatBody).request, 1000)).toMatchObject({
    model: chatBody.model,
    size: { outputCap: 5000 },
  });
});
