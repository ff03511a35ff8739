import fc from "fast-check";
import { expect, test } from "vitest";
import type { Format } from "#formats";
import { converters } from "../../workers/conversion/index.ts";
import { callerTools } from "../../workers/conversion/responses/caller-tools.ts";
import { callers } from "../support/format-callers.ts";
import { estimate, google, type Json, identity as ours, showThoughts } from "../support/formats-gemini-assemble.ts";
import { clientAnswer } from "../support/formats-responses-assemble.ts";
import { runs } from "../support/property-runs.ts";
import { writtenEvents } from "../support/written-events.ts";

const pieces = fc.array(fc.string({ unit: "binary", minLength: 1 }), { minLength: 1, maxLength: 4 });
const maybe = fc.oneof(fc.constant<string[]>([]), pieces);
const json = fc.oneof(
  fc.constant(""),
  fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.jsonValue({ maxDepth: 2 })).map((args) => JSON.stringify(args)),
  fc.string().map((input) => JSON.stringify({ input })),
);
/** Arguments that are an object, and any text. */
const wholeArgs = json.map((text) => text.match(/[^]{1,5}/g) ?? [""]);
const anyArgs = fc.oneof(wholeArgs, pieces, fc.constant<string[]>(['{"broken"', ":"]));

const choiceWith = (args: fc.Arbitrary<string[]>) =>
  fc.record({
    thoughts: fc.array(maybe, { maxLength: 2 }),
    /** The state that follows each thought, if the provider gives it. */
    state: fc.constantFrom("", "c2ln"),
    content: maybe,
    refusal: maybe,
    signature: fc.constantFrom("", "c2ln"),
    calls: fc.array(
      fc.record({
        kind: fc.constantFrom("function", "custom", "namespaced", "tool_search"),
        id: fc.boolean(),
        name: fc.string({ minLength: 1 }),
        signature: fc.constantFrom("", "b25l"),
        args,
      }),
      { maxLength: 4 },
    ),
    finish: fc.constantFrom("stop", "length", "content_filter", "tool_calls"),
    /** The order of the calls' pieces. */
    turns: fc.array(fc.nat(), { maxLength: 12 }),
  });
type Choice = ReturnType<typeof choiceWith> extends fc.Arbitrary<infer T> ? T : never;
type Call = Choice["calls"][number];

/** A caller that asks for all of an answer. */
interface Asking {
  readonly choices: number;
  readonly args: fc.Arbitrary<string[]>;
  /** The state of a thought, as the format's own provider has it. */
  readonly detail: (text: string, state: string, index: number) => Json;
  readonly hasLogprobs?: boolean;
  readonly request: (calls: readonly Call[]) => Json;
  /** The names of the called tools in chat. */
  readonly names?: (calls: readonly Call[]) => string[];
}

const toolsOf = (calls: readonly Call[]) =>
  calls.map(({ kind, name }, c): Json => {
    if (kind === "tool_search") return { type: kind, execution: "client" };
    const tool = { type: kind === "custom" ? "custom" : "function", name: `${name}${c}` };
    return kind === "namespaced" ? { type: "namespace", name: "n", tools: [tool] } : tool;
  });

const asking: Readonly<Record<"messages" | "responses" | "gemini", Asking>> = {
  messages: {
    choices: 1,
    args: wholeArgs,
    detail: (text, signature, index) => ({
      ...(text === "" ? { type: "reasoning.encrypted", data: signature } : { type: "reasoning.text", text, signature }),
      format: "anthropic-claude-v1",
      index,
    }),
    request: () => callers.messages.request,
  },
  responses: {
    choices: 1,
    args: anyArgs,
    detail: (_, data) => ({ type: "reasoning.encrypted", data }),
    hasLogprobs: true,
    request: (calls) => ({
      ...callers.responses.request,
      tools: toolsOf(calls),
      include: calls.length > 2 ? ["reasoning.encrypted_content"] : [],
    }),
    names(calls) {
      const { given, chatName } = callerTools({ tools: toolsOf(calls) });
      return calls.map(({ kind }, c) => {
        const tool =
          given.find(({ path }) => path.startsWith(`tools[${c}]`)) ?? given.find(({ type }) => type === kind);
        return chatName(tool as (typeof given)[number]);
      });
    },
  },
  gemini: {
    choices: 2,
    args: anyArgs,
    detail: (_, data) => ({ type: "reasoning.encrypted", data }),
    request: (calls) => (calls.length > 1 ? {} : showThoughts),
  },
};
const formats = Object.keys(asking) as (keyof typeof asking)[];

