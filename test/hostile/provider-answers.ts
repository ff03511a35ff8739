import type { ProviderAnswer } from "../support/mock-provider.ts";
import {
  anthropicMessage,
  anthropicStream,
  block,
  candidateEvents,
  candidates,
  chunk,
  chunks,
  completion,
  failure,
  messageItem,
  named,
  response,
  responseStream,
  toolCall,
  usage,
} from "./answer-parts.ts";
import { many, mebi, openaiModel, replicateModel } from "./input.ts";

type ProviderName = "openai" | "anthropic" | "gemini" | "replicate" | "cohere";

/** The call that is answered: without a path, one in each format that the model may be called in. */
interface Call {
  readonly provider: ProviderName;
  readonly isStream?: boolean;
  readonly path?: string;
  readonly ask?: object;
}

/** A provider's response to any request. */
export interface HostileAnswer extends Call {
  readonly name: string;
  readonly make: () => ProviderAnswer;
  readonly isShort: boolean;
  /** True for a failure of the provider: another call must succeed before the next. */
  readonly fails: boolean;
}

/** A `short` answer is part of `npm test` as well. */
type Row = readonly [name: string, make: () => ProviderAnswer, mark?: Mark];
type Mark = "short" | "fails" | "short, fails" | undefined;

const to = (call: Call, ...rows: readonly Row[]): readonly HostileAnswer[] =>
  rows.map(([name, make, mark = ""]) => ({
    ...call,
    name,
    make,
    isShort: mark.includes("short"),
    fails: mark.includes("fails"),
  }));

/** The row of a JSON response. */
const json = (name: string, makeBody: () => unknown, mark?: Mark): Row => [name, () => ({ body: makeBody() }), mark];
/** The row of a prediction of Replicate. */
const prediction = (name: string, make: () => object): Row => [name, make];

/** Writes a body with JSON in place of its text "X". */
const filled = (body: object, filling: string) => JSON.stringify(body).replace('"X"', () => filling);
/** JSON with as many objects as fit. */
const objects = (bytes: number) => `[${"{},".repeat(bytes / 3)}{}]`;
const words = (times: number) => "ab ".repeat(times * mebi);
const pngBytes = () => Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(5 * mebi)]);
const deltaOfCall = (index: number, input: string, id?: string) =>
  chunk({ tool_calls: [{ index, ...(id ? toolCall(id, input) : { function: { arguments: input } }) }] });

const responses = (more: object = {}): Call => ({
  provider: "openai",
  path: "/v1/responses",
  ask: { model: openaiModel, input: "Hi", ...more },
});

