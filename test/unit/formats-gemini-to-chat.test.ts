import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";

type Json = Readonly<Record<string, unknown>>;

const toChat = (body: Json) => geminiConverter.requestToChat(body);
const user = (...parts: Json[]): Json => ({ role: "user", parts });
const model = (...parts: Json[]): Json => ({ role: "model", parts });
const request = (fields: Json = {}): Json => ({ contents: [user({ text: "Hello" })], ...fields });
const configured = (generationConfig: Json) => toChat(request({ generationConfig }));
const messages = (...contents: Json[]): unknown => toChat({ contents }).request["messages"];
const refusedParam = (body: Json): string | undefined => {
  try {
    toChat(body);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};
const call = (name: string, args: Json = {}, id?: string): Json => ({
  functionCall: { ...(id && { id }), name, args },
});
const result = (name: string, response: Json, id?: string): Json => ({
  functionResponse: { ...(id && { id }), name, response },
});

test("instruction and contents are messages, without thoughts", () => {
  expect(
    toChat({
      system_instruction: { parts: [{ text: "Be kind." }, { text: "Be brief." }] },
      contents: [user({ text: "Hello" }), model({ text: "Hm.", thought: true }, { text: "Hi" }, { text: " there" })],
    }),
  ).toEqual({
    request: {
      messages: [
        { role: "system", content: "Be kind.\n\nBe brief." },
        { role: "user", content: "Hello" },
        { role: "assistant", content: "Hi there" },
      ],
    },
    ignored: [],
  });
});

test("media are parts of chat", () => {
  const inline = (mimeType: string) => ({ inlineData: { mimeType, data: "QUJD" } });
  const linked = (mimeType: string, fileUri: string) => ({ fileData: { mimeType, fileUri } });
  expect(
    messages(
      user(
        { text: "Look" },
        inline("image/png"),
        inline("audio/mpeg"),
        inline("audio/x-wav"),
        inline("application/pdf"),
        inline("text/plain"),
        linked("image/png", "https://a.example/x.png"),
        linked("image/png", "upl_a"),
        linked("audio/wav", "upl_b"),
        linked("application/pdf", "upl_c"),
      ),
    ),
  ).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "Look" },
        { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } },
        { type: "input_audio", input_audio: { data: "QUJD", format: "mp3" } },
        { type: "input_audio", input_audio: { data: "QUJD", format: "wav" } },
        { type: "file", file: { filename: "document.pdf", file_data: "data:application/pdf;base64,QUJD" } },
        { type: "text", text: "ABC" },
        { type: "image_url", image_url: { url: "https://a.example/x.png" } },
        { type: "image_url", image_url: { url: "upl_a" } },
        { type: "input_audio", input_audio: { data: "upl_b", format: "wav" } },
        { type: "file", file: { file_id: "upl_c" } },
      ],
    },
  ]);
  const of = (part: Json) => refusedParam({ contents: [user(part)] });
  expect(of(inline("video/mp4"))).toBe("contents[0].parts[0].inlineData.mimeType");
  expect(of(linked("video/mp4", "https://a.example/x"))).toBe("contents[0].parts[0].fileData.mimeType");
  expect(of(linked("audio/wav", "https://a.example/x"))).toBe("contents[0].parts[0].fileData.fileUri");
  expect(refusedParam({ contents: [model(inline("image/png"))] })).toBe("contents[0].parts[0]");
});

test("calls and their results have their ids and signatures", () => {
  const google = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } });
  expect(
    messages(
      user({ text: "?" }),
      model(
        { text: "Let me see.", thoughtSignature: "c2ln" },
        { ...call("one", { x: 1 }, "id_1"), thoughtSignature: "b25l" },
        call("two", {}, "id_2"),
      ),
      user(result("two", { output: "B" }, "id_2"), result("one", { value: 3 }, "id_1")),
      user({ text: "And?" }),
    ),
  ).toEqual([
    { role: "user", content: "?" },
    {
      role: "assistant",
      content: "Let me see.",
      ...google("c2ln"),
      tool_calls: [
        { id: "id_1", type: "function", function: { name: "one", arguments: '{"x":1}' }, ...google("b25l") },
        { id: "id_2", type: "function", function: { name: "two", arguments: "{}" } },
      ],
    },
    { role: "tool", tool_call_id: "id_2", content: "B" },
    { role: "tool", tool_call_id: "id_1", content: '{"value":3}' },
    { role: "user", content: "And?" },
  ]);
});

test("results of one function are matched by id", () => {
  expect(
    messages(
      model(call("f", {}, "a"), call("f", {}, "b")),
      user(result("f", { output: "B" }, "b"), result("f", { output: "A" }, "a")),
    ),
  ).toMatchObject([
    { role: "assistant" },
    { role: "tool", tool_call_id: "b", content: "B" },
    { role: "tool", tool_call_id: "a", content: "A" },
  ]);
});

