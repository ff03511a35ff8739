import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";

type Json = Readonly<Record<string, unknown>>;

const fromChatRequest = (chat: Json) => geminiConverter.requestFromChat(chat);
const request = (fields: Json = {}): Json => ({
  model: "gemini-3.8-flash",
  messages: [{ role: "user", content: "Hello" }],
  ...fields,
});
const converted = (fields: Json = {}): Json => fromChatRequest(request(fields)).request;
const config = (fields: Json): unknown => converted(fields)["generationConfig"];
const contents = (...messages: Json[]): unknown => converted({ messages })["contents"];
const refusedParam = (fields: Json): string | undefined => {
  try {
    fromChatRequest(request(fields));
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};
const google = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } });
const call = (id: string, name: string, args: string, more: Json = {}): Json => ({
  id,
  type: "function",
  function: { name, arguments: args },
  ...more,
});

test("messages are contents and one system instruction; the model is removed; store is false", () => {
  expect(
    fromChatRequest(
      request({
        messages: [
          { role: "system", content: "Be kind." },
          { role: "user", content: "Hello" },
          { role: "user", content: [{ type: "text", text: "there" }] },
          { role: "assistant", content: "Hi", reasoning_content: "Hm." },
          { role: "developer", content: [{ type: "text", text: "Be brief." }] },
        ],
        max_tokens: 100,
        max_completion_tokens: 50,
        stream: true,
        stream_options: { include_usage: true },
        user: "u",
        metadata: {},
        parallel_tool_calls: true,
        presence_penalty: 0,
        service_tier: "auto",
      }),
    ),
  ).toEqual({
    request: {
      systemInstruction: { parts: [{ text: "Be kind." }, { text: "Be brief." }] },
      contents: [
        { role: "user", parts: [{ text: "Hello" }, { text: "there" }] },
        { role: "model", parts: [{ text: "Hi" }] },
      ],
      generationConfig: { maxOutputTokens: 50 },
      store: false,
    },
    ignored: ["user", "metadata", "service_tier", "parallel_tool_calls", "reasoning_content"],
  });
});

test("media by bytes and by link; links to the provider's own store are refused", () => {
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  expect(
    contents({
      role: "user",
      content: [
        image("data:image/webp;base64,QUJD"),
        image("https://a.example/x.PNG?v=1"),
        image("https://a.example/x"),
        { type: "input_audio", input_audio: { data: "QUJD", format: "mp3" } },
        { type: "file", file: { file_data: "data:application/pdf;base64,QUJD" } },
        { type: "file", file: { file_data: "https://a.example/report" } },
      ],
    }),
  ).toEqual([
    {
      role: "user",
      parts: [
        { inlineData: { mimeType: "image/webp", data: "QUJD" } },
        { fileData: { mimeType: "image/png", fileUri: "https://a.example/x.PNG?v=1" } },
        { fileData: { mimeType: "image/jpeg", fileUri: "https://a.example/x" } },
        { inlineData: { mimeType: "audio/mp3", data: "QUJD" } },
        { inlineData: { mimeType: "application/pdf", data: "QUJD" } },
        { fileData: { mimeType: "application/pdf", fileUri: "https://a.example/report" } },
      ],
    },
  ]);
  const refusedPart = (part: Json) => refusedParam({ messages: [{ role: "user", content: [part] }] });
  expect(refusedPart(image("https://generativelanguage.googleapis.com/v1beta/files/abc"))).toBe(
    "messages[0].content[0].image_url.url",
  );
  expect(refusedPart({ type: "file", file: { file_data: "files/abc" } })).toBe("messages[0].content[0].file.file_data");
  expect(refusedPart({ type: "video_url", video_url: {} })).toBe("messages[0].content[0].type");
});

test("calls and results have their ids, names and signatures", () => {
  expect(
    contents(
      { role: "user", content: "?" },
      {
        role: "assistant",
        content: "Let me see.",
        ...google("c2ln"),
        tool_calls: [call("a", "one", '{"x":1}', google("b25l")), call("b", "two", "")],
      },
      { role: "tool", tool_call_id: "b", content: "B" },
      { role: "tool", tool_call_id: "a", content: '{"value":3}' },
      { role: "user", content: "And?" },
    ),
  ).toEqual([
    { role: "user", parts: [{ text: "?" }] },
    {
      role: "model",
      parts: [
        { text: "Let me see.", thoughtSignature: "c2ln" },
        { functionCall: { id: "a", name: "one", args: { x: 1 } }, thoughtSignature: "b25l" },
        { functionCall: { id: "b", name: "two", args: {} } },
      ],
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "b", name: "two", response: { output: "B" } } },
        { functionResponse: { id: "a", name: "one", response: { value: 3 } } },
      ],
    },
    { role: "user", parts: [{ text: "And?" }] },
  ]);
  expect(refusedParam({ messages: [{ role: "tool", tool_call_id: "x", content: "" }] })).toBe(
    "messages[0].tool_call_id",
  );
});

