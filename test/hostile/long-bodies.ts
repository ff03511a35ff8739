import { anthropicModel, geminiModel, localModel, many, mebi, openaiModel } from "./input.ts";

const user = [{ role: "user", content: "Hi" }];
const chat = "/v1/chat/completions";
const gemini = (model: string, verb = "generateContent") => `/v1beta/models/${model}:${verb}`;
const inlineImage = { type: "image_url", image_url: { url: `data:image/png;base64,${"QUJD".repeat(5)}` } };

/** Bodies whose own fields are many or long. */
export const longBodies: readonly (readonly [name: string, path: string, make: () => object, isShort?: true])[] = [
  [
    "16,000 messages: chat to Gemini",
    chat,
    () => ({
      model: geminiModel,
      messages: many(16_000, (at) => ({ role: at % 2 ? "assistant" : "user", content: "Hi" })),
    }),
    true,
  ],
  [
    "16,000 messages: messages to OpenAI",
    "/v1/messages",
    () => ({
      model: openaiModel,
      max_tokens: 9,
      messages: many(16_000, (at) => ({ role: at % 2 ? "assistant" : "user", content: "Hi" })),
    }),
  ],
  [
    "16,000 items: responses to Anthropic",
    "/v1/responses",
    () => ({
      model: anthropicModel,
      input: many(16_000, (at) => ({ role: at % 2 ? "assistant" : "user", content: "Hi" })),
    }),
  ],
  [
    "12,000 contents: Gemini to OpenAI",
    gemini(openaiModel),
    () => ({ contents: many(12_000, (at) => ({ role: at % 2 ? "model" : "user", parts: [{ text: "Hi" }] })) }),
  ],
  [
    "15,000 parts: chat to Anthropic",
    chat,
    () => ({
      model: anthropicModel,
      messages: [{ role: "user", content: many(15_000, () => ({ type: "text", text: "Hi" })) }],
    }),
    true,
  ],
  [
    "12,000 images: chat to OpenAI",
    chat,
    () => ({ model: openaiModel, messages: [{ role: "user", content: many(12_000, () => inlineImage) }] }),
  ],
  [
    "20,000 parts: Gemini to OpenAI",
    gemini(openaiModel),
    () => ({ contents: [{ role: "user", parts: many(20_000, () => ({ text: "Hi" })) }] }),
  ],
  [
    "9,000 tools: chat to Anthropic",
    chat,
    () => ({
      model: anthropicModel,
      messages: user,
      tools: many(9_000, (at) => ({ type: "function", function: { name: `a${at}` } })),
    }),
    true,
  ],
  [
    "9,000 tools: chat, local",
    chat,
    () => ({
      model: localModel,
      messages: user,
      tools: many(9_000, (at) => ({ type: "function", function: { name: `a${at}`, parameters: {} } })),
    }),
  ],
  [
    "9,000 tools: responses to Gemini",
    "/v1/responses",
    () => ({
      model: geminiModel,
      input: "Hi",
      tools: many(9_000, (at) => ({ type: "function", name: `a${at}`, parameters: {} })),
    }),
  ],
  [
    "7,000 tool calls: chat to Anthropic",
    chat,
    () => ({
      model: anthropicModel,
      messages: [
        ...user,
        {
          role: "assistant",
          tool_calls: many(7_000, (at) => ({
            id: `c${at}`,
            type: "function",
            function: { name: "a", arguments: "{}" },
          })),
        },
        ...many(3_000, (at) => ({ role: "tool", tool_call_id: `c${at}`, content: "1" })),
      ],
    }),
  ],
  [
    "arguments of 20 MB: chat to Anthropic",
    chat,
    () => ({
      model: anthropicModel,
      messages: [
        ...user,
        {
          role: "assistant",
          tool_calls: [
            {
              id: "c",
              type: "function",
              function: { name: "a", arguments: JSON.stringify(many(3_000_000, () => ({}))) },
            },
          ],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
      ],
    }),
    true,
  ],
  [
    "arguments of a million names: chat to Gemini",
    chat,
    () => ({
      model: geminiModel,
      messages: [
        ...user,
        {
          role: "assistant",
          tool_calls: [
            {
              id: "c",
              type: "function",
              function: {
                name: "a",
                arguments: JSON.stringify(Object.fromEntries(many(1_000_000, (at) => [`k${at}`, 1]))),
              },
            },
          ],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
      ],
    }),
  ],
  [
    "arguments of 20 MB: responses to Anthropic",
    "/v1/responses",
    () => ({
      model: anthropicModel,
      input: [
        { role: "user", content: "Hi" },
        { type: "function_call", call_id: "c", name: "a", arguments: JSON.stringify(many(3_000_000, () => ({}))) },
        { type: "function_call_output", call_id: "c", output: "1" },
      ],
    }),
  ],
  [
    "tool results of 20 MB: chat to Gemini",
    chat,
    () => ({
      model: geminiModel,
      messages: [
        ...user,
        { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "a", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "c", content: JSON.stringify(many(3_000_000, () => ({}))) },
      ],
    }),
  ],
  [
    "256 texts of 80 KB: embeddings, local",
    "/v1/embeddings",
    () => ({ model: "local/embeddings", input: many(256, () => "ab ".repeat(27_000)) }),
  ],
  [
    "one text of 20 MB: embeddings, local",
    "/v1/embeddings",
    () => ({ model: "local/embeddings", input: "ab ".repeat(7 * mebi) }),
  ],
  [
    "256 texts of one letter: embeddings",
    "/v1/embeddings",
    () => ({ model: "openai/text-embedding-3-small", input: many(256, () => "a".repeat(80_000)) }),
  ],
  [
    "2,000,000 tokens: embeddings, local",
    "/v1/embeddings",
    () => ({ model: "local/embeddings", input: many(256, () => many(8_000, (at) => at)) }),
    true,
  ],
  [
    "1,000 documents of 20 KB: rerank, local",
    "/v1/rerank",
    () => ({ model: "local/rerank", query: "ab ".repeat(4_000), documents: many(1_000, () => "ab cd ".repeat(3_400)) }),
    true,
  ],
  [
    "a document of 20 MB: rerank, local",
    "/v1/rerank",
    () => ({ model: "local/rerank", query: "ab", documents: ["漢".repeat(6 * mebi)] }),
  ],
  [
    "1 MB of accents: moderations, local",
    "/v1/moderations",
    () => ({ model: "local/moderation", input: `a${"\u0301".repeat(480_000)}` }),
  ],
  [
    "256 texts: moderations, local",
    "/v1/moderations",
    () => ({ model: "local/moderation", input: many(256, () => "1a".repeat(1_900)) }),
  ],
  [
    "a prompt of 20 MB: images, local",
    "/v1/images/generations",
    () => ({ model: "local/image", prompt: "ab ".repeat(7 * mebi) }),
  ],
  [
    "a text of 20 MB: speech, local",
    "/v1/media/generations",
    () => ({ model: "local/speech", input: { text: "ab ".repeat(7 * mebi) } }),
  ],
  [
    "4 MB of one word: tokens counted",
    "/v1/messages/count_tokens",
    () => ({ model: openaiModel, messages: [{ role: "user", content: "a".repeat(4 * mebi) }] }),
    true,
  ],
  [
    "20 MB of words: tokens counted",
    "/v1/responses/input_tokens",
    () => ({ model: anthropicModel, input: "ab ".repeat(7 * mebi) }),
  ],
  [
    "131,000 tokens: chat, local",
    chat,
    () => ({ model: localModel, messages: [{ role: "user", content: "a ".repeat(260_000) }] }),
  ],
  [
    "100,000 tokens answered: chat, local",
    chat,
    () => ({ model: localModel, messages: [{ role: "user", content: "tokens:100000" }] }),
  ],
  [
    "100,000 tokens answered: responses, local, as a stream",
    "/v1/responses",
    () => ({ model: localModel, stream: true, input: "tokens:100000" }),
    true,
  ],
  [
    "stop texts: chat, local",
    chat,
    () => ({
      model: localModel,
      messages: [{ role: "user", content: "tokens:100000" }],
      stop: many(40_000, (at) => `no${at}`),
    }),
  ],
  ["models, 40,000", chat, () => ({ models: many(40_000, (at) => `a${at}`), messages: user })],
  ["a model's name of 20 MB", chat, () => ({ model: "a".repeat(20 * mebi), messages: user })],
  [
    "upstreams preferred, 40,000",
    chat,
    () => ({ model: openaiModel, messages: user, provider: { order: many(40_000, (at) => `a${at}`) } }),
  ],
];