/** The interleaved deltas of the calls, which begin in order. */
function* inTurns(calls: readonly Json[], args: readonly (readonly string[])[], turns: readonly number[]) {
  const rest = args.map((pieces, index) => pieces.slice(1).map((piece) => ({ index, function: { arguments: piece } })));
  for (const [index, { function: called, ...given }] of calls.entries())
    yield { index, ...given, function: { ...(called as Json), arguments: args[index]?.[0] ?? "" } };
  for (let turn = 0; ; turn++) {
    const remaining = rest.filter(({ length }) => length > 0);
    if (remaining.length === 0) return;
    yield remaining[(turns[turn % turns.length] ?? 0) % remaining.length]?.shift() as Json;
  }
}

/** A choice of chat, whole and in chunks. */
function choiceOf(given: Choice, index: number, { detail, hasLogprobs, names }: Asking) {
  const { thoughts, state, content, refusal, signature, calls, finish, turns } = given;
  const details = thoughts.map((text, at) => (state ? [detail(text.join(""), state, at)] : []));
  const called = names?.(calls) ?? calls.map(({ name }) => name);
  const toolCalls = calls.map(({ id, signature }, c) => ({
    ...(id && { id: `call_${index}_${c}` }),
    type: "function",
    function: { name: called[c] },
    ...(signature && google(signature)),
  }));
  const logprobs = (piece: string) => (hasLogprobs ? [{ token: piece, logprob: -1 }] : []);
  const message = {
    reasoning_content: thoughts.flat().join(""),
    reasoning_details: details.flat(),
    content: content.join("") || null,
    refusal: refusal.join("") || null,
    ...(signature && google(signature)),
    ...(calls.length > 0 && {
      tool_calls: toolCalls.map(({ function: called, ...call }, c) => ({
        ...call,
        function: { ...called, arguments: calls[c]?.args.join("") },
      })),
    }),
  };
  const args = calls.map((call) => call.args);
  const deltas: (readonly [delta: Json, more?: Json])[] = [
    [{ role: "assistant", content: null }],
    ...thoughts.flatMap((text, at) => [
      ...text.map((piece) => [{ reasoning_content: piece }] as const),
      ...(details[at] ?? []).map((each) => [{ reasoning_details: [each] }] as const),
    ]),
    ...content.map((piece) => [{ content: piece }, { logprobs: { content: logprobs(piece) } }] as const),
    ...refusal.map((piece) => [{ refusal: piece }] as const),
    ...(signature ? [[google(signature)] as const] : []),
    ...[...inTurns(toolCalls, args, turns)].map((each) => [{ tool_calls: [each] }] as const),
    [{}, { finish_reason: finish }],
  ];
  return {
    whole: { index, message, logprobs: { content: content.flatMap(logprobs) }, finish_reason: finish },
    chunks: deltas.map(([delta, more]) => ({ choices: [{ index, delta, ...more }] })),
  };
}

const usage = {
  prompt_tokens: 9,
  completion_tokens: 5,
  total_tokens: 14,
  completion_tokens_details: { reasoning_tokens: 2 },
};