test("unsigned calls skip validation for models that require signatures", () => {
  const messages = [
    { role: "user", content: "?" },
    { role: "assistant", tool_calls: [call("a", "f", "{}"), call("b", "f", "oops")] },
  ];
  const parts = (model: string) => (converted({ model, messages })["contents"] as { parts: Json[] }[])[1]?.parts;
  expect(parts("gemini-3.8-flash")).toEqual([
    { functionCall: { id: "a", name: "f", args: {} }, thoughtSignature: "skip_thought_signature_validator" },
    { functionCall: { id: "b", name: "f", args: { INVALID_JSON: "oops" } } },
  ]);
  expect(parts("gemini-2.5-flash")?.[0]).toEqual({ functionCall: { id: "a", name: "f", args: {} } });
});

test("images in a result go inside it where the model accepts them, else next to it", () => {
  const messages = [
    { role: "assistant", tool_calls: [call("a", "look", "{}")] },
    {
      role: "tool",
      tool_call_id: "a",
      content: [
        { type: "text", text: "See" },
        { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } },
        { type: "image_url", image_url: { url: "https://a.example/x.png" } },
      ],
    },
  ];
  const inline = { inlineData: { mimeType: "image/png", data: "QUJD" } };
  const linked = { fileData: { mimeType: "image/png", fileUri: "https://a.example/x.png" } };
  const response = { output: "See" };
  const parts = (model: string) => (converted({ model, messages })["contents"] as { parts: Json[] }[])[1]?.parts;
  expect(parts("gemini-4-argon")).toEqual([
    { functionResponse: { id: "a", name: "look", response, parts: [inline] } },
    linked,
  ]);
  expect(parts("gemini-2.5-pro")).toEqual([{ functionResponse: { id: "a", name: "look", response } }, inline, linked]);
});

test("tools are declarations, and the choice is a mode", () => {
  const parameters = { $schema: "x", type: "object", properties: { kind: { const: "a" } } };
  const tools = [
    { type: "function", function: { name: "one", description: "First.", parameters } },
    { type: "function", function: { name: "two", strict: true } },
  ];
  const functionDeclarations = [
    {
      name: "one",
      description: "First.",
      parametersJsonSchema: { type: "object", properties: { kind: { enum: ["a"] } } },
    },
    { name: "two" },
  ];
  const chosen = (tool_choice: unknown, all: Json[] = tools) => {
    const { tools: declared, toolConfig } = converted({ tools: all, tool_choice });
    return [toolConfig, declared];
  };
  const mode = (name: string, more: Json = {}) => ({ functionCallingConfig: { mode: name, ...more } });
  expect(chosen(undefined)).toEqual([mode("VALIDATED"), [{ functionDeclarations }]]);
  expect(chosen("auto", tools.slice(0, 1))[0]).toBeUndefined();
  expect(chosen("none")[0]).toEqual(mode("NONE"));
  expect(chosen("required")[0]).toEqual(mode("ANY"));
  expect(chosen({ type: "function", function: { name: "two" } })[0]).toEqual(
    mode("ANY", { allowedFunctionNames: ["two"] }),
  );
  const allowed_tools = { mode: "required", tools: [{ type: "function", function: { name: "two" } }] };
  expect(chosen({ type: "allowed_tools", allowed_tools })).toEqual([
    mode("ANY"),
    [{ functionDeclarations: [{ name: "two" }] }],
  ]);
  expect(refusedParam({ tools, parallel_tool_calls: false })).toBe("parallel_tool_calls");
  expect(refusedParam({ tool_choice: "required" })).toBe("tool_choice");
  expect(refusedParam({ tools, tool_choice: { type: "custom" } })).toBe("tool_choice");
  expect(refusedParam({ tools: [{ type: "custom", custom: { name: "x" } }] })).toBe("tools[0].type");
});

test("sampling and response formats", () => {
  const schema = { type: "object", properties: { a: { const: 1 } } };
  expect(
    converted({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      n: 2,
      stop: "END",
      seed: 3,
      presence_penalty: 1,
      logprobs: true,
      top_logprobs: 2,
      service_tier: "priority",
      response_format: { type: "json_schema", json_schema: { name: "x", schema, strict: true } },
    }),
  ).toMatchObject({
    serviceTier: "priority",
    generationConfig: {
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      candidateCount: 2,
      stopSequences: ["END"],
      seed: 3,
      presencePenalty: 1,
      responseLogprobs: true,
      logprobs: 2,
      responseMimeType: "application/json",
      responseJsonSchema: { type: "object", properties: { a: { enum: [1] } } },
    },
  });
  expect(config({ response_format: { type: "json_object" } })).toEqual({ responseMimeType: "application/json" });
  expect(config({ n: 1, stop: null, response_format: { type: "text" } })).toBeUndefined();
});

