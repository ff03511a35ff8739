import fc from "fast-check";
import { expect, test } from "vitest";
import { chatStream, completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";
import { assemble, clientAnswer, eventsOf, type Json } from "../support/formats-responses-assemble.ts";

const tail = "0123456789abcdefghijklmn";
const ours = { model: "local/chat", created: 1_700_000_000, id: `chatcmpl-req_${tail}` };
const request = { model: "local/chat", input: "Hello" };
const chunk = (delta: Json, fields: Json = {}) => ({ choices: [{ index: 0, delta, ...fields }] });
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const estimate = { input: 1, output: 2 };

const pieces = fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 });
const calls = fc.array(
  fc.record({ isCustom: fc.boolean(), id: fc.boolean(), name: fc.string({ minLength: 1 }), pieces }),
  { maxLength: 3 },
);
const answers = fc.record({
  reasoning: fc.oneof(fc.constant<string[]>([]), pieces),
  content: fc.oneof(fc.constant<string[]>([]), pieces),
  refusal: fc.oneof(fc.constant<string[]>([]), pieces),
  calls,
  finish: fc.constantFrom("stop", "length", "content_filter", "tool_calls"),
  /** Which call says its next piece. */
  turns: fc.array(fc.nat(), { maxLength: 12 }),
});

/** The deltas of the calls, in turns; each call begins after the one before it. */
function* inTurns(each: typeof calls extends fc.Arbitrary<infer T> ? T : never, turns: readonly number[]) {
  const deltas = each.map(({ isCustom, id, name, pieces }, index) =>
    pieces.map((piece, p) => {
      const said = isCustom
        ? { custom: { ...(p === 0 && { name }), input: piece } }
        : { function: { ...(p === 0 && { name }), arguments: piece } };
      return {
        index,
        ...(p === 0 && { type: isCustom ? "custom" : "function", ...(id && { id: `call_${index}` }) }),
        ...said,
      };
    }),
  );
  for (const call of deltas) yield call.shift();
  for (let turn = 0; ; turn++) {
    const left = deltas.filter(({ length }) => length > 0);
    if (left.length === 0) return;
    yield left[(turns[turn % turns.length] ?? 0) % left.length]?.shift();
  }
}

/** An answer as chat has it, whole and in chunks. */
const both = answers.map(({ reasoning, content, refusal, calls, finish, turns }) => {
  const chunks = [
    chunk({ role: "assistant", content: null }),
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...content.map((piece) => chunk({ content: piece }, { logprobs: { content: [{ token: piece, logprob: -1 }] } })),
    ...refusal.map((piece) => chunk({ refusal: piece })),
    ...[...inTurns(calls, turns)].map((delta) => chunk({ tool_calls: [delta] })),
    chunk({}, { finish_reason: finish }),
    { choices: [], usage },
  ];
  const message = {
    reasoning_content: reasoning.join(""),
    content: content.join("") || null,
    refusal: refusal.join("") || null,
    tool_calls: calls.map(({ isCustom, id, name, pieces }, c) => ({
      ...(id && { id: `call_${c}` }),
      ...(isCustom
        ? { type: "custom", custom: { name, input: pieces.join("") } }
        : { type: "function", function: { name, arguments: pieces.join("") } }),
    })),
  };
  const logprobs = { content: content.map((piece) => ({ token: piece, logprob: -1 })) };
  const whole = completeChat({ choices: [{ message, logprobs, finish_reason: finish }], usage }, ours, estimate);
  return { chunks, whole };
});

function streamed(chunks: readonly Json[]): string {
  const stream = responsesConverter.streamFromChat(ours, request);
  return chunks.map((each) => stream.write(each)).join("") + stream.end(estimate);
}

test("a stream, wherever it is cut, is the answer that was not streamed; for the provider's client too", async () => {
  await fc.assert(
    fc.asyncProperty(both, async ({ chunks, whole }) => {
      const expected = responsesConverter.responseFromChat(whole, ours, request);
      const text = streamed(chunks);
      expect(assemble(eventsOf(text))).toEqual(expected);
      const { output, status, usage: counted } = await clientAnswer(text);
      expect({ output, status, usage: counted }).toMatchObject({
        output: expected["output"],
        status: expected["status"],
        usage: expected["usage"],
      });
    }),
    { numRuns: 150 },
  );
});

interface Delta {
  readonly content?: string | null;
  readonly refusal?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: { index: number; id?: string; type?: string; function?: Json; custom?: Json }[];
}

/** A chat answer from its chunks: whatever repeats is joined. */
function assembleChat(chunks: readonly Json[]): Json {
  const text = { content: "", refusal: "", reasoning_content: "" };
  const tools: Record<string, string>[] = [];
  let finish: unknown;
  for (const { choices } of chunks as { choices: { delta: Delta; finish_reason: unknown }[] }[])
    for (const { delta, finish_reason } of choices) {
      finish = finish_reason ?? finish;
      for (const field of ["content", "refusal", "reasoning_content"] as const) text[field] += delta[field] ?? "";
      for (const { index, id, type, function: called, custom } of delta.tool_calls ?? []) {
        const tool = (tools[index] ??= { id: "", name: "", input: "" });
        if (id) tool["type"] = type as string;
        const said = (called ?? custom) as Record<string, string>;
        tool["id"] += id ?? "";
        tool["name"] += said["name"] ?? "";
        tool["input"] += said["arguments"] ?? said["input"] ?? "";
      }
    }
  return { ...text, tools, finish };
}

test("the provider's stream as chat is the provider's whole answer as chat", () => {
  fc.assert(
    fc.property(both, ({ chunks, whole }) => {
      const provider = responsesConverter.responseFromChat(whole, ours, request);
      const { choices, usage: counted } = responsesConverter.responseToChat(provider) as {
        choices: Json[];
        usage: Json;
      };
      const stream = responsesConverter.streamToChat();
      const out = eventsOf(streamed(chunks)).flatMap((event) => stream.write(event));
      const { message, finish_reason } = choices[0] as { message: Json; finish_reason: unknown };
      expect(assembleChat(out)).toEqual({
        content: message["content"] ?? "",
        refusal: message["refusal"] ?? "",
        reasoning_content: message["reasoning_content"] ?? "",
        tools: ((message["tool_calls"] ?? []) as { id: string; type: string; function: Json; custom: Json }[]).map(
          ({ id, type, function: called, custom }) => ({
            id,
            type,
            name: (called ?? custom)["name"],
            input: called ? called["arguments"] : custom["input"],
          }),
        ),
        finish: finish_reason,
      });
      expect(stream.usage()).toEqual(counted);
      // What a chat caller reads of it is billed by the same usage.
      const writer = chatStream(ours);
      for (const each of out) writer.write(each);
      expect(writer.usage()).toEqual(counted);
    }),
    { numRuns: 300 },
  );
});
