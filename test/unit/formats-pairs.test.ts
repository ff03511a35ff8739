import fc from "fast-check";
import { expect, test } from "vitest";
import { type Format, formats } from "#formats";
import { converters } from "../../workers/conversion/index.ts";
import { estimate, identity as ours } from "../support/formats-gemini-assemble.ts";
import { callers } from "../support/formats-pairs-callers.ts";
import { type Cut, type Json, providers, type Said } from "../support/formats-pairs-providers.ts";

const pairs = formats.flatMap((caller) => formats.map((provider): [Format, Format] => [caller, provider]));

/** The caller's answer from the provider's, as workers convert it. */
function answered(caller: Format, provider: Format, answer: Json): Json {
  if (caller === provider) return converters[caller].native.finish(answer, ours, estimate);
  const chat = converters.chat.native.finish(converters[provider].responseToChat(answer), ours, estimate);
  return converters[caller].responseFromChat(chat, ours, callers[caller].request);
}

function streamed(caller: Format, provider: Format, events: readonly Json[]): string {
  const isNative = caller === provider;
  const reader = converters[provider].streamToChat();
  const writer = isNative
    ? converters[caller].native.stream(ours)
    : converters[caller].streamFromChat(ours, callers[caller].request);
  const items = isNative ? events : events.flatMap((event) => [...reader.write(event)]);
  return items.map((item) => writer.write(item)).join("") + writer.end(estimate);
}

const word = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const maybe = fc.oneof(fc.constant(""), word);
const tokens = fc.nat(1000);
const call = fc.record({
  id: fc.stringMatching(/^call_[a-z0-9]{4,12}$/),
  name: fc.stringMatching(/^[a-z_]{1,10}$/),
  args: fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.oneof(word, fc.integer(), fc.boolean(), fc.array(word)), {
    maxKeys: 3,
  }),
});

const spoken: fc.Arbitrary<Said> = fc
  .record({
    reasoning: maybe,
    state: fc.stringMatching(/^[A-Za-z0-9+/]{8,20}$/),
    text: maybe,
    refusal: maybe,
    calls: fc.uniqueArray(call, { maxLength: 3, selector: ({ id }) => id }),
    finish: fc.constantFrom("stop" as const, "length" as const, "content_filter" as const),
    input: tokens,
    cached: tokens,
    output: tokens,
    thought: tokens,
  })
  .map(({ finish, refusal, calls, input, cached, output, thought, ...said }) => ({
    ...said,
    // Two providers have a refusal's text only at the end, and no answer both refuses and calls a tool.
    calls: finish === "content_filter" ? [] : calls,
    finish: finish === "stop" && calls.length > 0 ? "tool_calls" : finish,
    refusal: finish === "content_filter" ? refusal : "",
    usage: { input: input + cached, cached, output: output + thought, reasoning: thought },
  }));

/** Cuts after the UTF-16 units whose bit is set, even within a character. */
const cutBy =
  (bits: readonly boolean[]): Cut =>
  (text) => {
    const pieces: string[] = [];
    let piece = "";
    for (let at = 0; at < text.length; at++) {
      piece += text.charAt(at);
      if (bits[at % bits.length] !== true && at < text.length - 1) continue;
      pieces.push(piece);
      piece = "";
    }
    return pieces;
  };

test.each(pairs)(
  "for a %s caller a stream of a %s provider equals the JSON answer for any cuts",
  (caller, provider) => {
    fc.assert(
      fc.property(spoken, fc.array(fc.boolean(), { minLength: 1, maxLength: 24 }), (said, bits) => {
        const { assemble, held } = callers[caller];
        const whole = answered(caller, provider, providers[provider].whole(said));
        expect(assemble(streamed(caller, provider, providers[provider].events(said, cutBy(bits))))).toEqual(
          held(whole),
        );
      }),
      { numRuns: 60 },
    );
  },
);

/** The content that a caller can read: two formats have no field for a refusal. */
function understood(said: Said, caller: Format): Partial<Said> {
  const { state: _, refusal, ...rest } = said;
  return caller === "chat" || caller === "responses" ? { ...rest, refusal } : { ...rest, text: said.text + refusal };
}

test.each(pairs.filter(([caller, provider]) => caller !== provider))(
  "a %s caller receives all that a %s provider sent, with its end and its counts",
  (caller, provider) => {
    fc.assert(
      fc.property(spoken, (said) => {
        const { held, heard } = callers[caller];
        expect(heard(held(answered(caller, provider, providers[provider].whole(said))))).toEqual(
          understood(said, caller),
        );
      }),
      { numRuns: 60 },
    );
  },
);
