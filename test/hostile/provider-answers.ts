import type { ProviderAnswer } from "../support/mock-provider.ts";
import { many, mebi, openaiModel, replicateModel } from "./input.ts";

type ProviderName = "openai" | "anthropic" | "gemini" | "replicate" | "cohere";

/** A provider's response to any request. */
export interface HostileAnswer {
  readonly name: string;
  readonly provider: ProviderName;
  readonly isShort?: boolean;
  readonly isStream?: boolean;
  /** True for a failure of the provider: another call must succeed before the next. */
  readonly fails?: boolean;
  readonly path?: string;
  readonly ask?: object;
  readonly make: () => ProviderAnswer;
}

const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
const message = (more: object, choice: object = {}) => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi", ...more }, finish_reason: "stop", ...choice }],
  usage,
});
const chunk = (delta: object | string, more: object = {}) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
const end = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage })}\n\ndata: [DONE]\n\n`;
const stream = (...events: readonly string[]): ProviderAnswer => ({
  events: [Buffer.from(events.join("") + end)],
  done: false,
});
/** JSON with as many objects as fit. */
const objects = (bytes: number) => `[${"{},".repeat(bytes / 3)}{}]`;
const toolCall = (index: number, args: string, id?: string) => ({
  tool_calls: [{ index, ...(id && { id, type: "function" }), function: { ...(id && { name: "a" }), arguments: args } }],
});

const anthropicEvent = (event: object & { readonly type: string }) =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const begin = anthropicEvent({
  type: "message_start",
  message: {
    id: "m",
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  },
} as never);
const block = (index: number, text: string) =>
  [
    { type: "content_block_start", index, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index },
  ]
    .map(anthropicEvent)
    .join("");
const stop = [
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
]
  .map(anthropicEvent)
  .join("");
const anthropicStream = (...events: readonly string[]): ProviderAnswer => ({
  events: [Buffer.from(begin + events.join("") + stop)],
  done: false,
});
const anthropicMessage = (content: readonly object[]) => ({
  id: "m",
  type: "message",
  role: "assistant",
  model: "m",
  content,
  stop_reason: "end_turn",
  usage: { input_tokens: 9, output_tokens: 9 },
});
const candidate = (parts: readonly object[]) => ({
  candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 9, totalTokenCount: 18 },
});

const response = (output: readonly object[]) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "completed",
  output,
  usage: { input_tokens: 9, output_tokens: 9, total_tokens: 18 },
});
const said = (content: string, at = 0, annotations: readonly object[] = []) => ({
  id: `msg_${at}`,
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: content, annotations, logprobs: [] }],
});
const responseStream = (
  ...events: readonly (Readonly<Record<string, unknown>> & { readonly type: string })[]
): ProviderAnswer => ({
  events: [
    Buffer.from(
      [
        { type: "response.created", response: { ...response([]), status: "in_progress" } },
        ...events,
        { type: "response.completed", response: response([]) },
      ]
        .map(anthropicEvent)
        .join(""),
    ),
  ],
  done: false,
});

type Made = Pick<HostileAnswer, "name" | "make" | "fails">;

/** Calls in the provider's own format. */
const native = (answers: readonly Made[], isStream: boolean): readonly HostileAnswer[] =>
  answers.map((answer) => ({
    ...answer,
    name: isStream ? `${answer.name}, as a stream` : answer.name,
    provider: "openai",
    path: "/v1/responses",
    ask: { model: openaiModel, input: "Hi", ...(isStream && { stream: true }) },
  }));

const imagesOf = (provider: ProviderName, model: string, answers: readonly Made[]): readonly HostileAnswer[] =>
  answers.map((answer) => ({
    ...answer,
    name: `${answer.name}, from ${provider}`,
    provider,
    path: "/v1/images/generations",
    ask: { model, prompt: "Hi" },
  }));

export const providerAnswers: readonly HostileAnswer[] = [
  {
    name: "a text of 20 MB",
    provider: "openai",
    isShort: true,
    make: () => ({ body: message({ content: "ab ".repeat(7 * mebi) }) }),
  },
  {
    name: "a text of 20 MB of line feeds",
    provider: "openai",
    make: () => ({ body: message({ content: "\n".repeat(10 * mebi) }) }),
  },
  {
    name: "7 million objects in 20 MB",
    fails: true,
    provider: "openai",
    isShort: true,
    make: () => ({ body: JSON.stringify(message({ x: "X" })).replace('"X"', objects(20 * mebi)) }),
  },
  {
    name: "a million names",
    fails: true,
    provider: "openai",
    make: () => ({ body: message({ x: Object.fromEntries(many(1_000_000, (at) => [`k${at}`, 1])) }) }),
  },
  {
    name: "500 levels, 1,000 times",
    provider: "openai",
    make: () => ({
      body: JSON.stringify(message({ x: "X" })).replace(
        '"X"',
        `[${many(1_000, () => "[".repeat(490) + "]".repeat(490)).join()}]`,
      ),
    }),
  },
  {
    name: "200,000 texts of 90 bytes",
    provider: "openai",
    isShort: true,
    make: () => ({ body: message({ x: many(200_000, () => "ab ".repeat(30)) }) }),
  },
  {
    name: "100,000 choices",
    provider: "openai",
    make: () => ({
      body: {
        ...message({}),
        choices: many(100_000, (index) => ({
          index,
          message: { role: "assistant", content: "Hi" },
          finish_reason: "stop",
        })),
      },
    }),
  },
  {
    name: "50,000 tool calls",
    provider: "openai",
    make: () => ({
      body: message({
        tool_calls: many(50_000, (at) => ({
          id: `c${at}`,
          type: "function",
          function: { name: "a", arguments: "{}" },
        })),
      }),
    }),
  },
  {
    name: "arguments of 20 MB",
    provider: "openai",
    make: () => ({
      body: message({
        tool_calls: [{ id: "c", type: "function", function: { name: "a", arguments: `{"a":${objects(15 * mebi)}}` } }],
      }),
    }),
  },
  {
    name: "200,000 log probabilities",
    provider: "openai",
    make: () => ({
      body: message(
        {},
        { logprobs: { content: many(200_000, () => ({ token: "a", logprob: -1, bytes: [97], top_logprobs: [] })) } },
      ),
    }),
  },
  {
    name: "100,000 short deltas at once",
    provider: "openai",
    isStream: true,
    isShort: true,
    make: () => stream(...many(100_000, () => chunk({ content: "a" }))),
  },
  {
    name: "100,000 deltas of other shapes",
    provider: "openai",
    isStream: true,
    make: () => stream(...many(100_000, (at) => chunk({ content: "a", [`k${at % 1_000}`]: at }))),
  },
  {
    name: "a delta of 10 MB",
    provider: "openai",
    isStream: true,
    make: () => stream(chunk({ content: "ab ".repeat(3.3 * mebi) })),
  },
  {
    name: "a delta of a million objects",
    fails: true,
    provider: "openai",
    isStream: true,
    make: () => stream(chunk("X").replace('"X"', `{"content":"a","x":${objects(9 * mebi)}}`)),
  },
  {
    name: "arguments in 100,000 deltas",
    provider: "openai",
    isStream: true,
    make: () => stream(chunk(toolCall(0, "", "c")), ...many(100_000, () => chunk(toolCall(0, "1,")))),
  },
  {
    name: "20,000 tool calls in deltas",
    provider: "openai",
    isStream: true,
    make: () => stream(...many(20_000, (at) => chunk(toolCall(at, "{}", `c${at}`)))),
  },
  { name: "10 MB of comments", provider: "openai", isStream: true, make: () => stream(":\n".repeat(5 * mebi)) },
  { name: "10 MB of carriage returns", provider: "openai", isStream: true, make: () => stream("\r".repeat(10 * mebi)) },
  {
    name: "10 MB of lines of one event",
    provider: "openai",
    isStream: true,
    make: () => stream("data: \n".repeat(1.5 * mebi)),
  },
  {
    name: "10 MB without a line feed",
    provider: "openai",
    isStream: true,
    fails: true,
    make: () => ({ events: [Buffer.alloc(10 * mebi, "data: a")], done: false }),
  },
  {
    name: "usage again and again",
    provider: "openai",
    isStream: true,
    make: () =>
      stream(...many(50_000, (at) => chunk({ content: "a" }, { usage: { ...usage, completion_tokens: at } }))),
  },
  {
    name: "a refusal of 60 KB",
    provider: "openai",
    make: () => ({
      status: 400,
      body: {
        error: {
          message: "sk-a ".repeat(12_000),
          type: "invalid_request_error",
          param: "a.".repeat(1_000),
          code: null,
        },
      },
    }),
  },
  {
    name: "a failure of 5 MB of HTML",
    provider: "openai",
    fails: true,
    make: () => ({ status: 500, headers: { "content-type": "text/html" }, body: "<p>".repeat(1.7 * mebi) }),
  },
  {
    name: "a failure of 60 KB in depth",
    provider: "openai",
    fails: true,
    make: () => ({ status: 500, body: "[".repeat(30_000) + "]".repeat(30_000) }),
  },
  {
    name: "details of 60 KB",
    provider: "openai",
    make: () => ({ status: 422, body: { detail: many(1_500, () => ({ loc: many(10, () => "a"), msg: "b" })) } }),
  },
  {
    name: "an event of failure of 5 MB",
    provider: "openai",
    isStream: true,
    fails: true,
    make: () => stream(`data: ${JSON.stringify({ error: { message: "sk-a ".repeat(mebi), code: 500 } })}\n\n`),
  },
  {
    name: "256 vectors of 3,072 numbers",
    provider: "openai",
    path: "/v1/embeddings",
    ask: { model: "openai/text-embedding-3-large", input: many(256, () => "a") },
    isShort: true,
    make: () => ({
      body: {
        object: "list",
        model: "m",
        data: many(256, (index) => ({
          object: "embedding",
          index,
          embedding: many(3_072, (at) => -0.012345678901234 * (at + 1)),
        })),
        usage: { prompt_tokens: 256, total_tokens: 256 },
      },
    }),
  },
  {
    name: "4 images of 5 MB",
    provider: "openai",
    path: "/v1/images/generations",
    ask: { model: "openai/gpt-image-2", prompt: "Hi", n: 4, quality: "low", size: "1024x1024" },
    make: () => ({
      body: {
        created: 1,
        data: many(4, () => ({
          b64_json: Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(5 * mebi)]).toString(
            "base64",
          ),
        })),
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      },
    }),
  },
  {
    name: "30,000 short blocks",
    provider: "anthropic",
    isStream: true,
    isShort: true,
    make: () => anthropicStream(...many(30_000, (at) => block(at, "a"))),
  },
  {
    name: "a block of 10 MB",
    provider: "anthropic",
    isStream: true,
    make: () => anthropicStream(block(0, "ab ".repeat(3.3 * mebi))),
  },
  {
    name: "100,000 pings",
    provider: "anthropic",
    isStream: true,
    make: () => anthropicStream(...many(100_000, () => anthropicEvent({ type: "ping" }))),
  },
  {
    name: "50,000 blocks",
    provider: "anthropic",
    make: () => ({ body: anthropicMessage(many(50_000, () => ({ type: "text", text: "a" }))) }),
  },
  {
    name: "an input of a million objects",
    fails: true,
    provider: "anthropic",
    make: () => ({
      body: JSON.stringify(anthropicMessage([{ type: "tool_use", id: "t", name: "a", input: { a: "X" } }])).replace(
        '"X"',
        objects(9 * mebi),
      ),
    }),
  },
  { name: "50,000 parts", provider: "gemini", make: () => ({ body: candidate(many(50_000, () => ({ text: "a" }))) }) },
  {
    name: "50,000 events",
    provider: "gemini",
    isStream: true,
    isShort: true,
    make: () => ({
      events: [Buffer.from(many(50_000, () => `data: ${JSON.stringify(candidate([{ text: "a" }]))}\n\n`).join(""))],
    }),
  },
  {
    name: "an image of 15 MB",
    provider: "gemini",
    make: () => ({ body: candidate([{ inlineData: { mimeType: "image/png", data: "QUJD".repeat(5 * mebi) } }]) }),
  },
  {
    name: "sources, 20,000",
    provider: "gemini",
    make: () => ({
      body: {
        ...candidate([{ text: "a" }]),
        candidates: [
          {
            ...candidate([{ text: "a" }]).candidates[0],
            groundingMetadata: {
              groundingChunks: many(20_000, (at) => ({ web: { uri: `https://a/${at}`, title: "a" } })),
              groundingSupports: many(20_000, (at) => ({
                segment: { startIndex: at, endIndex: at + 1 },
                groundingChunkIndices: [at],
              })),
            },
          },
        ],
      },
    }),
  },
  ...native(
    [
      { name: "50,000 items", make: () => ({ body: response(many(50_000, (at) => said("a", at))) }) },
      { name: "a text of 15 MB", make: () => ({ body: response([said("ab ".repeat(5 * mebi))]) }) },
      { name: "a text of 10 MB of line feeds", make: () => ({ body: response([said("\n".repeat(5 * mebi))]) }) },
      {
        name: "50,000 annotations",
        make: () => ({
          body: response([
            said(
              "a",
              0,
              many(20_000, (at) => ({
                type: "url_citation",
                start_index: at,
                end_index: at,
                url: "https://a",
                title: "a",
              })),
            ),
          ]),
        }),
      },
      { name: "20 MB of objects", fails: true, make: () => ({ body: { ...response([]), x: "X" } }) },
    ],
    false,
  ),
  ...native(
    [
      {
        name: "50,000 deltas",
        make: () => responseStream(...many(50_000, () => ({ type: "response.output_text.delta", delta: "a" }))),
      },
      {
        name: "20,000 items in events",
        make: () =>
          responseStream(
            ...many(20_000, (at) => ({ type: "response.output_item.done", output_index: at, item: said("a", at) })),
          ),
      },
      {
        name: "a response of 5 MB in three events",
        make: () =>
          responseStream({ type: "response.in_progress", response: response([said("ab ".repeat(1.6 * mebi))]) }),
      },
    ],
    true,
  ),
  ...imagesOf("replicate", replicateModel, [
    {
      name: "an error of 10 MB",
      make: () => ({ states: ["failed"], error: "https://a.b/?c E1234 ".repeat(mebi / 2) }) as ProviderAnswer,
    },
    {
      name: "an error of one word of 10 MB",
      make: () => ({ states: ["failed"], error: "a".repeat(10 * mebi) }) as ProviderAnswer,
    },
    {
      name: "100,000 files",
      make: () => ({ output: many(100_000, (at) => `https://a.invalid/${at}.png`) }) as ProviderAnswer,
    },
    {
      name: "100,000 texts",
      make: () => ({ output: many(100_000, (at) => `text ${at}`) }) as ProviderAnswer,
    },
    {
      name: "a data address of 10 MB",
      make: () => ({ output: `data:image/png;base64,${"QUJD".repeat(2.5 * mebi)}` }) as ProviderAnswer,
    },
    {
      name: "a data address of parameters",
      make: () => ({ output: `data:image/png${";a=b".repeat(2.5 * mebi)};base64,QUJD` }) as ProviderAnswer,
    },
  ]),
  {
    name: "100,000 results",
    provider: "cohere",
    path: "/v1/rerank",
    ask: { model: "cohere/rerank-v3.5", query: "a", documents: many(1_000, () => "a") },
    make: () => ({
      body: {
        id: "r",
        results: many(100_000, (index) => ({ index: index % 1_000, relevance_score: 0.5 })),
        meta: { billed_units: { search_units: 1 } },
      },
    }),
  },
  {
    name: "30,000 results",
    provider: "openai",
    path: "/v1/moderations",
    ask: { model: "openai/omni-moderation-latest", input: many(30, () => "a") },
    make: () => ({
      body: {
        id: "m",
        model: "m",
        results: many(30_000, () => ({ flagged: false, categories: {}, category_scores: {} })),
      },
    }),
  },
];
