import {
  alikeBlocks,
  alikeCalls,
  alikeItems,
  alikeParts,
  allowedTools,
  anthropicBody,
  callItem,
  fields,
  flatTool,
  gemini,
  geminiBody,
  hi,
  image,
  inlineImage,
  letters,
  localCall,
  longLink,
  manyTokens,
  marked,
  numbered,
  objects,
  reasoningContents,
  reasoningItems,
  reasoningMessages,
  resultItem,
  said,
  similar,
  text,
  tool,
  toolCallOf,
  toolResult,
  turns,
  withCalls,
  withMessages,
  withOneCall,
  words,
} from "./body-parts.ts";
import { anthropicModel, geminiModel, localModel, many, mebi, openaiModel } from "./input.ts";

type LongBody = readonly [name: string, path: string, make: () => object, isShort: true | undefined];
/** The body of a route whose path is known. */
type Row = readonly [name: string, make: () => object, isShort?: true];

const at = (path: string, ...rows: readonly Row[]): readonly LongBody[] =>
  rows.map(([name, make, isShort]) => [name, path, make, isShort]);

/** Bodies whose own fields are many or long. */
export const longBodies: readonly LongBody[] = [
  ...at(
    "/v1/chat/completions",
    ["16,000 messages: chat to Gemini", () => withMessages(geminiModel, turns(16_000)), true],
    ["15,000 parts: chat to Anthropic", () => withMessages(anthropicModel, said(many(15_000, () => text("Hi")))), true],
    ["12,000 images: chat to OpenAI", () => withMessages(openaiModel, said(many(12_000, () => inlineImage)))],
    [
      "9,000 tools: chat to Anthropic",
      () => withMessages(anthropicModel, hi, { tools: numbered(9_000).map((name) => tool(name)) }),
      true,
    ],
    [
      "9,000 tools: chat, local",
      () => withMessages(localModel, hi, { tools: numbered(9_000).map((name) => tool(name, { parameters: {} })) }),
    ],
    [
      "7,000 tool calls: chat to Anthropic",
      () => {
        const results = numbered(3_000, "c").map((id) => toolResult(id));
        return withMessages(anthropicModel, withCalls(numbered(7_000, "c").map(toolCallOf), results));
      },
    ],
    ["arguments of 20 MB: chat to Anthropic", () => withMessages(anthropicModel, withOneCall(objects())), true],
    [
      "arguments of 90,000 texts: chat to Anthropic",
      () => {
        const input = JSON.stringify({ a: many(90_000, () => "ab ".repeat(70)) });
        return withMessages(anthropicModel, withOneCall(input));
      },
    ],
    [
      "arguments of a million names: chat to Gemini",
      () => withMessages(geminiModel, withOneCall(JSON.stringify(fields(1_000_000, 1)))),
    ],
    ["tool results of 20 MB: chat to Gemini", () => withMessages(geminiModel, withOneCall("{}", objects()))],
    ["131,000 tokens: chat, local", () => withMessages(localModel, said("a ".repeat(260_000)))],
    ["100,000 tokens answered: chat, local", () => withMessages(localModel, manyTokens)],
    ["stop texts: chat, local", () => withMessages(localModel, manyTokens, { stop: numbered(40_000, "no") })],
    ["models, 40,000", () => ({ models: numbered(40_000), messages: hi })],
    ["a model's name of 20 MB", () => withMessages(letters(), hi)],
    ["upstreams preferred, 40,000", () => withMessages(openaiModel, hi, { provider: { order: numbered(40_000) } })],
    ["alike ids of tool calls: chat, local", () => withMessages(localModel, alikeCalls())],
    ["alike ids of tool calls: chat to OpenAI", () => withMessages(openaiModel, alikeCalls())],
    ["alike ids of tool calls: chat to Anthropic", () => withMessages(anthropicModel, alikeCalls())],
    ["alike ids of tool calls: chat to Gemini", () => withMessages(geminiModel, alikeCalls())],
    [
      "9,000 tools that the prompt nearly names: chat, local",
      () => {
        const tools = many(9_000, (index) => tool(`b${"a".repeat(57)}${String(index).padStart(5, "a")}`));
        return withMessages(localModel, said("a".repeat(16_000)), { n: 8, tools });
      },
    ],
    [
      "9,000 tools that the prompt names: chat, local",
      () => {
        const tools = many(9_000, () => tool("a", { parameters: {} }));
        return withMessages(localModel, said("a ".repeat(8_000)), { n: 8, tools });
      },
    ],
    ["a link of 20 MB: chat to OpenAI", () => withMessages(openaiModel, said([image(longLink())]))],
    [
      "a link of 20 MB of slashes and dots: chat to Gemini",
      () => withMessages(geminiModel, said([image(`https://a/${"a./".repeat(7 * mebi)}`)])),
    ],
    ["1,900 fields: chat to Anthropic", () => withMessages(anthropicModel, hi, fields(1_900, "a".repeat(10_000)))],
    [
      "40 fields of 1,000 messages: chat to Gemini",
      () => {
        const messages = many(1_000, () => ({ role: "user", content: "Hi", ...fields(40, "a".repeat(400)) }));
        return withMessages(geminiModel, messages);
      },
    ],
    ["12,000 parts, all faulty: chat", () => withMessages(openaiModel, said(many(12_000, () => text(1))))],
    [
      "allowed tools: chat to Anthropic",
      () => {
        const allowed_tools = allowedTools(similar(5_000, "1").map((name) => tool(name)));
        return withMessages(anthropicModel, hi, {
          tools: similar(5_000, "0").map((name) => tool(name)),
          tool_choice: { type: "allowed_tools", allowed_tools },
        });
      },
    ],
    [
      "logit_bias, 19,000",
      () =>
        withMessages(openaiModel, hi, { logit_bias: Object.fromEntries(numbered(19_000, "").map((id) => [id, 1])) }),
    ],
    ["128 answers of 100,000 tokens: chat, local", () => withMessages(localModel, manyTokens, { n: 128 })],
    [
      "8 answers of 100,000 tokens, streamed: messages, local",
      () => withMessages(localModel, manyTokens, { stream: true, n: 8 }),
    ],
    [
      "four long stop texts: chat, local",
      () => {
        const stop = many(4, (index) => `x${"token ".repeat(50_000)}${index}`);
        return withMessages(localModel, manyTokens, { stop });
      },
    ],
    [
      "a prediction of 20 MB: chat",
      () => withMessages(openaiModel, hi, { prediction: { type: "content", content: words() } }),
    ],
    [
      "names of 20 MB: chat to Anthropic",
      () => withMessages(anthropicModel, [{ role: "user", name: letters(), content: "Hi" }]),
    ],
    [
      "a tool's name of 20 MB: chat, local",
      () => withMessages(localModel, hi, { tools: [tool("a_".repeat(10 * mebi))] }),
    ],
    [
      "a choice of a tool of 20 MB: chat to Gemini",
      () => withMessages(geminiModel, hi, { tools: [tool("a")], tool_choice: tool(letters()) }),
    ],
    ["100 uploads that do not exist: chat", () => withMessages(openaiModel, said(numbered(100, "upl_").map(image)))],
  ),
  ...at(
    "/v1/messages",
    ["16,000 messages: messages to OpenAI", () => anthropicBody(openaiModel, turns(16_000))],
    ["alike ids of tool calls: messages to OpenAI", () => anthropicBody(openaiModel, alikeBlocks())],
    ["alike ids of tool calls: messages to Gemini", () => anthropicBody(geminiModel, alikeBlocks())],
    ["reasoning of 80 states: messages to OpenAI", () => anthropicBody(openaiModel, reasoningMessages())],
    ["reasoning of 80 states: messages, native", () => anthropicBody(anthropicModel, reasoningMessages())],
    [
      "a link of 20 MB: messages, native",
      () => anthropicBody(anthropicModel, said([{ type: "image", source: { type: "url", url: longLink() } }])),
    ],
    ["12,000 messages, all faulty: messages", () => anthropicBody(openaiModel, many(12_000, () => said([1])).flat())],
    [
      "20,000 cache breakpoints: messages, native",
      () => anthropicBody(anthropicModel, said(many(9_000, () => marked))),
    ],
    [
      "9,000 cache breakpoints: messages to OpenAI",
      () => ({ ...anthropicBody(openaiModel, hi), system: many(9_000, () => marked) }),
    ],
  ),
  ...at(
    "/v1/responses",
    ["16,000 items: responses to Anthropic", () => ({ model: anthropicModel, input: turns(16_000) })],
    [
      "9,000 tools: responses to Gemini",
      () => {
        const tools = numbered(9_000).map((name) => flatTool(name, { parameters: {} }));
        return { model: geminiModel, input: "Hi", tools };
      },
    ],
    [
      "arguments of 20 MB: responses to Anthropic",
      () => ({ model: anthropicModel, input: [...hi, callItem("c", objects()), resultItem("c")] }),
    ],
    [
      "100,000 tokens answered: responses, local, as a stream",
      () => ({ model: localModel, stream: true, input: "tokens:100000" }),
      true,
    ],
    ["alike ids of tool calls: responses to Anthropic", () => ({ model: anthropicModel, input: alikeItems() })],
    ["alike ids of tool calls: responses, native", () => ({ model: openaiModel, input: alikeItems() })],
    ["reasoning of 80 states: responses to Anthropic", () => ({ model: anthropicModel, input: reasoningItems() })],
    [
      "a link of 20 MB: responses, native",
      () => ({ model: openaiModel, input: said([{ type: "input_image", image_url: longLink() }]) }),
    ],
    [
      "12,000 items, all faulty: responses",
      () => ({ model: openaiModel, input: many(12_000, () => ({ type: "message", role: 1, content: [1] })) }),
    ],
    [
      "allowed tools: responses to Anthropic",
      () => ({
        model: anthropicModel,
        input: "Hi",
        tools: similar(5_000, "0").map((name) => flatTool(name, { parameters: {} })),
        tool_choice: { type: "allowed_tools", ...allowedTools(similar(7_000, "1").map((name) => flatTool(name))) },
      }),
    ],
    ["includes, 45,000", () => ({ model: openaiModel, input: "Hi", include: numbered(45_000) })],
    [
      "9,000 reasoning items: responses, native",
      () => {
        const thoughts = numbered(8_000, "rs_").map((id) => ({
          type: "reasoning",
          id,
          summary: [],
          encrypted_content: "a",
        }));
        return { model: openaiModel, input: [...hi, ...thoughts] };
      },
    ],
    ["an id of 20 MB: responses", () => ({ model: openaiModel, input: "Hi", previous_response_id: letters() })],
    [
      "1,000 unknown references: responses",
      () => {
        const ids = numbered(1_000, "a".repeat(190));
        return { model: openaiModel, input: ids.map((id) => ({ type: "item_reference", id })) };
      },
    ],
  ),
  ...at(
    gemini(openaiModel),
    [
      "12,000 contents: Gemini to OpenAI",
      () => ({
        contents: many(12_000, (index) => ({ role: index % 2 ? "model" : "user", parts: [{ text: "Hi" }] })),
      }),
    ],
    ["20,000 parts: Gemini to OpenAI", () => geminiBody(...many(20_000, () => ({ text: "Hi" })))],
    ["alike ids of function calls: Gemini to OpenAI", () => alikeParts("id")],
    ["alike names of function calls: Gemini to OpenAI", () => alikeParts("name")],
    ["reasoning of 80 states: Gemini to OpenAI", () => ({ contents: reasoningContents() })],
    [
      "12,000 parts in snake case: Gemini",
      () => geminiBody(...many(12_000, () => ({ text: "a", video_metadata: {}, speech_metadata: {} }))),
    ],
    [
      "three long names in snake case: Gemini",
      () => {
        const names = numbered(3, "_a".repeat(500_000));
        return geminiBody({ text: "a", ...Object.fromEntries(names.map((name) => [name, ""])) });
      },
    ],
    [
      "40,000 allowed functions: Gemini to OpenAI",
      () => ({
        ...geminiBody({ text: "Hi" }),
        tools: [{ functionDeclarations: similar(6_000, "0").map((name) => ({ name })) }],
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: similar(30_000, "1") } },
      }),
    ],
  ),
  ...at(
    gemini(geminiModel),
    ["a link of 20 MB: Gemini, native", () => geminiBody({ fileData: { mimeType: "image/png", fileUri: longLink() } })],
    ["12,000 items, all faulty: Gemini", () => ({ contents: many(12_000, () => ({ role: 1, parts: [1] })) })],
    [
      "8,000 safety settings: Gemini, native",
      () => {
        const setting = { category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" };
        return { ...geminiBody({ text: "Hi" }), safetySettings: many(12_000, () => setting) };
      },
    ],
  ),
  ...at(
    "/v1/embeddings",
    [
      "256 texts of 80 KB: embeddings, local",
      () => localCall("embeddings", { input: many(256, () => "ab ".repeat(27_000)) }),
    ],
    ["one text of 20 MB: embeddings, local", () => localCall("embeddings", { input: words() })],
    [
      "256 texts of one letter: embeddings",
      () => ({ model: "openai/text-embedding-3-small", input: many(256, () => "a".repeat(80_000)) }),
    ],
    [
      "2,000,000 tokens: embeddings, local",
      () => localCall("embeddings", { input: many(256, () => many(8_000, (index) => index)) }),
      true,
    ],
    [
      "256 vectors of 3,072: embeddings, local",
      () => localCall("embeddings", { dimensions: 3_072, input: many(256, () => "ab ") }),
    ],
  ),
  ...at(gemini("local/embeddings", "batchEmbedContents"), [
    "256 requests of 60 parts: embeddings by Gemini, local",
    () => {
      const parts = many(60, () => ({ text: "ab ".repeat(400) }));
      return { requests: many(256, () => ({ output_dimensionality: 3_072, content: { parts } })) };
    },
  ]),
  ...at(
    "/v1/rerank",
    [
      "1,000 documents of 20 KB: rerank, local",
      () => {
        const documents = many(1_000, () => "ab cd ".repeat(3_400));
        return localCall("rerank", { query: "ab ".repeat(4_000), documents });
      },
      true,
    ],
    [
      "a document of 20 MB: rerank, local",
      () => localCall("rerank", { query: "ab", documents: ["漢".repeat(6 * mebi)] }),
    ],
    [
      "1,000 documents of 40 fields, 100 of them ranked: rerank, local",
      () => {
        const documents = many(1_000, () => fields(44, "ab ".repeat(100)));
        const rank_fields = numbered(100, "k");
        return localCall("rerank", { query: "ab", return_documents: true, rank_fields, documents });
      },
    ],
  ),
  ...at(
    "/v1/moderations",
    ["1 MB of accents: moderations, local", () => localCall("moderation", { input: `a${"\u0301".repeat(480_000)}` })],
    ["256 texts: moderations, local", () => localCall("moderation", { input: many(256, () => "1a".repeat(1_900)) })],
  ),
  ...at("/v1/images/generations", ["a prompt of 20 MB: images, local", () => localCall("image", { prompt: words() })]),
  ...at(
    "/v1/images/edits",
    ["a link of 20 MB: image edits", () => localCall("image", { prompt: "Hi", image: longLink() })],
    [
      "16 images of 1 MB inline: image edits, local",
      () => {
        const images = many(16, () => `data:image/png;base64,iVBORw0KGgo${"A".repeat(1_400_001)}`);
        return localCall("image", { prompt: "Hi", images });
      },
    ],
  ),
  ...at("/v1/media/generations", [
    "a text of 20 MB: speech, local",
    () => localCall("speech", { input: { text: words() } }),
  ]),
  ...at("/v1/audio/speech", [
    "prompt and script of 20 MB: speech, audio route",
    () => localCall("speech", { input: words(), voice: "alloy" }),
  ]),
  ...at("/v1/completions", ["a prompt of 20 MB: completions", () => ({ model: openaiModel, prompt: words() })]),
  ...at(
    "/v1/messages/count_tokens",
    ["4 MB of one word: tokens counted", () => withMessages(openaiModel, said("a".repeat(4 * mebi))), true],
    [
      "20,000 texts: tokens counted",
      () => withMessages(openaiModel, said(many(15_000, () => text("ab ".repeat(300))))),
    ],
  ),
  ...at("/v1/responses/input_tokens", [
    "20 MB of words: tokens counted",
    () => ({ model: anthropicModel, input: words() }),
  ]),
  ...at(gemini(openaiModel, "countTokens"), [
    "4 MB of one word: Gemini's tokens counted",
    () => geminiBody({ text: "a".repeat(4 * mebi) }),
  ]),
];
