import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject } from "#json";
import { chunkParser, converters } from "../../workers/conversion/index.ts";
import { serverSentEvents } from "../../workers/providers/http/read-stream.ts";
import { parseAnswer } from "../../workers/providers/http/untrusted-json.ts";
import { runs } from "../support/property-runs.ts";

const identity = { id: "chatcmpl-req_1", created: 7, model: "ours" };
const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "theirs" };
const delta = (fields: JsonObject, rest: JsonObject = {}) => ({
  index: 0,
  delta: fields,
  finish_reason: null,
  ...rest,
});

/** The shapes of a chunk around its text. */
const shapes: readonly ((text: string, padding: string) => JsonObject)[] = [
  (content) => ({ ...envelope, choices: [delta({ content })] }),
  (content, obfuscation) => ({ ...envelope, choices: [delta({ content })], usage: null, obfuscation }),
  (content) => ({ ...envelope, choices: [delta({ role: "assistant", content, refusal: "no" }, { logprobs: null })] }),
  (text) => ({ choices: [delta({ content: null, reasoning_content: text })] }),
  (text) => ({ ...envelope, choices: [delta({ reasoning: text, content: "" })] }),
  (text) => ({
    ...envelope,
    id: "chatcmpl-2",
    created: 2,
    choices: [delta({ reasoning_content: "", reasoning: text })],
  }),
  (content) => ({ ...envelope, message: { content }, choices: [delta({ content })] }),
  (content) => ({ ...envelope, choices: [delta({ content }, { index: 1 })] }),
  (content) => ({ ...envelope, choices: [delta({ content }), delta({ content }, { index: 1 })] }),
  (content) => ({ ...envelope, choices: [delta({ content }, { finish_reason: "stop" })] }),
  (content) => ({ ...envelope, choices: [delta({ content })], usage: { prompt_tokens: 1, completion_tokens: 9 } }),
  (name) => ({ ...envelope, choices: [delta({ content: "", tool_calls: [{ function: { name, arguments: name } }] })] }),
  (text) => ({ ...envelope, choices: [], text }),
];

const asciiOnly = (json: string) =>
  json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

function withDeltaTwice(chunk: JsonObject): string {
  const json = JSON.stringify(chunk);
  const twice = json.replace(/"delta":(\{[^{}]*\})/, '"delta":$1,"delta":{"content" : "last"}');
  try {
    JSON.parse(twice);
    return twice;
  } catch {
    // The text contains a brace.
    return json;
  }
}

/** JSON in the styles of servers: compact, with Python's spaces, ASCII only, with a duplicate member. */
const styles: readonly ((chunk: JsonObject) => string)[] = [
  (chunk) => JSON.stringify(chunk),
  (chunk) => JSON.stringify(chunk, null, 1).replace(/\n */g, " "),
  (chunk) => asciiOnly(JSON.stringify(chunk)),
  withDeltaTwice,
];

const text = fc.oneof(fc.constantFrom("", " more", "a~", '"', "\\", "\n\n", "\u2028"), fc.string({ unit: "grapheme" }));
const run = fc.record({
  shape: fc.constantFrom(...shapes),
  style: fc.constantFrom(...styles),
  texts: fc.array(fc.tuple(text, fc.string({ maxLength: 3 })), { minLength: 1, maxLength: 8 }),
});

type Writers = "native" | "converted";

/** All relevant results for a stream that arrives in these pieces. */
function outcome(pieces: readonly Buffer[], parseChunk: (json: string) => JsonObject, writers: Writers) {
  const writer =
    writers === "native" ? converters.chat.native.stream(identity) : converters.messages.streamFromChat(identity, {});
  const reader = converters.chat.streamToChat();
  let written = "";
  const decoder = serverSentEvents.createDecoder((json) => {
    const event = parseChunk(json);
    for (const chunk of writers === "native" ? [event] : reader.write(event)) written += writer.write(chunk);
  });
  for (const piece of pieces) decoder.push(piece);
  const estimate = { input: 1, output: 1 };
  return { written, usage: writer.usage(true), bytes: writer.outputBytes(), end: writer.end(estimate) };
}

function* piecesOf(bytes: Buffer, cuts: readonly number[]): Generator<Buffer> {
  let at = 0;
  for (let next = 0; at < bytes.length; next++) {
    const end = at + (cuts[next % cuts.length] as number);
    yield bytes.subarray(at, end);
    at = end;
  }
}

test.each<Writers>(["native", "converted"])(
  "chunks that repeat an earlier one end as if each was parsed: %s",
  (writers) => {
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(fc.array(run, { minLength: 1, maxLength: 6 }), cuts, (runs, cuts) => {
        const chunks = runs.flatMap(({ shape, style, texts }) => texts.map((each) => style(shape(...each))));
        const pieces = [...piecesOf(Buffer.from(chunks.map((chunk) => `data: ${chunk}\n\n`).join("")), cuts)];
        expect(outcome(pieces, chunkParser(parseAnswer), writers)).toEqual(outcome(pieces, parseAnswer, writers));
      }),
      { numRuns: runs(500), seed: 20_261_122 },
    );
  },
);

test("only two of the chunks that differ in their text alone are parsed, and a different one again", () => {
  let parsed = 0;
  const parseChunk = chunkParser((json) => {
    parsed++;
    return parseAnswer(json);
  });
  const [, openai] = shapes as [unknown, (typeof shapes)[0]];
  for (let n = 0; n < 100; n++) parseChunk(JSON.stringify(openai(`word ${n}\n`, "x".repeat(n % 8))));
  expect(parsed).toBe(2);
  parseChunk(JSON.stringify({ ...openai("the end", ""), usage: { prompt_tokens: 1 } }));
  expect(parsed).toBe(3);
});

test.each(['{"error":{"message":"', '{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]'])(
  "what is no JSON after such chunks is refused: %s",
  (broken) => {
    const parseChunk = chunkParser(parseAnswer);
    const [plain] = shapes as [(typeof shapes)[0]];
    for (let n = 0; n < 5; n++) parseChunk(JSON.stringify(plain(`word ${n}`, "")));
    expect(() => parseChunk(broken)).toThrow("not a JSON object");
    const tab = JSON.stringify(plain("a tab", "")).replace("a tab", "a\ttab");
    expect(() => parseChunk(tab)).toThrow("not a JSON object");
    const escape = JSON.stringify(plain("an escape", "")).replace("an escape", "an \\x");
    expect(() => parseChunk(escape)).toThrow("not a JSON object");
  },
);
