import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateTokens, type Format } from "#formats";
import { converters, tokenUsage } from "../../workers/conversion/index.ts";

const none = {
  input: 0,
  cached_input: 0,
  cache_write: 0,
  cache_write_1h: 0,
  audio_input: 0,
  output: 0,
  audio_output: 0,
};

test.each<[what: string, usage: unknown, counted: object]>([
  ["plain counts", { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }, { input: 10, output: 5 }],
  [
    "OpenAI's cached and audio tokens",
    {
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 60, audio_tokens: 10 },
      completion_tokens_details: { audio_tokens: 20, reasoning_tokens: 5 },
    },
    { input: 30, cached_input: 60, audio_input: 10, output: 30, audio_output: 20 },
  ],
  ["DeepSeek's cache hits", { prompt_tokens: 10, prompt_cache_hit_tokens: 4 }, { input: 6, cached_input: 4 }],
  [
    "cache writes",
    { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 5 } },
    { input: 3, cached_input: 2, cache_write: 5 },
  ],
  [
    "cache writes of one hour",
    { prompt_tokens: 10, prompt_tokens_details: { cache_write_tokens: 5, cache_write_1h_tokens: 4 } },
    { input: 5, cache_write: 1, cache_write_1h: 4 },
  ],
  [
    "reasoning that only the total counts",
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 115 },
    { input: 10, output: 105 },
  ],
  ["an embedding", { prompt_tokens: 10, total_tokens: 10 }, { input: 10 }],
  [
    "more cached and audio tokens than there are",
    { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 99, audio_tokens: 99 } },
    { cached_input: 10 },
  ],
  [
    "more audio output than output",
    { prompt_tokens: 1, completion_tokens: 5, completion_tokens_details: { audio_tokens: 9 } },
    { input: 1, audio_output: 5 },
  ],
  [
    "hostile details",
    { prompt_tokens: 3, completion_tokens: null, total_tokens: "9", prompt_tokens_details: "x" },
    { input: 3 },
  ],
])("maps %s to price keys", (_what, usage, counted) => {
  expect(tokenUsage(usage)).toEqual({ ...none, ...counted });
});

test.each([
  undefined,
  null,
  "10",
  {},
  { prompt_tokens: "10" },
  { prompt_tokens: -1 },
  { prompt_tokens: 1.5 },
  { prompt_tokens: Number.NaN },
  { prompt_tokens: 1e15 },
  // A count of 0 would make the answer free.
  { prompt_tokens: 3, completion_tokens: -5 },
  { prompt_tokens: 3, completion_tokens: 1.5 },
  { prompt_tokens: 3, completion_tokens: "9" },
])("%j is no usage", (usage) => {
  expect(tokenUsage(usage)).toBeUndefined();
});

test("counts every token once, and never below 0", () => {
  const anything = fc.oneof(fc.nat(100), fc.integer(), fc.double(), fc.string(), fc.constant(null));
  const details = fc.record(
    { cached_tokens: anything, audio_tokens: anything, cache_write_tokens: anything, cache_write_1h_tokens: anything },
    { requiredKeys: [] },
  );
  const usage = fc.record(
    {
      prompt_tokens: fc.nat(1000),
      completion_tokens: fc.option(fc.nat(100)),
      total_tokens: anything,
      prompt_tokens_details: fc.oneof(details, anything),
      completion_tokens_details: fc.oneof(details, anything),
    },
    { requiredKeys: ["prompt_tokens"] },
  );
  fc.assert(
    fc.property(usage, (given) => {
      const counted = tokenUsage(given);
      if (!counted) throw new Error("a plausible prompt count is refused");
      for (const count of Object.values(counted)) expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
      const { input, cached_input, cache_write, cache_write_1h, audio_input } = counted;
      expect(input + cached_input + cache_write + cache_write_1h + audio_input).toBe(given.prompt_tokens);
    }),
  );
});

test("estimates four bytes to a token, rounded up", () => {
  expect([0, 1, 4, 5, 400].map(estimateTokens)).toEqual([0, 1, 1, 2, 100]);
});

const impossible = [-1, 1.5, 1e15, Number.MAX_VALUE];

describe("an implausible token count of a native answer is no usage, so that the answer is estimated", () => {
  const usages: readonly [Format, (input: unknown, output: unknown) => object][] = [
    ["messages", (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } })],
    ["responses", (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } })],
    [
      "gemini",
      (promptTokenCount, candidatesTokenCount) => ({ usageMetadata: { promptTokenCount, candidatesTokenCount } }),
    ],
  ];

  test.each(usages)("%s", (format, answerOf) => {
    const used = (input: unknown, output: unknown) =>
      tokenUsage(converters[format].native.usage(answerOf(input, output) as Record<string, unknown>));
    expect(used(3, 4)).toMatchObject({ input: 3, output: 4 });
    expect(used(3, undefined)).toMatchObject({ input: 3, output: 0 });
    for (const count of impossible) {
      expect(used(count, 4)).toBeUndefined();
      expect(used(3, count)).toBeUndefined();
    }
  });

  test("gemini thoughts", () => {
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, thoughtsTokenCount: -4 };
    expect(converters.gemini.native.usage({ usageMetadata })).toBeUndefined();
  });
});
