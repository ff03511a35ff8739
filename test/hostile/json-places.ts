import { anthropicModel, geminiModel, localModel, openaiModel } from "./input.ts";

/** A place in a body for the caller's JSON. */
export interface Place {
  readonly name: string;
  readonly path: string;
  /** The body, with `"X"` for the JSON. */
  readonly body: object;
  /** True if the JSON must be an object there. */
  readonly isObject?: boolean;
}

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
  { name: "chat, a field", path: chat, body: { model: openaiModel, messages: user, x: "X" } },
  {
    name: "chat to Anthropic, a tool's schema",
    path: chat,
    body: {
      model: anthropicModel,
      messages: user,
      tools: [{ type: "function", function: { name: "a", parameters: { type: "object", properties: "X" } } }],
    },
    isObject: true,
  },
  {
    name: "messages to OpenAI, a tool's input",
    path: "/v1/messages",
    body: { model: openaiModel, max_tokens: 100, messages: asked("a") },
    isObject: true,
  },
  {
    name: "responses to Anthropic, a tool's schema",
    path: "/v1/responses",
    body: { model: anthropicModel, input: "Hi", tools: [{ type: "function", name: "a", parameters: "X" }] },
    isObject: true,
  },
  {
    name: "Gemini to OpenAI, a function's arguments",
    path: gemini(openaiModel),
    body: {
      contents: [
        ...userContents,
        { role: "model", parts: [{ functionCall: { name: "a", args: "X" } }] },
        ...userContents,
      ],
    },
    isObject: true,
  },
  {
    name: "local, a tool's schema",
    path: chat,
    body: {
      model: localModel,
      messages: user,
      tools: [{ type: "function", function: { name: "a", parameters: "X" } }],
      tool_choice: "required",
    },
    isObject: true,
  },
];

/** The places that receive only shapes of the short form. */
export const furtherPlaces: readonly Place[] = [
  {
    name: "messages to Gemini, a schema",
    path: "/v1/messages",
    body: { model: geminiModel, max_tokens: 9, messages: user, tools: [{ name: "a", input_schema: "X" }] },
    isObject: true,
  },
  {
    name: "messages, native, a tool's input",
    path: "/v1/messages",
    body: { model: anthropicModel, max_tokens: 9, messages: asked("a") },
    isObject: true,
  },
  {
    name: "Gemini, native, a response schema",
    path: gemini(geminiModel),
    body: {
      contents: userContents,
      generationConfig: { responseMimeType: "application/json", responseJsonSchema: "X" },
    },
    isObject: true,
  },
  {
    name: "Gemini, tokens counted",
    path: gemini(geminiModel, "countTokens"),
    body: { contents: [{ role: "model", parts: [{ functionCall: { name: "a", args: "X" } }] }] },
    isObject: true,
  },
  {
    name: "messages, tokens counted",
    path: "/v1/messages/count_tokens",
    body: { model: openaiModel, messages: asked("a") },
    isObject: true,
  },
  {
    name: "responses, native, an item",
    path: "/v1/responses",
    body: {
      model: openaiModel,
      input: [
        { role: "user", content: "Hi" },
        { type: "function_call", call_id: "1", name: "a", arguments: "{}", x: "X" },
        { type: "function_call_output", call_id: "1", output: "1" },
      ],
    },
  },
  { name: "responses, stored", path: "/v1/responses", body: { model: openaiModel, input: "Hi", store: true, x: "X" } },
  { name: "embeddings, a field", path: "/v1/embeddings", body: { model: "local/embeddings", input: "Hi", x: "X" } },
  {
    name: "rerank, a document",
    path: "/v1/rerank",
    body: { model: "local/rerank", query: "Hi", documents: [{ text: "Hi", x: "X" }] },
  },
  { name: "images, a field", path: "/v1/images/generations", body: { model: "local/image", prompt: "Hi", x: "X" } },
  {
    name: "media, an input",
    path: "/v1/media/generations",
    body: { model: "local/speech", input: { text: "Hi", x: "X" } },
  },
  { name: "moderations, a field", path: "/v1/moderations", body: { model: "local/moderation", input: "Hi", x: "X" } },
  { name: "chat, idempotent", path: chat, body: { model: openaiModel, messages: user, metadata: "X" } },
];
