import fc from "fast-check";
import { expect, test } from "vitest";
import { completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";
import { callers } from "../support/formats-pairs-callers.ts";
import { eventsOf } from "../support/formats-responses-assemble.ts";

type Json = Readonly<Record<string, unknown>>;
const ours = { model: "local/chat", created: 1_700_000_000, id: "chatcmpl-req_abc" };
const estimate = { input: 7, output: 9 };
const chunk = (delta: Json, fields: Json = {}): Json => ({ choices: [{ index: 0, delta, ...fields }] });

const { assemble } = callers.messages;

function streamed(chunks: readonly Json[], request: Json = {}): string {
  const stream = messagesConverter.streamFromChat(ours, request);
  return chunks.map((each) => stream.write(each)).join("") + stream.end(estimate);
}

test("a stream of text has the documented events, in order", () => {
  const usage = { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 3 } };
  const text = streamed([
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hel" }),
    chunk({ content: "lo" }),
    chunk({}, { finish_reason: "stop" }),
    { choices: [], usage },
  ]);
  expect(eventsOf(text).map(({ type }) => type)).toEqual([
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  expect(text).toContain(
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}\n\n',
  );
  expect(eventsOf(text)[0]?.["message"]).toMatchObject({
    id: "msg_abc",
    type: "message",
    role: "assistant",
    model: "local/chat",
    content: [],
    stop_reason: null,
    usage: { input_tokens: 0, output_tokens: 0 },
  });
  expect(assemble(text)).toMatchObject({
    content: [{ type: "text", text: "Hello" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 2 },
  });
});

test("the first chunk writes the first event; an estimate replaces missing usage", () => {
  const stream = messagesConverter.streamFromChat(ours, {});
  expect(stream.write(chunk({ role: "assistant" }))).toMatch(/^event: message_start\n/);
  expect(stream.write({ choices: [] })).toBe("");
  expect(assemble(streamed([]))).toMatchObject({ content: [], usage: { input_tokens: 7, output_tokens: 9 } });
});

test("a call streams as its arguments arrive; the next one follows when they are complete", () => {
  const stream = messagesConverter.streamFromChat(ours, {});
  const call = (index: number, fields: Json) => stream.write(chunk({ tool_calls: [{ index, ...fields }] }));
  expect(call(0, { id: "a", function: { name: "one", arguments: "" } })).toContain('"name":"one","input":{}');
  expect(call(0, { function: { arguments: '{"x":' } })).toContain('"partial_json":"{\\"x\\":"');
  expect(call(1, { id: "b", function: { name: "two", arguments: "{" } })).toBe("");
  expect(call(0, { function: { arguments: "1}" } })).toContain('"name":"two"');
  expect(call(1, { function: { arguments: "}" } })).toContain('"index":1');
  expect(stream.outputBytes()).toBe('one{"x":1}two{}'.length);
});

test("a call may lack an id, an index or, at first, a name", () => {
  const call = (given: Json) => chunk({ tool_calls: [given] });
  const named = streamed([
    call({ index: 0, id: "a", function: { arguments: "{" } }),
    call({ index: 0, function: { name: "late", arguments: "}" } }),
  ]);
  expect(assemble(named)["content"]).toEqual([{ type: "tool_use", id: "a", name: "late", input: {} }]);
  const bare = streamed([
    call({ function: { name: "one", arguments: '{"a":' } }),
    call({ function: { arguments: "1}" } }),
    call({ function: { name: "two", arguments: { b: 2 } } }),
  ]);
  expect(assemble(bare)["content"]).toEqual([
    { type: "tool_use", id: "call_chatcmpl-req_abc_0_0", name: "one", input: { a: 1 } },
    { type: "tool_use", id: "call_chatcmpl-req_abc_0_1", name: "two", input: { b: 2 } },
  ]);
});

test("text after a call is a new block", () => {
  const call = { index: 0, id: "a", function: { name: "one", arguments: "{}" } };
  const text = streamed([chunk({ content: "a" }), chunk({ tool_calls: [call] }), chunk({ content: "b" })]);
  expect(assemble(text)["content"]).toMatchObject([{ text: "a" }, { name: "one" }, { text: "b" }]);
});

test("choices other than the first are ignored", () => {
  const both = {
    choices: [
      { index: 1, delta: { content: "no" } },
      { index: 0, delta: { content: "yes" } },
    ],
  };
  expect(assemble(streamed([both]))["content"]).toMatchObject([{ text: "yes" }]);
});

test("reasoning state sent in pieces, as by some gateways, is joined", () => {
  const detail = (fields: Json) => ({ format: "anthropic-claude-v1", type: "reasoning.text", index: 0, ...fields });
  const text = streamed([
    chunk({ reasoning: "H", reasoning_details: [detail({ text: "H" })] }),
    chunk({ reasoning_details: [detail({ text: "m" })] }),
    chunk({ reasoning_details: [detail({ signature: "sig" })] }),
    chunk({ reasoning_content: "Unsigned", reasoning_details: [{ ...detail({}), format: "other", signature: "x" }] }),
  ]);
  expect(assemble(text)["content"]).toEqual([
    { type: "thinking", thinking: "Hm", signature: "sig" },
    { type: "thinking", thinking: "Unsigned", signature: expect.any(String) },
  ]);
});

const words = fc.string({ unit: "binary", maxLength: 12 });
const args = fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.jsonValue({ maxDepth: 2 })).map((each) => {
  return JSON.stringify(each);
});
const answers = fc.record({
  thoughts: fc.array(fc.record({ text: words, signature: fc.stringMatching(/^[A-Za-z0-9]{1,9}$/) }), { maxLength: 2 }),
  redacted: fc.boolean(),
  content: words,
  calls: fc.array(fc.record({ name: fc.stringMatching(/^[a-z_]{1,8}$/), args }), { maxLength: 3 }),
  finish: fc.constantFrom("stop", "tool_calls", "length", "content_filter"),
});

/** Cuts at random places, between any two code units. */
function pieces(text: string, cut: () => number): string[] {
  const made: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = at + 1 + (cut() % text.length);
    made.push(text.slice(at, end));
    at = end;
  }
  return made;
}