export const providerAnswers: readonly HostileAnswer[] = [
  ...to(
    { provider: "openai" },
    json("a text of 20 MB", () => completion({ content: words(7) }), "short"),
    json("a text of 20 MB of line feeds", () => completion({ content: "\n".repeat(10 * mebi) })),
    json("7 million objects in 20 MB", () => filled(completion({ x: "X" }), objects(20 * mebi)), "short, fails"),
    json(
      "a million names",
      () => completion({ x: Object.fromEntries(many(1_000_000, (at) => [`k${at}`, 1])) }),
      "fails",
    ),
    json("500 levels, 1,000 times", () =>
      filled(completion({ x: "X" }), `[${many(1_000, () => "[".repeat(490) + "]".repeat(490)).join()}]`),
    ),
    json("200,000 texts of 90 bytes", () => completion({ x: many(200_000, () => "ab ".repeat(30)) }), "short"),
    json("100,000 choices", () => {
      const message = { role: "assistant", content: "Hi" };
      return { ...completion({}), choices: many(100_000, (index) => ({ index, message, finish_reason: "stop" })) };
    }),
    json("50,000 tool calls", () => completion({ tool_calls: many(50_000, (at) => toolCall(`c${at}`, "{}")) })),
    json("arguments of 20 MB", () => completion({ tool_calls: [toolCall("c", `{"a":${objects(15 * mebi)}}`)] })),
    json("200,000 log probabilities", () => {
      const content = many(200_000, () => ({ token: "a", logprob: -1, bytes: [97], top_logprobs: [] }));
      return completion({}, { logprobs: { content } });
    }),
    [
      "a refusal of 60 KB",
      () => {
        const [message, param] = ["sk-a ".repeat(12_000), "a.".repeat(1_000)];
        return { status: 400, body: { error: { message, type: "invalid_request_error", param, code: null } } };
      },
    ],
    [
      "a failure of 5 MB of HTML",
      () => ({ status: 500, headers: { "content-type": "text/html" }, body: "<p>".repeat(1.7 * mebi) }),
      "fails",
    ],
    ["a failure of 60 KB in depth", () => ({ status: 500, body: "[".repeat(30_000) + "]".repeat(30_000) }), "fails"],
    [
      "details of 60 KB",
      () => ({ status: 422, body: { detail: many(1_500, () => ({ loc: many(10, () => "a"), msg: "b" })) } }),
    ],
  ),
  ...to(
    { provider: "openai", isStream: true },
    ["100,000 short deltas at once", () => chunks(...many(100_000, () => chunk({ content: "a" }))), "short"],
    [
      "100,000 deltas of other shapes",
      () => chunks(...many(100_000, (at) => chunk({ content: "a", [`k${at % 1_000}`]: at }))),
    ],
    ["a delta of 10 MB", () => chunks(chunk({ content: words(3.3) }))],
    [
      "a delta of a million objects",
      () => chunks(chunk("X").replace('"X"', `{"content":"a","x":${objects(9 * mebi)}}`)),
      "fails",
    ],
    [
      "arguments in 100,000 deltas",
      () => chunks(deltaOfCall(0, "", "c"), ...many(100_000, () => deltaOfCall(0, "1,"))),
    ],
    ["20,000 tool calls in deltas", () => chunks(...many(20_000, (at) => deltaOfCall(at, "{}", `c${at}`)))],
    ["10 MB of comments", () => chunks(":\n".repeat(5 * mebi))],
    ["10 MB of carriage returns", () => chunks("\r".repeat(10 * mebi))],
    ["10 MB of lines of one event", () => chunks("data: \n".repeat(1.5 * mebi))],
    ["10 MB without a line feed", () => ({ events: [Buffer.alloc(10 * mebi, "data: a")], done: false }), "fails"],
    [
      "usage again and again",
      () => chunks(...many(50_000, (at) => chunk({ content: "a" }, { usage: { ...usage, completion_tokens: at } }))),
    ],
    ["an event of failure of 5 MB", () => chunks(failure({ message: "sk-a ".repeat(mebi), code: 500 })), "fails"],
  ),
  ...to(
    {
      provider: "openai",
      path: "/v1/embeddings",
      ask: { model: "openai/text-embedding-3-large", input: many(256, () => "a") },
    },
    json(
      "256 vectors of 3,072 numbers",
      () => {
        const embedding = many(3_072, (at) => -0.012345678901234 * (at + 1));
        return {
          object: "list",
          model: "m",
          data: many(256, (index) => ({ object: "embedding", index, embedding })),
          usage: { prompt_tokens: 256, total_tokens: 256 },
        };
      },
      "short",
    ),
  ),
  ...to(
    {
      provider: "openai",
      path: "/v1/images/generations",
      ask: { model: "openai/gpt-image-2", prompt: "Hi", n: 4, quality: "low", size: "1024x1024" },
    },
    json("4 images of 5 MB", () => ({
      created: 1,
      data: many(4, () => ({ b64_json: pngBytes().toString("base64") })),
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    })),
  ),
  ...to(
    { provider: "anthropic", isStream: true },
    ["30,000 short blocks", () => anthropicStream(...many(30_000, (at) => block(at, "a"))), "short"],
    ["a block of 10 MB", () => anthropicStream(block(0, words(3.3)))],
    ["100,000 pings", () => anthropicStream(named({ type: "ping" }).repeat(100_000))],
  ),
  ...to(
    { provider: "anthropic" },
    json("50,000 blocks", () => anthropicMessage(...many(50_000, () => ({ type: "text", text: "a" })))),
    json(
      "an input of a million objects",
      () => filled(anthropicMessage({ type: "tool_use", id: "t", name: "a", input: { a: "X" } }), objects(9 * mebi)),
      "fails",
    ),
  ),
  ...to({ provider: "gemini", isStream: true }, ["50,000 events", () => candidateEvents(50_000), "short"]),
  ...to(
    { provider: "gemini" },
    json("50,000 parts", () => candidates(many(50_000, () => ({ text: "a" })))),
    json("an image of 15 MB", () =>
      candidates([{ inlineData: { mimeType: "image/png", data: "QUJD".repeat(5 * mebi) } }]),
    ),
    json("sources, 20,000", () => {
      const groundingChunks = many(20_000, (at) => ({ web: { uri: `https://a/${at}`, title: "a" } }));
      const groundingSupports = many(20_000, (at) => ({
        segment: { startIndex: at, endIndex: at + 1 },
        groundingChunkIndices: [at],
      }));
      return candidates([{ text: "a" }], { groundingMetadata: { groundingChunks, groundingSupports } });
    }),
  ),
  ...to(
    responses(),
    json("50,000 items", () => response(...many(50_000, (at) => messageItem("a", at)))),
    json("a text of 15 MB", () => response(messageItem(words(5)))),
    json("a text of 10 MB of line feeds", () => response(messageItem("\n".repeat(5 * mebi)))),
    json("50,000 annotations", () => {
      const citation = { type: "url_citation", url: "https://a", title: "a" };
      const annotations = many(20_000, (at) => ({ ...citation, start_index: at, end_index: at }));
      return response(messageItem("a", 0, annotations));
    }),
    json("20 MB of objects", () => filled({ ...response(), x: "X" }, objects(20 * mebi)), "fails"),
  ),
  ...to(
    responses({ stream: true }),
    [
      "50,000 deltas, as a stream",
      () => responseStream(...many(50_000, () => ({ type: "response.output_text.delta", delta: "a" }))),
    ],
    [
      "20,000 items in events, as a stream",
      () => {
        const done = { type: "response.output_item.done" };
        return responseStream(...many(20_000, (at) => ({ ...done, output_index: at, item: messageItem("a", at) })));
      },
    ],
    [
      "a response of 5 MB in three events, as a stream",
      () => responseStream({ type: "response.in_progress", response: response(messageItem(words(1.6))) }),
    ],
  ),
  ...to(
    { provider: "replicate", path: "/v1/images/generations", ask: { model: replicateModel, prompt: "Hi" } },
    prediction("an error of 10 MB, from replicate", () => ({
      states: ["failed"],
      error: "https://a.b/?c E1234 ".repeat(mebi / 2),
    })),
    prediction("an error of one word of 10 MB, from replicate", () => ({
      states: ["failed"],
      error: "a".repeat(10 * mebi),
    })),
    prediction("100,000 files, from replicate", () => ({
      output: many(100_000, (at) => `https://a.invalid/${at}.png`),
    })),
    prediction("100,000 texts, from replicate", () => ({ output: many(100_000, (at) => `text ${at}`) })),
    prediction("a data address of 10 MB, from replicate", () => ({
      output: `data:image/png;base64,${"QUJD".repeat(2.5 * mebi)}`,
    })),
    prediction("a data address of parameters, from replicate", () => ({
      output: `data:image/png${";a=b".repeat(2.5 * mebi)};base64,QUJD`,
    })),
  ),
  ...to(
    {
      provider: "cohere",
      path: "/v1/rerank",
      ask: { model: "cohere/rerank-v3.5", query: "a", documents: many(1_000, () => "a") },
    },
    json("100,000 results", () => ({
      id: "r",
      results: many(100_000, (index) => ({ index: index % 1_000, relevance_score: 0.5 })),
      meta: { billed_units: { search_units: 1 } },
    })),
  ),
  ...to(
    {
      provider: "openai",
      path: "/v1/moderations",
      ask: { model: "openai/omni-moderation-latest", input: many(30, () => "a") },
    },
    json("30,000 results", () => {
      const result = { flagged: false, categories: {}, category_scores: {} };
      return { id: "m", model: "m", results: many(30_000, () => result) };
    }),
  ),
];