/** A chat answer as a format's whole response and as its stream, with the format's own ids of calls. */
function answerOf(format: keyof typeof asking, given: readonly Choice[]) {
  const choices = given.map((each, index) => choiceOf(each, index, asking[format]));
  const request = asking[format].request(given.flatMap(({ calls }) => calls));
  const converter = converters[format];
  const chat = { choices: choices.map(({ whole }) => whole), usage };
  const writer = converter.streamFromChat(ours, request);
  const chunks = [...choices.flatMap(({ chunks }) => chunks), { choices: [], usage }];
  return {
    whole: converter.responseFromChat(converters.chat.native.finish(chat, ours, estimate), ours, request),
    stream: chunks.map((chunk) => writer.write(chunk)).join("") + writer.end(estimate),
  };
}

test.each(formats)(
  "the assembled stream for a %s caller is the whole response, wherever it was cut",
  async (format) => {
    const { assemble, held } = callers[format];
    const { args, choices } = asking[format];
    await fc.assert(
      fc.asyncProperty(fc.array(choiceWith(args), { minLength: 1, maxLength: choices }), async (given) => {
        const { whole, stream } = answerOf(format, given);
        expect(assemble(stream)).toEqual(held(whole));
        if (format !== "responses") return;
        const { output, status, usage } = await clientAnswer(stream);
        expect({ output, status, usage }).toMatchObject({
          output: whole["output"],
          status: whole["status"],
          usage: whole["usage"],
        });
      }),
      { numRuns: runs(300) },
    );
  },
);

/** Chat's answer from a provider's, and from its stream. */
function chatOf(format: Format, whole: Json, events: readonly Json[]) {
  const { assemble, held } = callers.chat;
  const reader = converters[format].streamToChat();
  const writer = converters.chat.native.stream(ours);
  const chunks = events.flatMap((event) => [...reader.write(event)]);
  const stream = chunks.map((chunk) => writer.write(chunk)).join("") + writer.end(estimate);
  const counted = converters[format].responseToChat(whole);
  expect(reader.usage()).toEqual(counted["usage"]);
  return [assemble(stream), held(converters.chat.native.finish(counted, ours, estimate))];
}

test.each(formats)("the stream of a %s provider as chat is its whole response as chat", (format) => {
  fc.assert(
    fc.property(choiceWith(asking[format].args), (given) => {
      // A provider that shows its thoughts has a state of them.
      const { whole, stream } = answerOf(format, [{ ...given, state: "c2ln" }]);
      const [streamed, answered] = chatOf(format, whole, writtenEvents[format](stream) as Json[]);
      expect(streamed).toEqual(answered);
    }),
    { numRuns: runs(300) },
  );
});

const text = fc.string({ maxLength: 10 });
const partOf: fc.Arbitrary<Json> = fc.oneof(
  fc.record({ text, thought: fc.constant(true) }),
  fc.record({ text }),
  fc.record({ text: fc.constant(""), thoughtSignature: fc.constantFrom("c2ln", "b25l") }),
  fc.record({
    functionCall: fc.record(
      { id: fc.uuid(), name: fc.constantFrom("f", "g"), args: fc.dictionary(fc.constantFrom("a"), text) },
      { requiredKeys: ["name"] },
    ),
    thoughtSignature: fc.constant("YQ=="),
  }),
);

test("the stream of a Gemini provider as chat is its whole response, in whatever order its parts come", () => {
  fc.assert(
    fc.property(fc.array(fc.array(partOf, { maxLength: 3 }), { minLength: 1, maxLength: 5 }), (events) => {
      const answer = (parts: Json[], fields: Json = {}): Json => ({
        candidates: [{ content: { parts, role: "model" }, index: 0, ...fields }],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 8, thoughtsTokenCount: 1 },
        responseId: "QHiLaa6L",
      });
      const end = { finishReason: "STOP" };
      const all = [...events.map((parts) => answer(parts)), answer([], end)];
      const [streamed, answered] = chatOf("gemini", answer(events.flat(), end), all);
      expect(streamed).toEqual(answered);
    }),
  );
});
