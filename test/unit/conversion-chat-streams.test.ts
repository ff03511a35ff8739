import fc from "fast-check";
import { expect, test } from "vitest";
import { outputBytes } from "../../shared/formats/index.ts";
import { chatStream } from "../../workers/conversion/chat/complete-chat.ts";
import { runs } from "../support/property-runs.ts";

type Json = Readonly<Record<string, unknown>>;

interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

interface Assembled {
  role: string;
  content: string;
  calls: Call[];
  finish: string | null;
}

interface Delta {
  readonly role?: string;
  readonly content?: string;
  readonly tool_calls?: {
    readonly index: number;
    readonly id?: string;
    readonly type?: string;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

const eventsOf = (text: string): Json[] =>
  text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      expect(event.startsWith("data: ")).toBe(true);
      return JSON.parse(event.slice("data: ".length)) as Json;
    });

/** Assembles events as the strictest client does: it concatenates repeated fields. */
function assemble(text: string): Assembled[] {
  const choices: Assembled[] = [];
  for (const event of eventsOf(text)) {
    expect(event).toMatchObject({ object: "chat.completion.chunk", model: "local/chat" });
    expect(event["created"]).toBeTypeOf("number");
    expect(event["id"]).toBeTypeOf("string");
    expect(event).not.toHaveProperty("usage");
    for (const choice of event["choices"] as { index: number; delta: Delta; finish_reason: string | null }[]) {
      const { index, delta, finish_reason } = choice;
      expect(finish_reason === null || finish_reason.length > 0).toBe(true);
      const own = (choices[index] ??= { role: "", content: "", calls: [], finish: null });
      own.role += delta.role ?? "";
      own.content += delta.content ?? "";
      own.finish = finish_reason ?? own.finish;
      for (const call of delta.tool_calls ?? []) {
        const known = own.calls[call.index];
        expect(known !== undefined || (typeof call.id === "string" && call.type === "function")).toBe(true);
        own.calls[call.index] = {
          id: (known?.id ?? "") + (call.id ?? ""),
          name: (known?.name ?? "") + (call.function?.name ?? ""),
          arguments: (known?.arguments ?? "") + (call.function?.arguments ?? ""),
        };
      }
    }
  }
  return choices;
}

const toolCall = fc.record({
  name: fc.string({ minLength: 1 }),
  pieces: fc.array(fc.string(), { minLength: 1, maxLength: 4 }),
});
const answer = fc.record({
  texts: fc.array(fc.string({ unit: "binary" }), { maxLength: 5 }),
  calls: fc.array(toolCall, { maxLength: 3 }),
  finish: fc.constantFrom("stop", "tool_calls", "length"),
});
/** A server's possible deviations from OpenAI's. */
const deviations = fc.record({
  role: fc.constantFrom("first", "every", "never", "null"),
  // Two calls of one index differ only by their ids.
  call: fc.constantFrom(
    { index: "own", id: "first" },
    { index: "own", id: "every" },
    { index: "own", id: "empty" },
    { index: "own", id: "never" },
    { index: "same", id: "first" },
    { index: "same", id: "every" },
    { index: "none", id: "first" },
    { index: "none", id: "every" },
    { index: "none", id: "never" },
  ),
  type: fc.boolean(),
  created: fc.boolean(),
  finish: fc.constantFrom("null", "absent", "empty"),
  choiceIndex: fc.boolean(),
  usage: fc.boolean(),
  emptyChunks: fc.boolean(),
});
type Answer = typeof answer extends fc.Arbitrary<infer T> ? T : never;
type Deviations = typeof deviations extends fc.Arbitrary<infer T> ? T : never;

const idOf = (choice: number, call: number) => `call-${choice}-${call}`;

/** The deltas of one choice, as such a server sends them. */
function deltasOf({ texts, calls }: Answer, own: number, { role, call: callDeviation, type }: Deviations): Json[] {
  const deltas: Json[] = texts.map((content) => ({ content }));
  for (const [c, { name, pieces }] of calls.entries())
    for (const [p, piece] of pieces.entries()) {
      const first = p === 0;
      const withId = callDeviation.id === "every" || (first && callDeviation.id !== "never");
      const call = {
        ...(callDeviation.index !== "none" && { index: callDeviation.index === "own" ? c : 0 }),
        ...(withId && { id: idOf(own, c) }),
        ...(callDeviation.id === "empty" && !first && { id: "" }),
        ...(type && first && { type: "function" }),
        function: { ...(first && { name }), arguments: piece },
      };
      deltas.push({ tool_calls: [call] });
    }
  return deltas.map((delta, d) => ({
    ...((role === "every" || (role === "first" && d === 0)) && { role: "assistant" }),
    ...(role === "null" && { role: null }),
    ...delta,
  }));
}

test("a client assembles what was sent, however the server deviates", () => {
  fc.assert(
    fc.property(fc.array(answer, { minLength: 1, maxLength: 3 }), deviations, (answers, deviation) => {
      const single = answers.length === 1 && !deviation.choiceIndex;
      const chunks = answers.flatMap((each, own) => {
        const deltas = [...deltasOf(each, own, deviation), {}];
        return deltas.map((delta, d) => {
          const notYet = { null: { finish_reason: null }, absent: {}, empty: { finish_reason: "" } }[deviation.finish];
          const finish = d === deltas.length - 1 ? { finish_reason: each.finish } : notYet;
          return {
            id: "chatcmpl-up",
            ...(deviation.created && { created: 5 }),
            choices: [{ ...(!single && { index: own }), delta, ...finish }],
            ...(deviation.usage && { usage: { prompt_tokens: 1, completion_tokens: d } }),
          };
        });
      });
      if (deviation.emptyChunks) chunks.splice(1, 0, { id: "", choices: [] });
      const stream = chatStream({ model: "local/chat", created: 1_700_000_000, id: "chatcmpl-req_abc" });
      const assembled = assemble(chunks.map((each) => stream.write(each)).join(""));
      expect(assembled).toEqual(
        answers.map(({ texts, calls, finish }, own) => ({
          role: "assistant",
          content: texts.join(""),
          finish,
          calls: calls.map(({ name, pieces }, c) => ({
            id: deviation.call.id === "never" ? `call_chatcmpl-req_abc_${own}_${c}` : idOf(own, c),
            name,
            arguments: pieces.join(""),
          })),
        })),
      );
    }),
    { numRuns: runs(500) },
  );
});

test("output is counted in bytes of text, reasoning, refusal and tool calls", () => {
  expect(outputBytes({ content: "é", refusal: "no", reasoning_content: "abc" })).toBe(7);
  expect(outputBytes({ reasoning: "abc" })).toBe(3);
  // MiniMax's own field; a signed detail repeats content that is already counted.
  expect(outputBytes({ reasoning_details: [{ type: "reasoning.text", text: "abc" }] })).toBe(3);
  expect(outputBytes({ reasoning_details: [{ type: "reasoning.text", text: "abc", signature: "x" }] })).toBe(0);
  expect(outputBytes({ tool_calls: [{ function: { name: "f", arguments: "{}" } }, null, {}] })).toBe(3);
  expect(outputBytes({ content: null, tool_calls: "x" })).toBe(0);
});
