import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";

type Json = Readonly<Record<string, unknown>>;

const user = { role: "user", content: "Hello" };
const convert = (fields: Json, hiddenReasoning = true) =>
  responsesConverter.requestFromChat({ model: "gpt-5", messages: [user], ...fields }, { hiddenReasoning });
const items = (...messages: Json[]) => convert({ messages }).request["input"];

function refusal(fields: Json): ServiceError {
  try {
    convert(fields);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("The request was converted.");
}

const identifiers = { metadata: { a: "b" }, prompt_cache_key: "k", safety_identifier: "s", user: "u" };

test("parameters have their names in the format, and store is false", () => {
  const schema = { type: "object", properties: {} };
  const { request, ignored } = convert({
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 90,
    max_completion_tokens: 50,
    temperature: 0.5,
    top_p: 0.9,
    n: 1,
    logprobs: true,
    top_logprobs: 2,
    parallel_tool_calls: false,
    reasoning_effort: "low",
    verbosity: "low",
    service_tier: "flex",
    ...identifiers,
    response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } },
    tools: [
      { type: "function", function: { name: "f", description: "d", parameters: schema, strict: true } },
      { type: "function", function: { name: "g" } },
      {
        type: "custom",
        custom: { name: "h", format: { type: "grammar", grammar: { syntax: "lark", definition: "d" } } },
      },
    ],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] },
    },
  });
  expect(request).toEqual({
    model: "gpt-5",
    input: [{ type: "message", ...user }],
    stream: true,
    max_output_tokens: 50,
    temperature: 0.5,
    top_p: 0.9,
    top_logprobs: 2,
    include: ["message.output_text.logprobs", "reasoning.encrypted_content"],
    parallel_tool_calls: false,
    reasoning: { effort: "low" },
    service_tier: "flex",
    ...identifiers,
    text: { format: { type: "json_schema", name: "n", schema, strict: true }, verbosity: "low" },
    tools: [
      { type: "function", name: "f", description: "d", parameters: schema, strict: true },
      { type: "function", name: "g", parameters: schema, strict: false },
      { type: "custom", name: "h", format: { type: "grammar", syntax: "lark", definition: "d" } },
    ],
    tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
    store: false,
  });
  expect(ignored).toEqual([]);
});

test("hints are ignored by name", () => {
  const { request, ignored } = convert({
    seed: 1,
    service_tier: "auto",
    parallel_tool_calls: true,
    presence_penalty: 0,
    frequency_penalty: 0,
    store: true,
    top_k: 3,
    stop: null,
    logprobs: false,
  });
  expect(Object.keys(request).toSorted()).toEqual(["include", "input", "model", "store"]);
  expect([...ignored].toSorted()).toEqual(
    [
      "seed",
      "service_tier",
      "parallel_tool_calls",
      "presence_penalty",
      "frequency_penalty",
      "store",
      "top_k",
    ].toSorted(),
  );
});

test.each([
  [{ stop: "x" }, "stop"],
  [{ logit_bias: { 1: 2 } }, "logit_bias"],
  [{ frequency_penalty: 1 }, "frequency_penalty"],
  [{ functions: [{ name: "f" }] }, "functions"],
  [{ tools: [{ type: "retrieval" }] }, "tools[0].type"],
  [{ tool_choice: { type: "retrieval" } }, "tool_choice.type"],
  [{ response_format: { type: "grammar" } }, "response_format.type"],
  [{ messages: [{ role: "user", content: [{ type: "video_url" }] }] }, "messages[0].content[0].type"],
  [{ messages: [{ role: "assistant", function_call: { name: "f" } }] }, "messages[0].function_call"],
])("refused by name: %j", (fields, param) => {
  expect(refusal(fields)).toMatchObject({ code: "invalid_value", param });
});

