import { anthropicModel, geminiModel, localModel, openaiModel } from "./input.ts";

/**
 * A place in a body for the caller's JSON: the body has `"X"` for it. `isObject` is true if the JSON must be an object
 * there.
 */
export type Place = readonly [name: string, path: string, body: object, isObject?: true];

const user = [{ role: "user", content: "Hi" }];
const userContents = [{ role: "user", parts: [{ text: "Hi" }] }];
const chat = "/v1/chat/completions";
const gemini = (model: string, verb = "generateContent") => `/v1beta/models/${model}:${verb}`;
const asked = (name: string) => [
  ...user,
  { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name, input: "X" }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "1" }] },
];

/** The places that receive every shape. */
export const places: readonly Place[] = [
  ["chat, a field", chat, { model: openaiModel, messages: user, x: "X" }],
  [
    "chat to Anthropic, a tool's schema",
    chat,
    {
      model: anthropicModel,
      messages: user,
      tools: [{ type: "function", function: { name: "a", parameters: { type: "object", properties: "X" } } }],
    },
    true,
  ],
  [
    "messages to OpenAI, a tool's input",
    "/v1/messages",
    { model: openaiModel, max_tokens: 100, messages: asked("a") },
    true,
  ],
  [
    "responses to Anthropic, a tool's schema",
    "/v1/responses",
    { model: anthropicModel, input: "Hi", tools: [{ type: "function", name: "a", parameters: "X" }] },
    true,
  ],
  [
    "Gemini to OpenAI, a function's arguments",
    gemini(openaiModel),
    {
      contents: [
        ...userContents,
        { role: "model", parts: [{ functionCall: { name: "a", args: "X" } }] },
        ...userContents,
      ],
    },
    true,
  ],
  [
    "local, a tool's schema",
    chat,
    {
      model: localModel,
      messages: user,
      tools: [{ type: "function", function: { name: "a", parameters: "X" } }],
      tool_choice: "required",
    },
    true,
  ],
];

/** The places that receive only shapes of the short form. */
export const furtherPlaces: readonly Place[] = [
  [
    "messages to Gemini, a schema",
    "/v1/messages",
    { model: geminiModel, max_tokens: 9, messages: user, tools: [{ name: "a", input_schema: "X" }] },
    true,
  ],
  [
    "messages, native, a tool's input",
    "/v1/messages",
    { model: anthropicModel, max_tokens: 9, messages: asked("a") },
    true,
  ],
  [
    "Gemini, native, a response schema",
    gemini(geminiModel),
    {
      contents: userContents,
      generationConfig: { responseMimeType: "application/json", responseJsonSchema: "X" },
    },
    true,
  ],
  [
    "Gemini, tokens counted",
    gemini(geminiModel, "countTokens"),
    { contents: [{ role: "model", parts: [{ functionCall: { name: "a", args: "X" } }] }] },
    true,
  ],
  ["messages, tokens counted", "/v1/messages/count_tokens", { model: openaiModel, messages: asked("a") }, true],
  [
    "responses, native, an item",
    "/v1/responses",
    {
      model: openaiModel,
      input: [
        { role: "user", content: "Hi" },
        { type: "function_call", call_id: "1", name: "a", arguments: "{}", x: "X" },
        { type: "function_call_output", call_id: "1", output: "1" },
      ],
    },
  ],
  ["responses, stored", "/v1/responses", { model: openaiModel, input: "Hi", store: true, x: "X" }],
  ["embeddings, a field", "/v1/embeddings", { model: "local/embeddings", input: "Hi", x: "X" }],
  ["rerank, a document", "/v1/rerank", { model: "local/rerank", query: "Hi", documents: [{ text: "Hi", x: "X" }] }],
  ["images, a field", "/v1/images/generations", { model: "local/image", prompt: "Hi", x: "X" }],
  ["media, an input", "/v1/media/generations", { model: "local/speech", input: { text: "Hi", x: "X" } }],
  ["moderations, a field", "/v1/moderations", { model: "local/moderation", input: "Hi", x: "X" }],
  ["chat, idempotent", chat, { model: openaiModel, messages: user, metadata: "X" }],
];