test("parameters that have no counterpart are refused by name", () => {
  const refused: Json = {
    logit_bias: { 1: 2 },
    functions: [{}],
    service_tier: "scale",
    stop: ["1", "2", "3", "4", "5", "6"],
  };
  for (const [field, value] of Object.entries(refused)) expect(refusedParam({ [field]: value })).toBe(field);
  expect(refusedParam({ model: "gemini-2.5-flash", frequency_penalty: 1 })).toBe("frequency_penalty");
  expect(refusedParam({ response_format: { type: "grammar" } })).toBe("response_format.type");
  expect(refusedParam({ messages: [{ role: "system", content: "x" }] })).toBe("messages");
});

test("effort as the thinking config of each model generation", () => {
  const thinking = (model: string, reasoning_effort: string, more: Json = {}) =>
    (config({ model, reasoning_effort, ...more }) as Json | undefined)?.["thinkingConfig"];
  const level = (thinkingLevel: string) => ({ thinkingLevel, includeThoughts: true });
  const budget = (thinkingBudget: number) => ({ thinkingBudget, includeThoughts: true });
  expect(thinking("gemini-3.8-flash", "minimal")).toEqual(level("LOW"));
  expect(thinking("gemini-3.6-flash", "minimal")).toEqual(level("MINIMAL"));
  expect(thinking("gemini-3.1-flash-lite", "minimal")).toEqual(level("MINIMAL"));
  expect(thinking("gemini-3.1-pro-preview", "minimal")).toEqual(level("LOW"));
  expect(thinking("gemini-3.1-pro-preview", "medium")).toEqual(level("MEDIUM"));
  expect(thinking("gemini-3-pro-preview", "medium")).toEqual(level("HIGH"));
  expect(thinking("gemini-4-argon", "xhigh")).toEqual(level("HIGH"));
  expect(thinking("gemini-flash-latest", "none")).toEqual({ thinkingLevel: "LOW" });
  expect(thinking("gemini-2.5-flash", "none")).toEqual({ thinkingBudget: 0 });
  expect(thinking("gemini-2.5-pro", "none")).toEqual({ thinkingBudget: 128 });
  expect(thinking("gemini-2.5-pro", "max")).toEqual(budget(32_768));
  expect(thinking("gemini-2.5-flash", "max")).toEqual(budget(24_576));
  expect(thinking("gemini-2.5-flash", "high", { max_tokens: 1000 })).toEqual(budget(800));
  expect(thinking("gemini-2.5-flash-lite", "high", { max_tokens: 100 })).toEqual(budget(512));
  expect(fromChatRequest(request({ model: "gemma-3-27b-it", reasoning_effort: "low" })).ignored).toEqual([
    "reasoning_effort",
  ]);
  const extra_body = { google: { thinking_config: { thinking_budget: 5, include_thoughts: true }, x: 1 }, y: 2 };
  expect(fromChatRequest(request({ reasoning_effort: "low", extra_body }))).toMatchObject({
    request: { generationConfig: { thinkingConfig: { thinkingBudget: 5, includeThoughts: true } } },
    ignored: ["y", "x"],
  });
});

const word = fc.string({ minLength: 1, maxLength: 12 });
const plainJson = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.oneof(word, fc.integer(), fc.boolean()));
const step = fc.record({
  ask: word,
  say: fc.option(word, { nil: null }),
  calls: fc.array(
    fc.record({
      name: fc.constantFrom("f", "g"),
      args: plainJson,
      result: word.filter((each) => !each.trimStart().startsWith("{")),
      signature: fc.option(fc.constantFrom("c2ln", "b25l"), { nil: undefined }),
    }),
    { maxLength: 3 },
  ),
});

test("a conversation converted from chat and back is the same", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
      let count = 0;
      const messages = steps.flatMap(({ ask, say, calls }) => {
        const made = calls.map((each) => ({ ...each, id: `id_${count++}` }));
        if (say === null && made.length === 0)
          return [
            { role: "user", content: ask },
            { role: "assistant", content: "!" },
          ];
        return [
          { role: "user", content: ask },
          {
            role: "assistant",
            content: say,
            ...(made.length > 0 && {
              tool_calls: made.map(({ id, name, args, signature }) =>
                call(id, name, JSON.stringify(args), signature ? google(signature) : {}),
              ),
            }),
          },
          ...made.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
        ];
      });
      // An older model, which requires no signatures.
      const there = geminiConverter.requestFromChat({ model: "gemini-2.5-flash", messages }).request;
      expect(geminiConverter.requestToChat(there).request["messages"]).toEqual(messages);
    }),
  );
});
