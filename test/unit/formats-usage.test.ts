import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateTokens, type Format } from "#formats";
import { converters, tokenUsage } from "../../workers/conversion/index.ts";

test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e15])("a count of %s is no usage", (count) => {
  expect(tokenUsage({ prompt_tokens: count })).toBeUndefined();
  // A count of 0 would make the answer free.
  expect(tokenUsage({ prompt_tokens: 3, completion_tokens: count })).toBeUndefined();
});

test("counts every token once, and never below 0", () => {
  const anything = fc.oneof(fc.nat(100), fc.integer(), fc.double(), fc.string(), fc.constant(null));
  const details = fc.record(
    {
      cached_tokens: anything,
      audio_tokens: anything,
      cache_write_tokens: anything,
      cache_write_1h_tokens: anything,
      reasoning_tokens: anything,
    },
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
      const { input, cached_input, cache_write, cache_write_1h, audio_input, output, reasoning = 0 } = counted;
      expect(reasoning).toBeLessThanOrEqual(output);
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
