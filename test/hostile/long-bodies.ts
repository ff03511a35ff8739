import { anthropicModel, geminiModel, localModel, many, mebi, openaiModel } from "./input.ts";

const user = [{ role: "user", content: "Hi" }];
const chat = "/v1/chat/completions";
const gemini = (model: string, verb = "generateContent") => `/v1beta/models/${model}:${verb}`;
const inlineImage = { type: "image_url", image_url: { url: `data:image/png;base64,${"QUJD".repeat(5)}` } };

/** Ids that differ only at their end, so that comparing two takes as long as possible. */
const alikeIds = { count: 4_400, of: (at: number) => `${"a".repeat(1_900)}${String(at).padStart(5, "0")}` };
const alike = <T>(itemOf: (id: string, at: number) => T): T[] =>
  many(alikeIds.count, (at) => itemOf(alikeIds.of(at), at));

/** Chat whose results come in the reverse order of its tool calls. */
const alikeCalls = (model: string) => ({
  model,
  messages: [
    ...user,
    {
      role: "assistant",
      tool_calls: alike((id) => ({ id, type: "function", function: { name: "a", arguments: "{}" } })),
    },
    ...alike((tool_call_id) => ({ role: "tool", tool_call_id, content: "1" })).toReversed(),
  ],
});

/** The state of reasoning in a converted response: JSON in base64 in one text. */
const reasoningState = () => {
  const details = many(60_000, () => ({}));
  return Buffer.from("reasoning-state" + JSON.stringify({ reasoning_details: details })).toString("base64");
};
const longLink = `https://${"a".repeat(20 * mebi)}`;
const ofRoles = <T>(count: number, itemOf: (role: "user" | "assistant") => T): T[] =>
  many(count, (at) => itemOf(at % 2 ? "assistant" : "user"));

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
    "arguments of 90,000 texts: chat to Anthropic",
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
              function: { name: "a", arguments: JSON.stringify({ a: many(90_000, () => "ab ".repeat(70)) }) },
            },
          ],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
      ],
    }),
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
  ["alike ids of tool calls: chat, local", chat, () => alikeCalls(localModel)],
  ["alike ids of tool calls: chat to OpenAI", chat, () => alikeCalls(openaiModel)],
  ["alike ids of tool calls: chat to Anthropic", chat, () => alikeCalls(anthropicModel)],
  ["alike ids of tool calls: chat to Gemini", chat, () => alikeCalls(geminiModel)],
  [
    "alike ids of tool calls: messages to OpenAI",
    "/v1/messages",
    () => ({
      model: openaiModel,
      max_tokens: 9,
      messages: [
        ...user,
        { role: "assistant", content: alike((id) => ({ type: "tool_use", id, name: "a", input: {} })) },
        {
          role: "user",
          content: alike((tool_use_id) => ({ type: "tool_result", tool_use_id, content: "1" })).toReversed(),
        },
      ],
    }),
  ],
  [
    "alike ids of tool calls: messages to Gemini",
    "/v1/messages",
    () => ({
      model: geminiModel,
      max_tokens: 9,
      messages: [
        ...user,
        { role: "assistant", content: alike((id) => ({ type: "tool_use", id, name: "a", input: {} })) },
        {
          role: "user",
          content: alike((tool_use_id) => ({ type: "tool_result", tool_use_id, content: "1" })).toReversed(),
        },
      ],
    }),
  ],
  [
    "alike ids of tool calls: responses to Anthropic",
    "/v1/responses",
    () => ({
      model: anthropicModel,
      input: [
        ...user,
        ...alike((call_id) => ({ type: "function_call", call_id, name: "a", arguments: "{}" })),
        ...alike((call_id) => ({ type: "function_call_output", call_id, output: "1" })).toReversed(),
      ],
    }),
  ],
  [
    "alike ids of tool calls: responses, native",
    "/v1/responses",
    () => ({
      model: openaiModel,
      input: [
        ...user,
        ...alike((call_id) => ({ type: "function_call", call_id, name: "a", arguments: "{}" })),
        ...alike((call_id) => ({ type: "function_call_output", call_id, output: "1" })).toReversed(),
      ],
    }),
  ],
  [
    "alike ids of function calls: Gemini to OpenAI",
    gemini(openaiModel),
    () => ({
      contents: [
        { role: "model", parts: alike((id) => ({ functionCall: { id, name: "a", args: {} } })) },
        { role: "user", parts: alike((id) => ({ functionResponse: { id, name: "a", response: {} } })).toReversed() },
      ],
    }),
  ],
  [
    "alike names of function calls: Gemini to OpenAI",
    gemini(openaiModel),
    () => ({
      contents: [
        { role: "model", parts: alike((name) => ({ functionCall: { name, args: {} } })) },
        { role: "user", parts: alike((name) => ({ functionResponse: { name, response: {} } })).toReversed() },
      ],
    }),
  ],
  [
    "9,000 tools that the prompt nearly names: chat, local",
    chat,
    () => ({
      model: localModel,
      n: 8,
      messages: [{ role: "user", content: "a".repeat(16_000) }],
      tools: many(9_000, (at) => ({
        type: "function",
        function: { name: `b${"a".repeat(57)}${String(at).padStart(5, "a")}` },
      })),
    }),
  ],
  [
    "9,000 tools that the prompt names: chat, local",
    chat,
    () => ({
      model: localModel,
      n: 8,
      messages: [{ role: "user", content: "a ".repeat(8_000) }],
      tools: many(9_000, () => ({ type: "function", function: { name: "a", parameters: {} } })),
    }),
  ],
  [
    "reasoning of 80 states: messages to OpenAI",
    "/v1/messages",
    () => {
      const signature = reasoningState();
      return {
        model: openaiModel,
        max_tokens: 9,
        messages: ofRoles(160, (role) => ({
          role,
          content:
            role === "user"
              ? "Hi"
              : [
                  { type: "thinking", thinking: "a", signature },
                  { type: "text", text: "a" },
                ],
        })),
      };
    },
  ],
  [
    "reasoning of 80 states: messages, native",
    "/v1/messages",
    () => {
      const signature = reasoningState();
      return {
        model: anthropicModel,
        max_tokens: 9,
        messages: ofRoles(160, (role) => ({
          role,
          content:
            role === "user"
              ? "Hi"
              : [
                  { type: "thinking", thinking: "a", signature },
                  { type: "text", text: "a" },
                ],
        })),
      };
    },
  ],
  [
    "reasoning of 80 states: Gemini to OpenAI",
    gemini(openaiModel),
    () => {
      const thoughtSignature = reasoningState();
      return {
        contents: ofRoles(160, (role) => ({
          role: role === "user" ? "user" : "model",
          parts: [{ text: "Hi", ...(role === "user" ? {} : { thoughtSignature }) }],
        })),
      };
    },
  ],
  [
    "reasoning of 80 states: responses to Anthropic",
    "/v1/responses",
    () => {
      const encrypted_content = reasoningState();
      return {
        model: anthropicModel,
        input: many(80, () => [
          { role: "user", content: "Hi" },
          { type: "reasoning", summary: [], encrypted_content },
          { role: "assistant", content: "a" },
        ]).flat(),
      };
    },
  ],
  [
    "a link of 20 MB: Gemini, native",
    gemini(geminiModel),
    () => ({ contents: [{ role: "user", parts: [{ fileData: { mimeType: "image/png", fileUri: longLink } }] }] }),
  ],
  [
    "a link of 20 MB: chat to OpenAI",
    chat,
    () => ({
      model: openaiModel,
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: longLink } }] }],
    }),
  ],
  [
    "a link of 20 MB of slashes and dots: chat to Gemini",
    chat,
    () => ({
      model: geminiModel,
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: `https://a/${"a./".repeat(7 * mebi)}` } }] },
      ],
    }),
  ],
  [
    "a link of 20 MB: messages, native",
    "/v1/messages",
    () => ({
      model: anthropicModel,
      max_tokens: 9,
      messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url: longLink } }] }],
    }),
  ],
  [
    "a link of 20 MB: responses, native",
    "/v1/responses",
    () => ({ model: openaiModel, input: [{ role: "user", content: [{ type: "input_image", image_url: longLink }] }] }),
  ],
  ["a link of 20 MB: image edits", "/v1/images/edits", () => ({ model: "local/image", prompt: "Hi", image: longLink })],
  [
    "16 images of 1 MB inline: image edits, local",
    "/v1/images/edits",
    () => ({
      model: "local/image",
      prompt: "Hi",
      images: many(16, () => `data:image/png;base64,iVBORw0KGgo${"A".repeat(1_400_001)}`),
    }),
  ],
  [
    "1,900 fields: chat to Anthropic",
    chat,
    () => ({
      model: anthropicModel,
      messages: user,
      ...Object.fromEntries(many(1_900, (at) => [`k${at}`, "a".repeat(10_000)])),
    }),
  ],
  [
    "40 fields of 1,000 messages: chat to Gemini",
    chat,
    () => ({
      model: geminiModel,
      messages: many(1_000, () => ({
        role: "user",
        content: "Hi",
        ...Object.fromEntries(many(40, (at) => [`k${at}`, "a".repeat(400)])),
      })),
    }),
  ],
  [
    "12,000 parts, all faulty: chat",
    chat,
    () => ({
      model: openaiModel,
      messages: [{ role: "user", content: many(12_000, () => ({ type: "text", text: 1 })) }],
    }),
  ],
  [
    "12,000 messages, all faulty: messages",
    "/v1/messages",
    () => ({ model: openaiModel, max_tokens: 9, messages: many(12_000, () => ({ role: "user", content: [1] })) }),
  ],
  [
    "12,000 items, all faulty: responses",
    "/v1/responses",
    () => ({ model: openaiModel, input: many(12_000, () => ({ type: "message", role: 1, content: [1] })) }),
  ],
  [
    "12,000 items, all faulty: Gemini",
    gemini(geminiModel),
    () => ({ contents: many(12_000, () => ({ role: 1, parts: [1] })) }),
  ],
  [
    "12,000 parts in snake case: Gemini",
    gemini(openaiModel),
    () => ({
      contents: [{ role: "user", parts: many(12_000, () => ({ text: "a", video_metadata: {}, speech_metadata: {} })) }],
    }),
  ],
  [
    "three long names in snake case: Gemini",
    gemini(openaiModel),
    () => ({
      contents: [
        {
          role: "user",
          parts: [{ text: "a", ...Object.fromEntries(many(3, (at) => [`${"_a".repeat(500_000)}${at}`, ""])) }],
        },
      ],
    }),
  ],
  [
    "40,000 allowed functions: Gemini to OpenAI",
    gemini(openaiModel),
    () => ({
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      tools: [
        { functionDeclarations: many(6_000, (at) => ({ name: `${"a".repeat(50)}${String(at).padStart(5, "0")}` })) },
      ],
      toolConfig: {
        functionCallingConfig: {
          mode: "ANY",
          allowedFunctionNames: many(30_000, (at) => `${"a".repeat(50)}${String(at).padStart(5, "1")}`),
        },
      },
    }),
  ],
  [
    "8,000 safety settings: Gemini, native",
    gemini(geminiModel),
    () => ({
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      safetySettings: many(12_000, () => ({ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" })),
    }),
  ],
  [
    "allowed tools: responses to Anthropic",
    "/v1/responses",
    () => ({
      model: anthropicModel,
      input: "Hi",
      tools: many(5_000, (at) => ({
        type: "function",
        name: `${"a".repeat(50)}${String(at).padStart(5, "0")}`,
        parameters: {},
      })),
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: many(7_000, (at) => ({ type: "function", name: `${"a".repeat(50)}${String(at).padStart(5, "1")}` })),
      },
    }),
  ],
  [
    "allowed tools: chat to Anthropic",
    chat,
    () => ({
      model: anthropicModel,
      messages: user,
      tools: many(5_000, (at) => ({
        type: "function",
        function: { name: `${"a".repeat(50)}${String(at).padStart(5, "0")}` },
      })),
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: {
          mode: "auto",
          tools: many(5_000, (at) => ({
            type: "function",
            function: { name: `${"a".repeat(50)}${String(at).padStart(5, "1")}` },
          })),
        },
      },
    }),
  ],
  [
    "20,000 cache breakpoints: messages, native",
    "/v1/messages",
    () => ({
      model: anthropicModel,
      max_tokens: 9,
      messages: [
        {
          role: "user",
          content: many(9_000, () => ({ type: "text", text: "a", cache_control: { type: "ephemeral" } })),
        },
      ],
    }),
  ],
  [
    "9,000 cache breakpoints: messages to OpenAI",
    "/v1/messages",
    () => ({
      model: openaiModel,
      max_tokens: 9,
      system: many(9_000, () => ({ type: "text", text: "a", cache_control: { type: "ephemeral" } })),
      messages: user,
    }),
  ],
  [
    "includes, 45,000",
    "/v1/responses",
    () => ({ model: openaiModel, input: "Hi", include: many(45_000, (at) => `a${at}`) }),
  ],
  [
    "9,000 reasoning items: responses, native",
    "/v1/responses",
    () => ({
      model: openaiModel,
      input: [
        ...user,
        ...many(8_000, (at) => ({ type: "reasoning", id: `rs_${at}`, summary: [], encrypted_content: "a" })),
      ],
    }),
  ],
  [
    "logit_bias, 19,000",
    chat,
    () => ({
      model: openaiModel,
      messages: user,
      logit_bias: Object.fromEntries(many(19_000, (at) => [String(at), 1])),
    }),
  ],
  [
    "128 answers of 100,000 tokens: chat, local",
    chat,
    () => ({ model: localModel, messages: [{ role: "user", content: "tokens:100000" }], n: 128 }),
  ],
  [
    "8 answers of 100,000 tokens, streamed: messages, local",
    chat,
    () => ({ model: localModel, stream: true, messages: [{ role: "user", content: "tokens:100000" }], n: 8 }),
  ],
  [
    "four long stop texts: chat, local",
    chat,
    () => ({
      model: localModel,
      messages: [{ role: "user", content: "tokens:100000" }],
      stop: many(4, (at) => `x${"token ".repeat(50_000)}${at}`),
    }),
  ],
  ["a prompt of 20 MB: completions", "/v1/completions", () => ({ model: openaiModel, prompt: "ab ".repeat(7 * mebi) })],
  [
    "a prediction of 20 MB: chat",
    chat,
    () => ({ model: openaiModel, messages: user, prediction: { type: "content", content: "ab ".repeat(7 * mebi) } }),
  ],
  [
    "names of 20 MB: chat to Anthropic",
    chat,
    () => ({ model: anthropicModel, messages: [{ role: "user", name: "a".repeat(20 * mebi), content: "Hi" }] }),
  ],
  [
    "a tool's name of 20 MB: chat, local",
    chat,
    () => ({
      model: localModel,
      messages: user,
      tools: [{ type: "function", function: { name: "a_".repeat(10 * mebi) } }],
    }),
  ],
  [
    "a choice of a tool of 20 MB: chat to Gemini",
    chat,
    () => ({
      model: geminiModel,
      messages: user,
      tools: [{ type: "function", function: { name: "a" } }],
      tool_choice: { type: "function", function: { name: "a".repeat(20 * mebi) } },
    }),
  ],
  [
    "256 vectors of 3,072: embeddings, local",
    "/v1/embeddings",
    () => ({ model: "local/embeddings", dimensions: 3_072, input: many(256, () => "ab ") }),
  ],
  [
    "256 requests of 60 parts: embeddings by Gemini, local",
    gemini("local/embeddings", "batchEmbedContents"),
    () => ({
      requests: many(256, () => ({
        output_dimensionality: 3_072,
        content: { parts: many(60, () => ({ text: "ab ".repeat(400) })) },
      })),
    }),
  ],
  [
    "1,000 documents of 40 fields, 100 of them ranked: rerank, local",
    "/v1/rerank",
    () => ({
      model: "local/rerank",
      query: "ab",
      return_documents: true,
      rank_fields: many(100, (at) => `k${at}`),
      documents: many(1_000, () => Object.fromEntries(many(44, (at) => [`k${at}`, "ab ".repeat(100)]))),
    }),
  ],
  [
    "4 MB of one word: Gemini's tokens counted",
    gemini(openaiModel, "countTokens"),
    () => ({ contents: [{ role: "user", parts: [{ text: "a".repeat(4 * mebi) }] }] }),
  ],
  [
    "20,000 texts: tokens counted",
    "/v1/messages/count_tokens",
    () => ({
      model: openaiModel,
      messages: [{ role: "user", content: many(15_000, () => ({ type: "text", text: "ab ".repeat(300) })) }],
    }),
  ],
  [
    "prompt and script of 20 MB: speech, audio route",
    "/v1/audio/speech",
    () => ({ model: "local/speech", input: "ab ".repeat(7 * mebi), voice: "alloy" }),
  ],
  [
    "an id of 20 MB: responses",
    "/v1/responses",
    () => ({ model: openaiModel, input: "Hi", previous_response_id: "a".repeat(20 * mebi) }),
  ],
  [
    "1,000 unknown references: responses",
    "/v1/responses",
    () => ({
      model: openaiModel,
      input: many(1_000, (at) => ({ type: "item_reference", id: `${"a".repeat(190)}${at}` })),
    }),
  ],
  [
    "100 uploads that do not exist: chat",
    chat,
    () => ({
      model: openaiModel,
      messages: [
        { role: "user", content: many(100, (at) => ({ type: "image_url", image_url: { url: `upl_${at}` } })) },
      ],
    }),
  ],
];
