import fc from "fast-check";
import { expect, test } from "vitest";
import { outputBytes } from "../../shared/formats/index.ts";
import { chatStream, completeChat } from "../../workers/conversion/chat/complete-chat.ts";
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

const created = 1_700_000_000;
const begin = () => chatStream({ model: "local/chat", created, id: "chatcmpl-req_abc" });
const chunk = (delta: Json, fields: Json = {}) => ({ choices: [{ index: 0, delta, ...fields }] });

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

const writeAll = (chunks: readonly Json[]) => {
  const stream = begin();
  return { text: chunks.map((each) => stream.write(each)).join(""), stream };
};

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
      const assembled = assemble(writeAll(chunks).text);
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

test("parallel tool calls may interleave", () => {
  const piece = (index: number, fields: Json) => chunk({ tool_calls: [{ index, ...fields }] });
  const { text } = writeAll([
    piece(0, { id: "a", function: { name: "one", arguments: "" } }),
    piece(1, { id: "b", function: { name: "two", arguments: "" } }),
    piece(0, { function: { arguments: "1" } }),
    piece(1, { function: { arguments: "2" } }),
  ]);
  expect(assemble(text)[0]?.calls).toEqual([
    { id: "a", name: "one", arguments: "1" },
    { id: "b", name: "two", arguments: "2" },
  ]);
});

test("several tool calls in one delta, without index and id, are several calls", () => {
  const calls = ["one", "two"].map((name) => ({ function: { name, arguments: "{}" } }));
  const { text } = writeAll([chunk({ tool_calls: calls })]);
  const made = assemble(text)[0]?.calls ?? [];
  expect(made.map(({ name }) => name)).toEqual(["one", "two"]);
  expect(new Set(made.map(({ id }) => id)).size).toBe(2);
  for (const { id } of made) expect(id.length).toBeLessThanOrEqual(40);
});

test("a custom tool stays one", () => {
  const call = { index: 0, id: "a", type: "custom", custom: { name: "sql", input: "" } };
  const { text } = writeAll([chunk({ tool_calls: [call] })]);
  expect(eventsOf(text)[0]).toMatchObject({ choices: [{ delta: { tool_calls: [call] } }] });
});

test("unknown fields of a server pass through", () => {
  const { text } = writeAll([
    { system_fingerprint: "fp", ...chunk({ reasoning_content: "hm" }, { logprobs: { content: [] } }) },
  ]);
  expect(eventsOf(text)[0]).toMatchObject({
    system_fingerprint: "fp",
    choices: [{ delta: { reasoning_content: "hm" }, logprobs: { content: [] } }],
  });
});

test.each([[{}], [{ choices: null }], [{ choices: "x" }], [{ choices: [] }]])("a chunk of %j is no event", (sent) => {
  expect(begin().write(sent)).toBe("");
});

test("choices that are not objects become events that a client can read", () => {
  expect(assemble(writeAll([{ choices: [null, "x", 5] }]).text)).toHaveLength(3);
});

test("the last chunk carries the usage, whichever chunk brought it", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, completion_tokens_details: { x: 1 } };
  for (const chunks of [
    [chunk({ content: "a" }), { choices: [], usage }],
    [{ ...chunk({ content: "a" }), usage }],
    [
      { ...chunk({ content: "a" }), usage: { prompt_tokens: 3 } },
      { ...chunk({}), usage },
    ],
    [
      { ...chunk({ content: "a" }), usage },
      { ...chunk({}), usage: null },
    ],
  ]) {
    const { text, stream } = writeAll(chunks);
    expect(text).not.toContain("usage");
    expect(stream.usage()).toEqual(usage);
    const end = stream.end({ input: 99, output: 99 });
    expect(end.endsWith("\n\ndata: [DONE]\n\n")).toBe(true);
    expect(eventsOf(end.replace("data: [DONE]\n\n", ""))).toEqual([
      { id: "chatcmpl-req_abc", object: "chat.completion.chunk", created, model: "local/chat", choices: [], usage },
    ]);
  }
});

const ours = { model: "local/chat", created, id: "chatcmpl-ours" };
const estimated = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 };

test.each([undefined, null, {}, "many", { prompt_tokens: "8" }])("the estimate replaces usage of %j", (usage) => {
  const stream = begin();
  stream.write({ ...chunk({ content: "a" }), usage });
  const [last] = eventsOf(stream.end({ input: 8, output: 2 }).replace("data: [DONE]\n\n", ""));
  expect(last).toMatchObject({ usage: estimated });
  const whole = completeChat({ choices: [], usage }, ours, { input: 8, output: 2 });
  expect(whole.usage).toEqual(estimated);
});

test("usage equals what is billed: reasoning counted only in the total is output", () => {
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 4,
    total_tokens: 107,
    prompt_tokens_details: { cached_tokens: 1 },
  };
  const whole = completeChat({ choices: [], usage }, ours, { input: 0, output: 0 });
  expect(whole.usage).toEqual({ ...usage, completion_tokens: 104 });
});

test("an answer has our model id and all fields of the provider", () => {
  const choices = [{ index: 0, message: { role: "assistant", content: "a", new: 1 }, finish_reason: "stop" }];
  const response = { id: "x", model: "native", choices, system_fingerprint: "fp", created: 5 };
  const { usage: _, ...whole } = completeChat(response, ours, { input: 0, output: 0 });
  expect(whole).toEqual({ ...response, object: "chat.completion", model: "local/chat" });
});

test("missing fields of an answer are filled in", () => {
  const call = { function: { name: "f", arguments: "{}" } };
  const whole = completeChat({ choices: [{ message: { tool_calls: [call, call] } }] }, ours, { input: 0, output: 0 });
  const ids = ["call_chatcmpl-ours_0_0", "call_chatcmpl-ours_0_1"];
  expect(whole).toMatchObject({
    id: "chatcmpl-ours",
    created,
    choices: [
      {
        index: 0,
        finish_reason: null,
        message: {
          role: "assistant",
          content: null,
          tool_calls: ids.map((id) => ({ ...call, id, type: "function" })),
        },
      },
    ],
  });
  expect(completeChat({}, ours, { input: 0, output: 0 })).toMatchObject({ id: "chatcmpl-ours", choices: [] });
});

test("output is counted in bytes of text, reasoning, refusal and tool calls", () => {
  expect(outputBytes({ content: "é", refusal: "no", reasoning_content: "abc" })).toBe(7);
  expect(outputBytes({ reasoning: "abc" })).toBe(3);
  // MiniMax's own field; a signed detail repeats content that is already counted.
  expect(outputBytes({ reasoning_details: [{ type: "reasoning.text", text: "abc" }] })).toBe(3);
  expect(outputBytes({ reasoning_details: [{ type: "reasoning.text", text: "abc", signature: "x" }] })).toBe(0);
  expect(outputBytes({ tool_calls: [{ function: { name: "f", arguments: "{}" } }, null, {}] })).toBe(3);
  expect(outputBytes({ content: null, tool_calls: "x" })).toBe(0);
  const { stream } = writeAll([chunk({ content: "ab" }), chunk({ content: "é" })]);
  expect(stream.outputBytes()).toBe(4);
});
