import fc from "fast-check";
import { expect, test } from "vitest";
import { chatStream, completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import {
  type Answer,
  assemble,
  estimate,
  google,
  type Json,
  ours,
  type Part,
  showThoughts,
  streamed,
} from "../support/formats-gemini-assemble.ts";

/** The text in pieces, cut where the numbers say. */
function pieces(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((start, i) => text.slice(start, at[i])).filter((piece) => piece !== "");
}

const cuts = fc.array(fc.nat(60), { maxLength: 6 });
const words = fc.option(fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }), { nil: null });
const signature = fc.option(fc.constantFrom("c2ln", "b25l"), { nil: undefined });
const callOf = fc.record({
  name: fc.constantFrom("f", "g"),
  args: fc.oneof(
    fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(fc.string(), fc.integer())).map((args) => JSON.stringify(args)),
    fc.constantFrom("", '{"broken":'),
  ),
  signature,
  cuts,
});
const choiceOf = fc.record({
  content: words,
  reasoning: words,
  calls: fc.array(callOf, { maxLength: 3 }),
  signature,
  finish: fc.constantFrom("stop", "tool_calls", "length", "content_filter"),
  cuts,
});
type Choice = typeof choiceOf extends fc.Arbitrary<infer Value> ? Value : never;

const usage = {
  prompt_tokens: 11,
  completion_tokens: 6,
  total_tokens: 17,
  completion_tokens_details: { reasoning_tokens: 2 },
};

function wholeOf(choices: readonly Choice[]): Json {
  return {
    choices: choices.map(({ content, reasoning, calls, signature, finish }, index) => ({
      index,
      message: {
        content,
        ...(reasoning && { reasoning_content: reasoning }),
        ...(signature && google(signature)),
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ name, args, signature }, c) => ({
            id: `call_${index}_${c}`,
            function: { name, arguments: args },
            ...(signature && google(signature)),
          })),
        }),
      },
      finish_reason: finish,
    })),
    usage,
  };
}

/** The pieces of all calls in turns, as some servers send them. */
function interleaved(calls: Choice["calls"], index: number): Json[] {
  const begun = calls.map(({ name, signature }, c) => ({
    index: c,
    id: `call_${index}_${c}`,
    function: { name, arguments: "" },
    ...(signature && google(signature)),
  }));
  const rest = calls.map(({ args, cuts }, c) =>
    pieces(args, cuts).map((piece) => ({ index: c, function: { arguments: piece } })),
  );
  const longest = Math.max(0, ...rest.map((each) => each.length));
  const turns = Array.from({ length: longest }, (_, i) => rest.flatMap((each) => each[i] ?? []));
  return [...begun, ...turns.flat()].map((call) => ({ tool_calls: [call] }));
}

function chunksOf(choices: readonly Choice[]): Json[] {
  const deltas = choices.map(({ content, reasoning, calls, signature, finish, cuts }, index) =>
    [
      { role: "assistant", content: "" },
      ...pieces(reasoning ?? "", cuts).map((piece) => ({ reasoning_content: piece })),
      ...pieces(content ?? "", cuts).map((piece) => ({ content: piece })),
      ...(signature ? [google(signature)] : []),
      ...interleaved(calls, index),
    ]
      .map((delta: Json) => ({ choices: [{ index, delta, finish_reason: null }] }) as Json)
      .concat({ choices: [{ index, delta: {}, finish_reason: finish }] }),
  );
  return [...deltas.flat(), { choices: [], usage }];
}

test("a stream assembled is the answer as a whole, wherever it was cut", () => {
  fc.assert(
    fc.property(fc.array(choiceOf, { minLength: 1, maxLength: 2 }), fc.boolean(), (choices, thoughts) => {
      const request = thoughts ? showThoughts : {};
      const whole = geminiConverter.responseFromChat(completeChat(wholeOf(choices), ours, estimate), ours, request);
      expect(assemble(streamed(chunksOf(choices), request))).toEqual(assemble([whole as unknown as Answer]));
    }),
  );
});

test("a stream assembled is the answer at each single cut of its text and arguments", () => {
  const content = "Grüße, 日本 👋🏽";
  const args = '{"city":"Zürich","n":[1,2]}';
  for (let cut = 0; cut <= Math.max(content.length, args.length); cut++) {
    const choice: Choice = {
      content,
      reasoning: content,
      calls: [
        { name: "f", args, signature: "b25l", cuts: [cut] },
        { name: "g", args, signature: undefined, cuts: [cut, cut + 3] },
      ],
      signature: "c2ln",
      finish: "tool_calls",
      cuts: [cut],
    };
    const whole = geminiConverter.responseFromChat(completeChat(wholeOf([choice]), ours, estimate), ours, showThoughts);
    expect(assemble(streamed(chunksOf([choice]), showThoughts))).toEqual(assemble([whole as unknown as Answer]));
  }
});

