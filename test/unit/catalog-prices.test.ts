import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PriceKey, Tier, Usage } from "#catalog";
import {
  catalogWith,
  embeddingsModel,
  imageModel,
  textModel,
  videoModel,
  withField,
} from "../support/catalog-fixture.ts";

/** A rational number, independent of the code under test. */
interface Ratio {
  readonly over: bigint;
  readonly under: bigint;
}
const ratio = (decimal: string): Ratio => {
  const [whole = "", fraction = ""] = decimal.split(".");
  return { over: BigInt(whole + fraction), under: 10n ** BigInt(fraction.length) };
};
const times = (a: Ratio, b: Ratio): Ratio => ({ over: a.over * b.over, under: a.under * b.under });
const plus = (a: Ratio, b: Ratio): Ratio => ({ over: a.over * b.under + b.over * a.under, under: a.under * b.under });
const halfUp = ({ over, under }: Ratio): bigint => (2n * over + under) / (2n * under);

const tokens: ReadonlySet<string> = new Set([
  "input",
  "cached_input",
  "cache_write",
  "cache_write_1h",
  "audio_input",
  "output",
  "audio_output",
]);

function expectedCost(prices: Partial<Record<PriceKey, string>>, usage: Usage, tier: Tier, bps: number): bigint {
  let usd: Ratio = { over: 0n, under: 1n };
  for (const [key, count] of Object.entries(usage)) {
    const price = ratio(prices[key as PriceKey] ?? "0");
    const each = tokens.has(key) ? times(price, { over: 1n, under: 1_000_000n }) : price;
    usd = plus(usd, times(each, ratio(String(count))));
  }
  const share = tier === "elite" ? { over: BigInt(10_000 - bps), under: 10_000n } : { over: 1n, under: 1n };
  return halfUp(times(times(usd, share), { over: 1_000_000_000n, under: 1n }));
}

const price = fc
  .tuple(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 1, max: 999_999_999 }))
  .map(([whole, billionths]) => `${whole}.${String(billionths).padStart(9, "0")}`);
const tokenCount = fc.integer({ min: 0, max: 2_000_000 });
const anyTier = fc.constantFrom<Tier>("standard", "elite");