test("calls without ids are matched by name and order, step by step", () => {
  expect(
    messages(
      user({ text: "?" }),
      model(call("f"), call("g")),
      model(call("f")),
      user(result("g", { output: "2" }, "unknown"), result("f", { output: "1" })),
      user(result("f", { output: "3" })),
      model(call("f")),
      user(result("f", { output: "4" })),
    ),
  ).toEqual([
    { role: "user", content: "?" },
    {
      role: "assistant",
      content: null,
      tool_calls: ["call_1_0 f", "call_1_1 g", "call_2_0 f"].map((each) => ({
        id: each.split(" ")[0],
        type: "function",
        function: { name: each.split(" ")[1], arguments: "{}" },
      })),
    },
    { role: "tool", tool_call_id: "call_1_1", content: "2" },
    { role: "tool", tool_call_id: "call_1_0", content: "1" },
    { role: "tool", tool_call_id: "call_2_0", content: "3" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_5_0", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_5_0", content: "4" },
  ]);
  expect(refusedParam({ contents: [user(result("f", {}))] })).toBe("contents[0].parts[0].functionResponse.name");
  expect(refusedParam({ contents: [model(call("f")), user(result("f", {}), result("f", {}))] })).toBe(
    "contents[1].parts[1].functionResponse.name",
  );
});

test("media of a result move to the user message after it", () => {
  const image = { inlineData: { mimeType: "image/png", data: "QUJD" } };
  expect(
    messages(
      model(call("look", {}, "a")),
      user(
        { functionResponse: { id: "a", name: "look", response: { error: "dark" }, parts: [image] } },
        { text: "So?" },
      ),
    ),
  ).toEqual([
    { role: "assistant", content: null, tool_calls: [expect.objectContaining({ id: "a" })] },
    { role: "tool", tool_call_id: "a", content: '{"error":"dark"}' },
    {
      role: "user",
      content: [
        { type: "text", text: "Of the result of a:" },
        { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } },
        { type: "text", text: "So?" },
      ],
    },
  ]);
});

test("sampling, limits, log probabilities and tiers; other hints are ignored by name", () => {
  expect(
    toChat(
      request({
        generationConfig: {
          maxOutputTokens: 9,
          candidateCount: 2,
          stopSequences: ["END"],
          temperature: 0.5,
          topP: 0.9,
          topK: 40,
          seed: 3,
          presencePenalty: 1,
          frequencyPenalty: -1,
          responseLogprobs: true,
          logprobs: 4,
          mediaResolution: "MEDIA_RESOLUTION_LOW",
          thinkingConfig: { thinkingBudget: -1, includeThoughts: true },
        },
        safetySettings: [{ category: "x" }],
        serviceTier: "flex",
        store: true,
        labels: null,
      }),
    ),
  ).toEqual({
    request: {
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 9,
      n: 2,
      stop: ["END"],
      temperature: 0.5,
      top_p: 0.9,
      seed: 3,
      presence_penalty: 1,
      frequency_penalty: -1,
      logprobs: true,
      top_logprobs: 4,
      service_tier: "flex",
    },
    ignored: ["safetySettings", "store", "generationConfig.topK", "generationConfig.mediaResolution"],
  });
  expect(toChat(request({ store: false, serviceTier: "STANDARD", generationConfig: { candidateCount: 1 } }))).toEqual({
    request: { messages: [{ role: "user", content: "Hello" }] },
    ignored: [],
  });
});

test("thinking as effort", () => {
  const effort = (thinkingConfig: Json) => configured({ thinkingConfig }).request["reasoning_effort"];
  expect(effort({ thinkingLevel: "LOW" })).toBe("low");
  expect(effort({ thinking_level: "minimal" })).toBe("minimal");
  expect(effort({ thinkingLevel: "THINKING_LEVEL_UNSPECIFIED" })).toBeUndefined();
  expect([0, 1024, 8192, 24_576, -1].map((thinkingBudget) => effort({ thinkingBudget }))).toEqual([
    "none",
    "low",
    "medium",
    "high",
    undefined,
  ]);
});

test("contents without content are refused", () => {
  expect(refusedParam({ contents: [user(), model({ text: "Hm.", thought: true })] })).toBe("contents");
});