test("messages with their parts, calls and results", () => {
  const audio = { data: "QUJD", format: "wav" };
  expect(
    items(
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image_url", image_url: { url: "https://a.example/x.png", detail: "low" } },
          { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } },
          { type: "input_audio", input_audio: audio },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" } },
          { type: "file", file: { file_data: "https://a.example/x.pdf" } },
        ],
      },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "a", type: "function", function: { name: "f", arguments: "{}" } },
          { id: "b", type: "custom", custom: { name: "h", input: "x" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "ok" },
      { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "fine" }] },
      { role: "assistant", content: [{ type: "text", text: "Done." }], refusal: "No more." },
    ),
  ).toEqual([
    { type: "message", role: "system", content: "Be brief." },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "Look" },
        { type: "input_image", image_url: "https://a.example/x.png", detail: "low" },
        { type: "input_image", image_url: "data:image/png;base64,QUJD", detail: "auto" },
        { type: "input_audio", input_audio: audio },
        { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,QUJD" },
        { type: "input_file", file_url: "https://a.example/x.pdf" },
      ],
    },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look.", annotations: [] }] },
    { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
    { type: "custom_tool_call", call_id: "b", name: "h", input: "x" },
    { type: "function_call_output", call_id: "a", output: "ok" },
    { type: "custom_tool_call_output", call_id: "b", output: [{ type: "input_text", text: "fine" }] },
    {
      type: "message",
      role: "assistant",
      content: [
        { type: "output_text", text: "Done.", annotations: [] },
        { type: "refusal", refusal: "No more." },
      ],
    },
  ]);
});

test("the provider's own reasoning state goes back to it, another provider's does not", () => {
  const shared = { format: "openai-responses-v1", id: "rs_1", index: 0 };
  const messages = [
    {
      role: "assistant",
      content: "Yes.",
      reasoning_content: "Hm.",
      reasoning_details: [
        { type: "reasoning.summary", summary: "Hm.", ...shared },
        { type: "reasoning.encrypted", data: "secret", ...shared },
        { type: "reasoning.encrypted", data: "foreign", format: "anthropic-claude-v1", index: 0 },
      ],
    },
  ];
  const message = {
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text: "Yes.", annotations: [] }],
  };
  expect(convert({ messages }).request).toMatchObject({
    input: [
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "secret" },
      message,
    ],
    include: ["reasoning.encrypted_content"],
  });
  expect(convert({ messages }, false).request).toEqual({ model: "gpt-5", input: [message], store: false });
});

test("a call id that is too long is shortened alike in the call and its result", () => {
  const id = `call_${"x".repeat(80)}_1`;
  const [call, result] = items(
    { role: "assistant", tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }] },
    { role: "tool", tool_call_id: id, content: "ok" },
  ) as [Json, Json];
  expect(call["call_id"]).toHaveLength(64);
  expect(result["call_id"]).toBe(call["call_id"]);
});

const word = fc.string({ minLength: 1 });
const turns = fc.array(
  fc.oneof(
    fc.record({ role: fc.constantFrom("user", "system", "developer"), content: word }).map((message) => [message]),
    word.map((content) => [
      { role: "assistant", content },
      { role: "user", content: "Go on" },
    ]),
    fc
      .tuple(fc.option(word, { nil: null }), fc.array(fc.tuple(word, fc.json(), word), { minLength: 1, maxLength: 3 }))
      .map(([content, calls]) => [
        {
          role: "assistant",
          content,
          tool_calls: calls.map(([name, input], c) => ({
            id: `c${c}`,
            type: "function",
            function: { name, arguments: input },
          })),
        },
        ...calls.map(([, , output], c) => ({ role: "tool", tool_call_id: `c${c}`, content: output })),
      ]),
  ),
  { minLength: 1 },
);

test("a conversation converted from chat and back is the same", () => {
  fc.assert(
    fc.property(turns, (conversation) => {
      const messages = conversation.flat();
      const back = responsesConverter.requestToChat(convert({ messages }).request);
      expect(back.request["messages"]).toEqual(messages);
    }),
  );
});