function withoutIndex(call: Json): Json {
  const { index: _, ...rest } = call;
  return rest;
}

/** A chat client: what comes again is joined. */
function chatAssembled(chunks: readonly Json[]): Json {
  const stream = chatStream(ours);
  const text = chunks.map((each) => stream.write(each)).join("") + stream.end(estimate);
  const events = text.split("\n\n").filter((event) => event !== "" && event !== "data: [DONE]");
  const messages: Record<string, unknown>[] = [];
  const finishes: unknown[] = [];
  let last: Json = {};
  for (const event of events) {
    last = JSON.parse(event.slice("data: ".length)) as Json;
    for (const { index, delta, finish_reason } of last["choices"] as {
      index: number;
      delta: Json;
      finish_reason: unknown;
    }[]) {
      const message = (messages[index] ??= {});
      for (const [field, value] of Object.entries(delta)) {
        const old = message[field];
        if (field === "tool_calls") message[field] = [...((old as unknown[]) ?? []), ...(value as unknown[])];
        else message[field] = typeof old === "string" && field !== "role" ? old + String(value) : value;
      }
      finishes[index] = finish_reason ?? finishes[index];
    }
  }
  const plain = messages.map(({ tool_calls, ...message }) => ({
    content: null,
    refusal: null,
    ...message,
    ...(Array.isArray(tool_calls) && { tool_calls: tool_calls.map(withoutIndex) }),
  }));
  return { choices: plain.map((message, i) => ({ message, finish_reason: finishes[i] })), usage: last["usage"] };
}

const partOf: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text: fc.string({ maxLength: 10 }), thought: fc.constant(true) }),
  fc.record({ text: fc.string({ maxLength: 10 }) }),
  fc.record({ text: fc.constant(""), thoughtSignature: fc.constantFrom("c2ln", "b25l") }),
  fc.record({
    functionCall: fc.record(
      { id: fc.uuid(), name: fc.constantFrom("f", "g"), args: fc.dictionary(fc.constantFrom("a"), fc.string()) },
      { requiredKeys: ["name"] },
    ),
    thoughtSignature: fc.constant("YQ=="),
  }),
);

test("the provider's stream assembled is the provider's answer, in chat and back in its format", () => {
  fc.assert(
    fc.property(fc.array(fc.array(partOf, { maxLength: 3 }), { minLength: 1, maxLength: 5 }), (events) => {
      const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 8, thoughtsTokenCount: 1 };
      const answer = (parts: Part[], fields: Json = {}): Json => ({
        candidates: [{ content: { parts, role: "model" }, index: 0, ...fields }],
        usageMetadata,
        responseId: "QHiLaa6L",
      });
      const done = { finishReason: "STOP" };
      const reader = geminiConverter.streamToChat();
      const chunks = [...events.map((parts) => answer(parts)), answer([], done)].flatMap((event) => [
        ...reader.write(event),
      ]);
      const chat = completeChat(geminiConverter.responseToChat(answer(events.flat(), done)), ours, estimate);
      const { choices, usage } = chatAssembled(chunks) as { choices: Json[]; usage: Json };
      expect(choices.map(({ message, finish_reason }) => [message, finish_reason])).toEqual(
        (chat["choices"] as Json[]).map(({ message, finish_reason }) => [message, finish_reason]),
      );
      expect(usage).toEqual(chat["usage"]);
      const whole = geminiConverter.responseFromChat(chat, ours, showThoughts);
      const sorted = (assembled: Json) =>
        (assembled["candidates"] as { parts: Part[] }[]).map(({ parts }) => byKind(parts));
      expect(sorted(assemble(streamed(chunks, showThoughts)))).toEqual(sorted(assemble([whole as unknown as Answer])));
    }),
  );
});

/** Thoughts may come between the words of a stream; what is said of each kind is the same. */
function byKind(parts: readonly Part[]): Json {
  const textOf = (thought: boolean) =>
    parts
      .filter((part) => part.functionCall === undefined && (part.thought === true) === thought)
      .map((part) => part.text)
      .join("");
  return {
    thoughts: textOf(true),
    said: textOf(false),
    calls: parts.filter((part) => part.functionCall !== undefined),
    signature: parts.filter((part) => part.functionCall === undefined).findLast((part) => part.thoughtSignature)
      ?.thoughtSignature,
  };
}
