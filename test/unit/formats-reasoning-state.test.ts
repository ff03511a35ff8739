import fc from "fast-check";
import { expect, test } from "vitest";
import { converters, ignoredParams } from "../../workers/conversion/index.ts";
import { decodeReasoning, encodeReasoning } from "../../workers/conversion/reasoning-state.ts";
import { callers } from "../support/format-callers.ts";

type Json = Readonly<Record<string, unknown>>;

const ours = { model: "local/chat", created: 1_700_000_000, id: "req_abc" };
const estimate = { input: 7, output: 9 };
const target = (model: string) => ({ model, cap: 9, capField: "max_tokens" }) as const;
const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } };
const encrypted = { type: "reasoning.encrypted", data: "c2ln", format: "openai-responses-v1", index: 0 };
const state = { reasoning_content: "First, é🙂…", reasoning_details: [encrypted] };
const answer = (message: Json) => ({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] });
const chunks = (message: Json) => [
  ...Object.entries(message).map(([field, value]) => ({ choices: [{ index: 0, delta: { [field]: value } }] })),
  { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
];

/** The turn of the model in the caller's next request. */
const turnOf = {
  messages: ({ content }: Json): Json => ({ ...callers.messages.request, messages: [{ role: "assistant", content }] }),
  gemini: ({ candidates }: Json): Json => {
    const [{ content, parts } = {}] = candidates as Json[];
    return { contents: [content ?? { role: "model", parts }] };
  },
  responses: ({ output }: Json): Json => ({ input: output }),
};
const requestOf = (caller: keyof typeof turnOf): Json => ({
  ...callers[caller].request,
  ...(caller === "responses" && { tools: [{ type: "function", name: "f" }] }),
});

/** The model's message as chat, after a round trip through the caller. */
function returned(caller: keyof typeof turnOf, message: Json, isStream: boolean): unknown {
  const request = requestOf(caller);
  const { assemble } = callers[caller];
  const converter = converters[caller];
  const writer = converter.streamFromChat(ours, request);
  const answered = isStream
    ? assemble(
        chunks(message)
          .map((chunk) => writer.write(chunk))
          .join("") + writer.end(estimate),
      )
    : converter.responseFromChat(answer(message), ours, request);
  return (converter.requestToChat(turnOf[caller](answered)).request["messages"] as Json[])[0];
}

const messages: readonly Json[] = [
  { ...state, content: null, tool_calls: [call] },
  { ...state, content: "Then." },
  { reasoning_content: "Only.", content: null, tool_calls: [call] },
  { reasoning_details: [encrypted], content: "Then.", tool_calls: [call] },
];

test.each([
  ["messages", false],
  ["messages", true],
  ["responses", false],
  ["responses", true],
  ["gemini", false],
  ["gemini", true],
] as const)(
  "the reasoning of a converted answer comes back with the next turn: %s, as a stream %s",
  (caller, isStream) => {
    for (const message of messages)
      expect(returned(caller, message, isStream)).toEqual({ role: "assistant", ...message });
  },
);

test("without tools a Gemini caller's answer has no state", () => {
  const whole = converters.gemini.responseFromChat(answer({ ...state, content: "Then." }), ours, {});
  expect(JSON.stringify(whole)).not.toContain("thoughtSignature");
});

test("no provider gets the state of another format's models", () => {
  const signature = encodeReasoning(state);
  const own = { type: "thinking", thinking: "Mine.", signature: "c2lnbmF0dXJl" };
  const said = { type: "text", text: "Hi" };
  const prepared = converters.messages.native.prepare(
    {
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [{ type: "thinking", thinking: "Hm.", signature }] },
        { role: "assistant", content: [{ type: "redacted_thinking", data: signature }, own, said] },
      ],
    },
    target("claude-opus-5-5"),
  );
  expect(prepared["messages"]).toEqual([
    { role: "user", content: "Hi" },
    { role: "assistant", content: [own, said] },
  ]);

  const ignored = ignoredParams();
  const input = [
    { role: "user", content: "Hi" },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: signature },
    { role: "assistant", content: "Ho" },
  ];
  const responses = converters.responses.native.prepare({ input }, target("gpt-5.2"), ignored);
  expect(responses["input"]).toEqual([input[0], input[2]]);
  expect(ignored.names()).toEqual(["input.reasoning"]);

  const parts = [
    { text: "Hi", thoughtSignature: signature },
    { functionCall: { name: "f" }, thoughtSignature: signature },
    { functionCall: { name: "g" }, thoughtSignature: "c2lnbmF0dXJl" },
  ];
  const sent = (model: string) => {
    const contents = [{ role: "model", parts }];
    return (converters.gemini.native.prepare({ contents }, target(model))["contents"] as [{ parts: Json[] }])[0].parts;
  };
  expect(sent("gemini-2.5-flash")).toEqual([{ text: "Hi" }, { functionCall: { name: "f" } }, parts[2]]);
  // Newer models refuse a call without a signature.
  const skipped = { ...parts[1], thoughtSignature: "skip_thought_signature_validator" };
  expect(sent("gemini-3.8-flash")).toEqual([{ text: "Hi" }, skipped, parts[2]]);
});

test("the state survives clients that decode signatures, and its size is bounded", () => {
  const signature = encodeReasoning(state);
  for (const encoding of ["base64", "base64url"] as const)
    expect(decodeReasoning(Buffer.from(signature, "base64").toString(encoding))).toEqual(state);
  const long = encodeReasoning({
    reasoning_content: "🙂".repeat(200_000),
    reasoning_details: [{ data: "x".repeat(400_000) }],
  });
  expect(long.length).toBeLessThan(400_000);
  const many = { ...state, reasoning_details: Array.from({ length: 1_000 }, () => encrypted) };
  expect(decodeReasoning(encodeReasoning(many))).toEqual({ ...state, reasoning_details: Array(256).fill(encrypted) });
  expect(decodeReasoning(long)).toEqual({ reasoning_content: "🙂".repeat(32_768) });
});

test("whatever comes back is a state of the right shape, or none", () => {
  const encode = (json: string) => Buffer.from(`reasoning-state${json}`).toString("base64");
  expect(decodeReasoning("c2lnbmF0dXJl")).toBeUndefined();
  expect(decodeReasoning(undefined)).toBeUndefined();
  for (const changed of ["", "{", "null", "[]", '{"reasoning_content":1,"reasoning_details":{}}', "[".repeat(100_000)])
    expect(decodeReasoning(encode(changed))).toEqual({});
  expect(decodeReasoning(encode(`{"reasoning_content":"${"x".repeat(300_000)}"}`))).toEqual({});
  const many = JSON.stringify(Array.from({ length: 3_000 }, () => ({})));
  expect(decodeReasoning(encode(`{"reasoning_content":"x","reasoning_details":${many}}`))).toEqual({});
  const deep = `{"data":"x","a":${'{"a":'.repeat(100)}1${"}".repeat(100)}}`;
  expect(decodeReasoning(encode(`{"reasoning_details":[1,{},{"data":1},${deep},{"data":"y"}]}`))).toEqual({
    reasoning_details: [{ data: "y" }],
  });
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const { reasoning_content = "", reasoning_details = [] } = decodeReasoning(encode(JSON.stringify(value))) ?? {};
      expect([typeof reasoning_content, Array.isArray(reasoning_details)]).toEqual(["string", true]);
    }),
  );
});