test("the assembled stream equals the JSON answer for any cuts and any interleaving of calls", () => {
  const cuts = fc.infiniteStream(fc.nat(1000));
  fc.assert(
    fc.property(answers, cuts, ({ thoughts, redacted, content, calls, finish }, random) => {
      const next = () => Number(random.next().value);
      const format = "anthropic-claude-v1";
      const details: Json[] = thoughts.map((each, index) => ({ type: "reasoning.text", ...each, format, index }));
      if (redacted) details.push({ type: "reasoning.encrypted", data: "xyz", format, index: details.length });
      const tool_calls = calls.map(({ name, args }, c) => ({
        id: `call_${c}`,
        type: "function",
        function: { name, arguments: args },
      }));
      const usage = { prompt_tokens: 9, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 2 } };
      const reasoning_content = thoughts.map(({ text }) => text).join("");
      const message = { content: content || null, reasoning_content, reasoning_details: details, tool_calls };
      const response = { choices: [{ index: 0, message, finish_reason: finish }], usage };

      const deltas: Json[] = thoughts.flatMap(({ text }, t) => [
        ...pieces(text, next).map((piece) => ({ reasoning_content: piece })),
        { reasoning_details: [details[t]] },
      ]);
      if (redacted) deltas.push({ reasoning_details: [details.at(-1)] });
      deltas.push(...pieces(content, next).map((piece) => ({ content: piece })));
      const rest = tool_calls.map(({ function: { arguments: args }, ...call }, index) => [
        { index, ...call, function: { name: calls[index]?.name, arguments: "" } },
        ...pieces(args, next).map((piece) => ({ index, function: { arguments: piece } })),
      ]);
      // Calls begin in order; their later deltas interleave.
      for (const call of rest) deltas.push({ tool_calls: [call.shift()] });
      while (rest.some((call) => call.length > 0)) {
        const piece = rest[next() % rest.length]?.shift();
        if (piece) deltas.push({ tool_calls: [piece] });
      }
      const chunks = [...deltas.map((delta) => chunk(delta)), chunk({}, { finish_reason: finish }), { usage }];

      expect(assemble(streamed(chunks))).toEqual(
        messagesConverter.responseFromChat(completeChat(response, ours, estimate), ours, {}),
      );
    }),
    { numRuns: 150 },
  );
});