describe("cost", () => {
  test("is exact, and rounded once, half up, for every split of tokens and both tiers", () => {
    const keys = ["cache_write", "cache_write_1h", "audio_input", "output", "audio_output"] as const;
    const prices = fc.record({
      input: price.map((text) => text.replace(/^\d+/, (whole) => String(Number(whole) + 201))),
      cached_input: price,
      cache_write: price,
      cache_write_1h: price,
      audio_input: price,
      output: price,
      audio_output: price,
    });
    const usage = fc.record({
      input: tokenCount,
      cached_input: tokenCount,
      ...Object.fromEntries(keys.map((key) => [key, tokenCount])),
    });
    fc.assert(
      fc.property(
        prices,
        fc.integer({ min: 0, max: 9_999 }),
        fc.array(usage),
        anyTier,
        (pricing, bps, usages, tier) => {
          const { catalog, model } = catalogWith({ ...textModel, pricing, elite_discount_bps: bps });
          for (const each of usages)
            expect(catalog.cost(model, each, tier)).toBe(expectedCost(pricing, each, tier, bps));
        },
      ),
    );
  });

  test("counts whole pieces, and seconds and minutes with six decimals", () => {
    const pricing = { second: "0.123456789", minute: "7.000000001", request: "0.000000001" };
    const units = { second: { field: "duration" }, minute: { field: "minutes" }, request: { count: 1 } };
    const minutes = { type: "number", minimum: 0.1, maximum: 9, default: 1 };
    const { catalog, model } = catalogWith({ ...withField(videoModel, "minutes", minutes), units, pricing });
    const millionths = fc.integer({ min: 0, max: 10_000_000_000 }).map((count) => count / 1e6);
    const usage = fc.record({ second: millionths, minute: millionths, request: fc.nat() });
    fc.assert(
      fc.property(usage, anyTier, (each, tier) => {
        expect(catalog.cost(model, each, tier)).toBe(expectedCost(pricing, each, tier, 1_000));
      }),
    );
  });

  test("rounds half a nano-USD up, and less than half down", () => {
    const { catalog, model } = catalogWith({ ...textModel, pricing: { input: "0.0005", output: "0.000499999" } });
    expect(catalog.cost(model, { input: 1 }, "standard")).toBe(1n);
    expect(catalog.cost(model, { output: 1 }, "standard")).toBe(0n);
    expect(catalog.cost(model, { input: 1, output: 1 }, "standard")).toBe(1n);
    expect(catalog.cost(model, { input: 1 }, "elite")).toBe(0n);
  });

  test("bills a count without its own price as input or as output, never as nothing", () => {
    const { catalog, model } = catalogWith(textModel);
    const cost = (usage: Usage) => catalog.cost(model, usage, "standard");
    for (const key of ["cached_input", "cache_write", "cache_write_1h", "audio_input"] as const)
      expect(cost({ [key]: 1_000 })).toBe(2_500_000n);
    expect(cost({ audio_output: 1_000 })).toBe(10_000_000n);
    const writes = catalogWith({ ...textModel, pricing: { input: "1", cache_write: "2", output: "1" } });
    expect(writes.catalog.cost(writes.model, { cache_write_1h: 1_000 }, "standard")).toBe(2_000_000n);
  });

  test("refuses a count without a price, and a malformed one", () => {
    const { catalog, model } = catalogWith(embeddingsModel);
    const cost = (usage: Usage) => () => catalog.cost(model, usage, "standard");
    expect(cost({ output: 1 })).toThrow(/no price for 'output'/);
    expect(cost({ output: 0, input: 5 })()).toBe(100n);
    for (const wrong of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(cost({ input: wrong })).toThrow(RangeError);
  });

  test("bills the whole call by the tier that its prompt reaches, all kinds of input counted", () => {
    const { catalog, model } = catalogWith({
      ...textModel,
      pricing: { input: "1", cached_input: "0.1", output: "4" },
      tiers: [
        { above_input_tokens: 1_000, pricing: { input: "2", cached_input: "0.2", output: "6" } },
        { above_input_tokens: 50_000, pricing: { input: "3", cached_input: "0.3", output: "8" } },
      ],
    });
    const cost = (usage: Usage) => catalog.cost(model, usage, "standard");
    expect(cost({ input: 400, cached_input: 600, output: 10 })).toBe(400_000n + 60_000n + 40_000n);
    expect(cost({ input: 401, cached_input: 600, output: 10 })).toBe(802_000n + 120_000n + 60_000n);
    expect(cost({ input: 1, cached_input: 50_000, output: 10 })).toBe(3_000n + 15_000_000n + 80_000n);
  });
});

describe("pricing", () => {
  test("has exact decimal strings for both tiers, with separate lines for long prompts", () => {
    const { model } = catalogWith({
      ...textModel,
      elite_discount_bps: 1_234,
      pricing: { input: "2.5", output: "10" },
      tiers: [{ above_input_tokens: 20_000, pricing: { input: "5.000000001", output: "15" } }],
    });
    expect(model.pricing).toEqual({
      input: { unit: "1M_tokens", list_usd: "2.50", elite_usd: "2.1915" },
      output: { unit: "1M_tokens", list_usd: "10.00", elite_usd: "8.766" },
      input_above_20000: { unit: "1M_tokens", list_usd: "5.000000001", elite_usd: "4.3830000008766" },
      output_above_20000: { unit: "1M_tokens", list_usd: "15.00", elite_usd: "13.149" },
    });
  });

  test("has the piece as the unit of keys that do not count tokens", () => {
    const { model } = catalogWith(imageModel);
    expect(model.pricing).toEqual({ image: { unit: "image", list_usd: "0.04", elite_usd: "0.036" } });
  });

  test("has only the prices in the catalog, not their fallbacks", () => {
    const { model } = catalogWith(textModel);
    expect(Object.keys(model.pricing)).toEqual(["input", "output"]);
  });
});

test("an upstream's cost is exact, uses fallbacks for units without their own cost, and can be compared", () => {
  const cost = { input: "0.123456789", output: "2" };
  const { model } = catalogWith({ ...textModel, upstreams: [{ upstream: "acme", model: "one", cost }] });
  const [served] = model.upstreams;
  expect(served?.cost?.of({ input: 1_000, cached_input: 500, output: 3 })).toBe(185_185n + 6_000n);
  const dearer = catalogWith({
    ...textModel,
    upstreams: [{ upstream: "acme", model: "one", cost: { ...cost, output: "2.000000001" } }],
  });
  expect(dearer.model.upstreams[0]?.cost?.rank).toBeGreaterThan(served?.cost?.rank ?? 0n);
});
