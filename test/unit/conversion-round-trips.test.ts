import fc from "fast-check";
import { expect, test } from "vitest";
import { type Codec, chatCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import type { JsonObject } from "#json";
import { converters } from "../../workers/conversion/index.ts";

const words = fc.stringMatching(/^[\p{L}\d][\p{L}\d ]{0,8}[\p{L}\d]$/u);
const name = fc.stringMatching(/^[a-z_]{1,8}$/);
const text = words.map((value) => ({ type: "text", text: value }));
const image = (more: JsonObject = {}) =>
  fc
    .constantFrom("https://a.example/b.png", "data:image/png;base64,iVBORw0KGgo=")
    .map((url) => ({ type: "image_url", image_url: { url, ...more } }));
const file = fc.constant({
  type: "file",
  file: { filename: "f.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
});

/** The additions of a format's provider to the message of a model, and to its calls. */
interface Own {
  readonly said: fc.Arbitrary<string>;
  readonly parts: fc.Arbitrary<JsonObject>;
  readonly onMessage: fc.Arbitrary<JsonObject>;
  readonly onCall: fc.Arbitrary<JsonObject>;
}

/** A turn of the user, the answer with its calls, and their results. */
const turnOf = ({ said, parts, onMessage, onCall }: Own) => {
  const ask = fc.oneof(said, fc.array(parts, { minLength: 2, maxLength: 3 }));
  const args = fc.dictionary(name, fc.jsonValue({ maxDepth: 1 }));
  const call = fc.record({ name, args, result: said, own: onCall });
  return fc.record({
    ask,
    say: words,
    isSilent: fc.boolean(),
    calls: fc.array(call, { maxLength: 2 }),
    own: onMessage,
  });
};
type Turn = ReturnType<typeof turnOf> extends fc.Arbitrary<infer T> ? T : never;

const messagesOf = ({ ask, say, isSilent, calls, own }: Turn, turn: number): JsonObject[] => {
  const ids = calls.map((_, at) => `call_${turn}_${at}`);
  const tool_calls = calls.map(({ name, args, own }, at) => ({
    id: ids[at],
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
    ...own,
  }));
  return [
    { role: "user", content: ask },
    {
      role: "assistant",
      content: isSilent && calls.length > 0 ? null : say,
      ...(calls.length > 0 && { tool_calls }),
      ...own,
    },
    ...calls.map(({ result }, at) => ({ role: "tool", tool_call_id: ids[at], content: result })),
  ];
};

const schema = {
  type: "object",
  properties: { a: { type: "string" } },
  required: ["a"],
  additionalProperties: false,
};
const tools = (strict: fc.Arbitrary<JsonObject>) =>
  fc.uniqueArray(
    fc.record({ name, description: words, strict }).map(({ strict, ...tool }) => ({
      type: "function",
      function: { ...tool, parameters: { type: "object", properties: {} }, ...strict },
    })),
    { minLength: 1, maxLength: 2, selector: (tool) => tool.function.name },
  );
const maybeStrict = fc.constantFrom<JsonObject>({}, { strict: true });
const settings = {
  temperature: fc.double({ min: 0, max: 1, noNaN: true }),
  tools: tools(maybeStrict),
  tool_choice: fc.constantFrom("required", "none"),
  response_format: fc.constant({ type: "json_schema", json_schema: { name: "answer", schema, strict: true } }),
};

const none = fc.constant({});
const signature = (text: string) => ({ extra_content: { google: { thought_signature: text } } });
const thought = fc.record({
  type: fc.constant("reasoning.text"),
  text: words,
  signature: fc.constant("s"),
  format: fc.constant("anthropic-claude-v1"),
  index: fc.constant(0),
});

interface Drawn extends JsonObject {
  readonly system?: string;
  readonly turns: readonly Turn[];
  readonly last: string;
}

interface Trip extends Own {
  readonly model: string;
  readonly capField: "max_tokens" | "max_completion_tokens";
  /** True if the path has the model and the choice of streaming. */
  readonly isInPath?: boolean;
  readonly codec: Codec;
  readonly settings: Readonly<Record<string, fc.Arbitrary<unknown>>>;
}
const trips: Readonly<Record<"messages" | "responses" | "gemini", Trip>> = {
  messages: {
    model: "claude-sonnet-4-6",
    capField: "max_tokens",
    codec: messagesCodec,
    // Blank texts and white space around them are not sent.
    said: words,
    parts: fc.oneof(text, image(), file),
    onMessage: fc.oneof(none, fc.record({ reasoning_details: fc.tuple(thought) })),
    onCall: none,
    settings: { ...settings, stream: fc.boolean(), stop: fc.array(words, { minLength: 1, maxLength: 2 }) },
  },
  responses: {
    model: "gpt-5",
    capField: "max_completion_tokens",
    codec: responsesCodec,
    said: fc.string({ minLength: 1 }),
    parts: fc.oneof(text, image({ detail: "auto" }), file),
    onMessage: none,
    onCall: none,
    settings: { ...settings, stream: fc.boolean(), parallel_tool_calls: fc.constant(false) },
  },
  gemini: {
    // An older model, which requires no signatures.
    model: "gemini-2.5-flash",
    capField: "max_tokens",
    isInPath: true,
    codec: geminiCodec("gemini-2.5-flash", false, true),
    // An object as the result of a call stays one.
    said: fc.string({ minLength: 1 }).filter((text) => !text.trimStart().startsWith("{")),
    parts: fc.oneof(text, image()),
    onMessage: none,
    onCall: fc.oneof(none, fc.constantFrom("c2ln", "b25l").map(signature)),
    // Strict tools are a mode, of which there is only one.
    settings: { ...settings, tools: tools(none) },
  },
};

test.each(Object.keys(trips) as (keyof typeof trips)[])(
  "a chat request converted to %s is valid, and converts back to itself",
  (format) => {
    const { model, capField, isInPath = false, codec, settings, ...own } = trips[format];
    const request = fc.record(
      { system: own.said, turns: fc.array(turnOf(own), { minLength: 1, maxLength: 3 }), last: own.said, ...settings },
      { requiredKeys: ["turns", "last"] },
    ) as fc.Arbitrary<Drawn>;
    fc.assert(
      fc.property(request, ({ system, turns, last, tools, tool_choice, parallel_tool_calls, ...rest }: Drawn) => {
        const chat = {
          ...(!isInPath && { model }),
          [capField]: 5_000,
          messages: [
            ...(system === undefined ? [] : [{ role: "system", content: system }]),
            ...turns.flatMap(messagesOf),
            { role: "user", content: last },
          ],
          ...rest,
          ...(tools !== undefined && {
            tools,
            ...(tool_choice !== undefined && { tool_choice }),
            ...(parallel_tool_calls !== undefined && { parallel_tool_calls }),
          }),
        };
        const there = converters[format].requestFromChat({ ...chat, model });
        codec.parse(there.request, 1_000);
        const back = converters[format].requestToChat(there.request);
        expect(back.request).toEqual(chat);
        chatCodec.parse({ model, ...back.request }, 1_000);
        expect([...there.ignored, ...back.ignored]).toEqual([]);
      }),
      { numRuns: 100 },
    );
  },
);

test("an effort converted to Messages and back is the same", () => {
  for (const reasoning_effort of ["none", "low", "medium", "high", "xhigh", "max"]) {
    const messages = [{ role: "user", content: "a" }];
    const chat = { model: "claude-opus-4-8", messages, reasoning_effort };
    const { request } = converters.messages.requestFromChat(chat);
    const there = reasoning_effort === "none" ? undefined : reasoning_effort;
    expect(converters.messages.requestToChat(request).request["reasoning_effort"]).toBe(there);
  }
});

const { gemini, responses } = converters;
const identity = { model: "gemini-3.8-flash", created: 1_700_000_000, id: "QHiLaa6L" };

test("an answer of Gemini converted to chat and back is the same", () => {
  const parts = [
    { text: "Hm.", thought: true },
    { text: "Hi", thoughtSignature: "c2ln" },
    { functionCall: { id: "a", name: "one", args: { x: 1 } }, thoughtSignature: "b25l" },
  ];
  const answer = {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 14, thoughtsTokenCount: 2 },
    modelVersion: identity.model,
    responseId: identity.id,
  };
  const chat = converters.chat.native.finish(gemini.responseToChat(answer), identity, { input: 0, output: 0 });
  const request = { generationConfig: { thinkingConfig: { includeThoughts: true } } };
  expect(gemini.responseFromChat(chat, identity, request)).toEqual(answer);
});

test("the reasoning of a response converted to chat and back is the same", () => {
  const texts = ["One.", "Two."].map((text) => ({ type: "summary_text", text }));
  const reasoning = { type: "reasoning", id: "rs_1", summary: texts, encrypted_content: "secret" };
  const call = { type: "function_call", call_id: "a", name: "f", arguments: "{}" };
  const chat = responses.responseToChat({ status: "completed", output: [reasoning, { ...call, id: "fc_1" }] });
  const messages = (chat["choices"] as { message: JsonObject }[]).map(({ message }) => message);
  const { request } = responses.requestFromChat({ model: "gpt-5", messages }, { hiddenReasoning: true });
  expect(request["input"]).toEqual([reasoning, call]);
});