test("tools with either kind of schema, and the function choice", () => {
  const tools = [
    {
      functionDeclarations: [
        {
          name: "one",
          description: "First.",
          parameters: {
            type: "OBJECT",
            properties: {
              type: { type: "STRING", nullable: true, enum: ["a"], format: "enum" },
              any_of: { type: "ARRAY", min_items: "1", items: { type: "INTEGER" } },
              either: { nullable: true, anyOf: [{ type: "NUMBER" }, { type: "BOOLEAN" }] },
            },
            required: ["type"],
            propertyOrdering: ["type"],
          },
          behavior: "BLOCKING",
        },
        { name: "two", parametersJsonSchema: { type: "object", additionalProperties: false } },
      ],
    },
    { functionDeclarations: [{ name: "three" }] },
  ];
  const { request: chat, ignored } = toChat(request({ tools }));
  expect(chat["tools"]).toEqual([
    {
      type: "function",
      function: {
        name: "one",
        description: "First.",
        parameters: {
          type: "object",
          properties: {
            type: { type: ["string", "null"], enum: ["a", null] },
            any_of: { type: "array", minItems: 1, items: { type: "integer" } },
            either: { anyOf: [{ type: "number" }, { type: "boolean" }, { type: "null" }] },
          },
          required: ["type"],
        },
      },
    },
    { type: "function", function: { name: "two", parameters: { type: "object", additionalProperties: false } } },
    { type: "function", function: { name: "three" } },
  ]);
  expect(chat["tool_choice"]).toBeUndefined();
  expect(ignored).toEqual(["behavior"]);
  const chosen = (functionCallingConfig: Json) => {
    const { tools: converted, tool_choice } = toChat(request({ tools, toolConfig: { functionCallingConfig } })).request;
    const names = (converted as { function: Json }[]).map((tool) => [tool.function["name"], tool.function["strict"]]);
    return [tool_choice, names.map(([name, strict]) => `${String(name)}${strict ? "!" : ""}`).join(" ")];
  };
  expect(chosen({ mode: "AUTO" })).toEqual(["auto", "one two three"]);
  expect(chosen({ mode: "NONE" })).toEqual(["none", "one two three"]);
  expect(chosen({ mode: "any" })).toEqual(["required", "one two three"]);
  expect(chosen({ mode: "ANY", allowed_function_names: ["two"] })).toEqual([
    { type: "function", function: { name: "two" } },
    "one two three",
  ]);
  expect(chosen({ mode: "ANY", allowedFunctionNames: ["two", "three"] })).toEqual(["required", "two three"]);
  expect(chosen({ mode: "VALIDATED", allowedFunctionNames: ["two"] })).toEqual(["auto", "two!"]);
  expect(refusedParam(request({ toolConfig: { functionCallingConfig: { mode: "ANY" } } }))).toBe(
    "toolConfig.functionCallingConfig.mode",
  );
});

test("JSON answers with their schema, strict where possible", () => {
  const format = (config: Json) => configured(config).request["response_format"];
  const strict = (schema: Json) => ({ type: "json_schema", json_schema: { name: "answer", schema, strict: true } });
  const loose = (schema: Json) => ({ type: "json_schema", json_schema: { name: "answer", schema } });
  const responseMimeType = "application/json";
  expect(format({ responseMimeType })).toEqual({ type: "json_object" });
  expect(format({ responseMimeType: "text/plain" })).toBeUndefined();
  const whole = { type: "OBJECT", properties: { a: { type: "STRING" } }, required: ["a"] };
  const closed = {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  };
  expect(format({ responseMimeType, responseSchema: whole })).toEqual(strict(closed));
  const { additionalProperties: _, ...open } = closed;
  expect(format({ responseMimeType, responseJsonSchema: open })).toEqual(strict(closed));
  const optional = { ...open, required: [] };
  expect(format({ responseJsonSchema: optional })).toEqual(loose(optional));
  const nested = [
    { type: "array", items: optional },
    { type: "object", properties: { a: optional }, required: ["a"] },
    { ...open, additionalProperties: true },
    { type: "object" },
  ];
  for (const schema of nested) expect(format({ responseJsonSchema: schema })).toEqual(loose(schema));
  // Gemini CLI writes its types in capitals.
  const inCapitals = { type: "OBJECT", properties: { a: { type: ["INTEGER", "NULL"] } }, required: ["a"] };
  const inLetters = { type: "object", properties: { a: { type: ["integer", "null"] } }, required: ["a"] };
  expect(format({ responseJsonSchema: inCapitals })).toEqual(format({ responseJsonSchema: inLetters }));
  expect(format({ responseJsonSchema: { type: "array", items: open } })).toEqual(
    strict({ type: "array", items: closed }),
  );
  expect(format({ responseFormat: [{ text: { mime_type: responseMimeType, schema: closed } }] })).toEqual(
    strict(closed),
  );
  expect(refusedParam(request({ generationConfig: { responseMimeType: "text/x.enum" } }))).toBe(
    "generationConfig.responseMimeType",
  );
  expect(refusedParam(request({ generationConfig: { responseModalities: ["AUDIO"] } }))).toBe(
    "generationConfig.responseModalities",
  );
});

test("a deeply nested schema is refused", () => {
  let schema: Json = { type: "STRING" };
  for (let i = 0; i < 1000; i++) schema = { type: "ARRAY", items: schema };
  expect(refusedParam(request({ generationConfig: { responseSchema: schema } }))).toBe(
    "generationConfig.responseSchema",
  );
  expect(refusedParam(request({ generationConfig: { responseJsonSchema: schema } }))).toBe(
    "generationConfig.responseJsonSchema",
  );
  const functionDeclarations = [{ name: "f", parameters: schema }];
  expect(refusedParam(request({ tools: [{ functionDeclarations }] }))).toBe(
    "tools[0].functionDeclarations[0].parameters",
  );
});
