import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";
import { additional, namespaced, searching } from "../support/codex-requests.ts";

type Json = Readonly<Record<string, unknown>>;

const toChat = (fields: Json) => responsesConverter.requestToChat({ model: "local/chat", ...fields });
const messages = (input: unknown) => toChat({ input }).request["messages"];

function refusal(fields: Json): ServiceError {
  try {
    toChat(fields);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("The request was converted.");
}

test("a string is a user message after the instructions", () => {
  expect(toChat({ input: "Hello", instructions: "Be brief." })).toEqual({
    request: {
      model: "local/chat",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
    },
    ignored: [],
  });
});

const textParameters = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};
const identifiers = { prompt_cache_key: "k", safety_identifier: "s", user: "u" };

test("parameters have their names in chat", () => {
  const schema = { type: "object", properties: {} };
  const { request, ignored } = toChat({
    input: "x",
    stream: true,
    max_output_tokens: 50,
    temperature: 0.5,
    top_p: 0.9,
    top_logprobs: 2,
    include: ["message.output_text.logprobs"],
    parallel_tool_calls: false,
    reasoning: { effort: "low" },
    ...identifiers,
    text: { format: { type: "json_schema", name: "n", schema, strict: true, description: null }, verbosity: "low" },
    service_tier: "flex",
    tools: [
      { type: "function", name: "f", description: "d", parameters: schema, strict: true },
      { type: "function", name: "g", parameters: schema, strict: false },
      { type: "custom", name: "h", format: { type: "grammar", syntax: "lark", definition: "start: x" } },
    ],
    tool_choice: { type: "function", name: "f" },
    store: true,
  });
  expect(request).toEqual({
    model: "local/chat",
    messages: [{ role: "user", content: "x" }],
    stream: true,
    max_completion_tokens: 50,
    temperature: 0.5,
    top_p: 0.9,
    logprobs: true,
    top_logprobs: 2,
    parallel_tool_calls: false,
    reasoning_effort: "low",
    ...identifiers,
    response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } },
    verbosity: "low",
    service_tier: "flex",
    tools: [
      { type: "function", function: { name: "f", description: "d", parameters: schema, strict: true } },
      { type: "function", function: { name: "g", parameters: schema } },
      {
        type: "function",
        function: {
          name: "h",
          description: "The input follows this grammar (lark):\nstart: x",
          parameters: textParameters,
        },
      },
    ],
    tool_choice: { type: "function", function: { name: "f" } },
  });
  expect(ignored).toEqual(["format"]);
});

test.each([
  ["required", "required"],
  [
    { type: "custom", name: "h" },
    { type: "function", function: { name: "h" } },
  ],
  [
    { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
    { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] } },
  ],
] as const)("tool choice: %j", (given, chat) => {
  const tools = [{ type: "function", name: "f", parameters: {} }];
  expect(toChat({ input: "x", tools, tool_choice: given }).request["tool_choice"]).toEqual(chat);
});

test("without tools there is no tool choice", () => {
  const { request } = toChat({ input: "x", tools: [], tool_choice: "auto", parallel_tool_calls: false });
  expect(Object.keys(request)).toEqual(["model", "messages"]);
});

test("hints are ignored by name, if a header can have the name", () => {
  const { request, ignored } = toChat({
    input: "x",
    metadata: { a: "b" },
    seed: 1,
    service_tier: "auto",
    parallel_tool_calls: true,
    truncation: "auto",
    reasoning: { effort: null, summary: "auto" },
    include: ["reasoning.encrypted_content", "file_search_call.results"],
    "x\r\ny": 1,
    nothing: null,
  });
  expect(Object.keys(request)).toEqual(["model", "messages"]);
  expect([...ignored].toSorted()).toEqual(
    [
      "metadata",
      "seed",
      "service_tier",
      "parallel_tool_calls",
      "truncation",
      "reasoning.summary",
      "include",
    ].toSorted(),
  );
});

test("parts of a message, with ids of uploads", () => {
  const audio = { data: "QUJD", format: "wav" };
  expect(
    messages([
      {
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", image_url: "https://a.example/x.png", detail: "low" },
          { type: "input_image", file_id: "upl_a" },
          { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" },
          { type: "input_file", file_url: "https://a.example/x.pdf" },
          { type: "input_file", file_id: "upl_b" },
          { type: "input_audio", input_audio: audio },
        ],
      },
    ]),
  ).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "Look" },
        { type: "image_url", image_url: { url: "https://a.example/x.png", detail: "low" } },
        { type: "image_url", image_url: { url: "upl_a" } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" } },
        { type: "file", file: { filename: "document.pdf", file_data: "https://a.example/x.pdf" } },
        { type: "file", file: { file_id: "upl_b" } },
        { type: "input_audio", input_audio: audio },
      ],
    },
  ]);
});

const call = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}", id: `fc_${id}` });
const chatCall = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
const result = (id: string, output: unknown = "ok") => ({ type: "function_call_output", call_id: id, output });

test("text and calls of one assistant turn are one message", () => {
  expect(
    messages([
      { role: "developer", content: "Be brief." },
      { type: "message", role: "user", content: "Go" },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "secret" },
      { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "I look." }] },
      call("a"),
      call("b"),
      result("a"),
      result("b"),
      call("c"),
      result("c"),
      { role: "assistant", content: "Done." },
      { role: "assistant", content: [{ type: "refusal", refusal: "No more." }] },
    ]),
  ).toEqual([
    { role: "developer", content: "Be brief." },
    { role: "user", content: "Go" },
    { role: "assistant", content: "I look.", tool_calls: [chatCall("a"), chatCall("b")] },
    { role: "tool", tool_call_id: "a", content: "ok" },
    { role: "tool", tool_call_id: "b", content: "ok" },
    { role: "assistant", content: null, tool_calls: [chatCall("c")] },
    { role: "tool", tool_call_id: "c", content: "ok" },
    { role: "assistant", content: "Done." },
    { role: "assistant", content: null, refusal: "No more." },
  ]);
});

test("media of results move to a user message after them", () => {
  const image = { type: "input_image", image_url: "https://a.example/x.png" };
  expect(
    messages([
      call("a"),
      call("b"),
      result("a", [{ type: "input_text", text: "seen" }, image]),
      result("b", [
        { type: "input_text", text: "1" },
        { type: "input_text", text: "2" },
      ]),
      { role: "user", content: "And now?" },
      call("c"),
    ]),
  ).toEqual([
    { role: "assistant", content: null, tool_calls: [chatCall("a"), chatCall("b")] },
    { role: "tool", tool_call_id: "a", content: "seen" },
    { role: "tool", tool_call_id: "b", content: "1\n2" },
    {
      role: "user",
      content: [
        { type: "text", text: "Of the result of a:" },
        { type: "image_url", image_url: { url: "https://a.example/x.png" } },
      ],
    },
    { role: "user", content: "And now?" },
    { role: "assistant", content: null, tool_calls: [chatCall("c")] },
  ]);
});

const namesIn = ({ tools }: Json) => (tools as { function: { name: string } }[]).map((tool) => tool.function.name);
const toolCall = (id: string, name: string, args: string) => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name, arguments: args } }],
});
const looked = [
  toolCall("call_2", "mcp__orders__lookup_order", '{"number":7}'),
  { role: "tool", tool_call_id: "call_2", content: "Output:\nOrder 7 is shipped." },
];

test("Codex: tools of a namespace are functions, and a web search without access to the web is omitted", () => {
  const { request, ignored } = toChat(namespaced);
  expect(namesIn(request)).toEqual(["exec_command", "mcp__orders__lookup_order"]);
  expect((request["messages"] as Json[]).slice(3)).toEqual(looked);
  expect(ignored).toEqual([
    "tools.web_search",
    "client_metadata",
    "parallel_tool_calls",
    "reasoning.summary",
    "reasoning.encrypted_content",
    "tools.description",
  ]);
});

test("Codex: custom tools, a search that the caller runs, and what it found are functions", () => {
  const { request, ignored } = toChat(searching);
  expect(namesIn(request)).toEqual(["exec_command", "apply_patch", "tool_search", "mcp__orders__lookup_order"]);
  expect((request["messages"] as Json[]).slice(3)).toEqual([
    toolCall("call_s1", "tool_search", '{"query":"orders","limit":4}'),
    { role: "tool", tool_call_id: "call_s1", content: '{"tools":["mcp__orders__lookup_order"]}' },
    ...looked,
    toolCall("call_p1", "apply_patch", JSON.stringify({ input: "*** Begin Patch\n*** End Patch\n" })),
    { role: "tool", tool_call_id: "call_p1", content: "patch rejected" },
  ]);
  expect(ignored).toEqual([
    "tools.web_search",
    "client_metadata",
    "parallel_tool_calls",
    "reasoning.encrypted_content",
    "format",
    "tools.description",
  ]);
});

test("Codex: tools in the input are functions", () => {
  const { request } = toChat(additional);
  expect(namesIn(request)).toEqual(["functions__exec", "functions__exec_command", "clock__sleep"]);
  expect((request["messages"] as Json[]).map(({ role }) => role)).toEqual(["developer", "user", "user"]);
});

test("names of functions in chat are short, of its alphabet, and unique; a later definition replaces an earlier one", () => {
  const inner = (...names: string[]) => names.map((name) => ({ type: "function", name }));
  const { request } = toChat({
    input: "x",
    tools: [
      { type: "namespace", name: "a", tools: inner("b", "c d", "é".repeat(80), "ü".repeat(80)) },
      { type: "function", name: "a__b", description: "first" },
      { type: "function", name: "a__b", description: "last" },
      { type: "custom", name: "a__b" },
    ],
  });
  const names = namesIn(request);
  expect(names).toHaveLength(6);
  expect(new Set(names).size).toBe(6);
  for (const name of names) expect(name).toMatch(/^[\w-]{1,64}$/);
  expect(request["tools"]).toContainEqual({ type: "function", function: { name: "a__b", description: "last" } });
});

test("encrypted reasoning is ignored by name", () => {
  const hollow = { type: "reasoning", id: "rs_1", summary: [] };
  expect(toChat({ input: [{ ...hollow, encrypted_content: "secret" }] }).ignored).toEqual([
    "reasoning.encrypted_content",
  ]);
  expect(toChat({ input: [hollow] }).ignored).toEqual([]);
});

test.each([
  [{ input: [{ type: "apply_patch_call", call_id: "c" }] }, "input[0].type"],
  [{ input: "x", tools: [{ type: "local_shell" }] }, "tools[0].type"],
  [{ input: "x", tools: [{ type: "namespace", name: "n", tools: [{ type: "shell" }] }] }, "tools[0].tools[0].type"],
  [{ input: "x", tool_choice: { type: "shell" } }, "tool_choice.type"],
  [{ input: "x", tool_choice: { type: "allowed_tools", tools: [{ type: "shell" }] } }, "tool_choice.tools[0].type"],
  [{ input: "x", text: { format: { type: "grammar" } } }, "text.format.type"],
])("refused by name: %j", (fields, param) => {
  expect(refusal(fields)).toMatchObject({ code: "invalid_value", param });
});
