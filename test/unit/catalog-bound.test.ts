import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PriceKey, Tier } from "#catalog";
import type { CallSize, MediaPart } from "#formats";
import {
  catalogWith,
  embeddingsModel,
  imageModel,
  type Json,
  rerankModel,
  textModel,
} from "../support/catalog-fixture.ts";
import { runs } from "../support/property-runs.ts";

const part = (kind: MediaPart["kind"], over: Omit<MediaPart, "kind"> = {}): MediaPart => ({ kind, ...over });
const sizeOf = (over: Partial<CallSize> = {}): CallSize => ({
  inputBytes: 100,
  messages: 1,
  parts: [],
  choices: 1,
  ...over,
});

const seeing = {
  ...textModel,
  features: ["image", "audio", "audio_output"],
  max_part_tokens: { image: 1_500, audio: 3_000 },
};

const withAudio = {
  ...seeing,
  pricing: { input: "2.50", output: "10", audio_input: "30", audio_output: "20" },
};

const price = fc.integer({ min: 1, max: 90_000_000 }).map((micro) => (micro / 1e6).toFixed(6));
/** Cached input is the cheapest, as the catalog demands; the other prices are arbitrary. */
const pricing = fc
  .tuple(price, price, price, price, price, price, price)
  .map(([a, b, cache_write, cache_write_1h, audio_input, output, audio_output]) => ({
    input: Number(a) > Number(b) ? a : b,
    cached_input: Number(a) > Number(b) ? b : a,
    cache_write,
    cache_write_1h,
    audio_input,
    output,
    audio_output,
    request: a,
  }));
const sizes = fc.record(
  {
    inputBytes: fc.nat(200_000),
    messages: fc.integer({ min: 1, max: 50 }),
    parts: fc.array(
      fc.record(
        {
          kind: fc.constantFrom("image", "audio", "file"),
          content: fc.constantFrom("image", "audio", "video", "pdf", "text", "other"),
          bytes: fc.nat(100_000),
        },
        { requiredKeys: ["kind"] },
      ),
      { maxLength: 4 },
    ),
    cacheWrites: fc.constantFrom("short", "long"),
    choices: fc.integer({ min: 1, max: 8 }),
    outputCap: fc.integer({ min: 1, max: 10_000 }),
  },
  { requiredKeys: ["inputBytes", "messages", "parts", "choices"] },
);
const share = fc.double({ min: 0, max: 1, noNaN: true });
const anyTier = fc.constantFrom<Tier>("standard", "elite");

/** Splits `total` into one part per key, in any proportion. */
function cut<Key extends string>(total: number, keys: readonly Key[], at: readonly number[]): Record<Key, number> {
  const cuts = at.slice(0, keys.length - 1).map((each) => Math.floor(each * total));
  const marks = [0, ...cuts.toSorted((a, b) => a - b), total];
  return Object.fromEntries(keys.map((key, n) => [key, (marks[n + 1] ?? 0) - (marks[n] ?? 0)])) as Record<Key, number>;
}

const scenario = fc.record({
  prices: fc.array(pricing, { minLength: 1, maxLength: 3 }),
  bps: fc.integer({ min: 0, max: 9_999 }),
  size: sizes as fc.Arbitrary<CallSize>,
  tier: anyTier,
  used: fc.tuple(share, share),
  inputCuts: fc.array(share, { minLength: 4, maxLength: 4 }),
  outputCuts: fc.array(share, { minLength: 1, maxLength: 1 }),
  granted: share,
});

function build({ prices: [first, ...longer], bps }: { prices: readonly object[]; bps: number }) {
  return catalogWith({
    ...seeing,
    elite_discount_bps: bps,
    pricing: first,
    tiers: longer.map((each, at) => ({ above_input_tokens: (at + 1) * 30_000, pricing: each })),
  });
}

describe("bound", () => {
  test("covers every usage within its tokens, however it is split over the price keys", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const { catalog, model } = build(given);
        const bound = catalog.bound(model, given.size, given.tier);
        const { cacheWrites, parts } = given.size;
        // The bill omits units that the request cannot cause.
        const heard: PriceKey[] = ["input", "cached_input"];
        if (cacheWrites) heard.push("cache_write");
        if (cacheWrites === "long") heard.push("cache_write_1h");
        if (parts.some(({ kind, content = kind }) => !["image", "pdf", "text"].includes(content)))
          heard.push("audio_input");
        const usage = {
          ...cut(Math.floor(given.used[0] * bound.inputTokens), heard, given.inputCuts),
          ...cut(
            Math.floor(given.used[1] * bound.outputCap * given.size.choices),
            ["output", "audio_output"] as const,
            given.outputCuts,
          ),
          request: 1,
        };
        expect(catalog.cost(model, usage, given.tier)).toBeLessThanOrEqual(bound.maxNanoUsd);
      }),
      { numRuns: runs(300) },
    );
  });

  test("turns a smaller hold into the largest cap that it pays for", () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const { catalog, model } = build({ ...given, prices: given.prices.slice(0, 1) });
        const bound = catalog.bound(model, given.size, given.tier);
        const span = bound.maxNanoUsd - bound.minNanoUsd;
        const granted = bound.minNanoUsd + (span * BigInt(Math.floor(given.granted * 1e6))) / 1_000_000n;
        const cap = bound.capFor(granted);
        expect(Number.isInteger(cap)).toBe(true);
        expect(cap).toBeGreaterThanOrEqual(given.size.outputCap === undefined ? 1 : bound.outputCap);
        const worst = (outputCap: number) => catalog.bound(model, { ...given.size, outputCap }, given.tier).maxNanoUsd;
        expect(worst(cap)).toBeLessThanOrEqual(granted);
        // At the full cap no more tokens can be requested.
        expect(cap === bound.outputCap || worst(cap + 1) > granted).toBe(true);
      }),
      { numRuns: runs(300) },
    );
  });

  test("returns the whole cap for the whole hold or more, and 0 where nothing remains for output", () => {
    const { catalog, model } = catalogWith(textModel);
    const bound = catalog.bound(model, sizeOf(), "standard");
    expect(bound.capFor(bound.maxNanoUsd)).toBe(4_000);
    expect(bound.capFor(bound.maxNanoUsd * 2n)).toBe(4_000);
    expect(bound.capFor(bound.minNanoUsd)).toBe(1);
    expect(bound.capFor(bound.minNanoUsd - 1n)).toBe(0);
    expect(bound.capFor(0n)).toBe(0);
  });

  test("excludes a token whose half nano-USD would round the cost above the hold", () => {
    const { catalog, model } = catalogWith({ ...textModel, pricing: { input: "0.001", output: "0.0005" } });
    const bound = catalog.bound(model, sizeOf(), "standard");
    const input = BigInt(bound.inputTokens);
    expect([input, input + 1n, input + 2n].map((granted) => bound.capFor(granted))).toEqual([0, 2, 4]);
  });

  test("bounds input by bytes, an allowance for each message and one for the call", () => {
    const { catalog, model } = catalogWith(textModel);
    const tokens = (over: Partial<CallSize>) => catalog.bound(model, sizeOf(over), "standard").inputTokens;
    const base = tokens({ inputBytes: 0, messages: 0 });
    expect(base).toBe(512);
    expect(tokens({ inputBytes: 700, messages: 0 })).toBe(base + 700);
    expect(tokens({ inputBytes: 700, messages: 3 })).toBe(base + 700 + 48);
    expect(tokens({ inputBytes: 5_000_000 })).toBe(100_000);
  });

  test("adds the maximum of each part, and the whole context for one without a maximum", () => {
    const { catalog, model } = catalogWith(withAudio);
    const tokens = (...parts: MediaPart[]) =>
      catalog.bound(model, sizeOf({ inputBytes: 0, messages: 0, parts }), "standard").inputTokens;
    expect(tokens(part("image"), part("image"), part("audio"))).toBe(512 + 3_000 + 3_000);
    expect(tokens(part("file"))).toBe(100_000);
  });

  test("bounds a part by what is known of its bytes, and never above the maximum of its kind", () => {
    const { catalog, model } = catalogWith({
      ...withAudio,
      features: [...withAudio.features, "file"],
      max_part_tokens: { image: 1_500, audio: 3_000, file: 20_000 },
      media_tokens: { image_patch: 1.5, page: 800, audio_second: 30 },
    });
    const tokens = (one: MediaPart) =>
      catalog.bound(model, sizeOf({ inputBytes: 0, messages: 0, parts: [one] }), "standard").inputTokens - 512;
    const dimensions = { width: 57, height: 28 };
    expect(tokens(part("image", { content: "image", bytes: 9, dimensions }))).toBe(5);
    expect(tokens(part("image", { content: "image", dimensions: { width: 9_000, height: 9_000 } }))).toBe(1_500);
    expect(tokens(part("image", { content: "image", bytes: 9 }))).toBe(1_500);
    expect(tokens(part("audio", { content: "audio", bytes: 9_000, seconds: 2.5 }))).toBe(90);
    expect(tokens(part("audio", { content: "audio", bytes: 5_000 }))).toBe(300);
    expect(tokens(part("audio", { content: "audio", bytes: 5_000_000 }))).toBe(3_000);
    expect(tokens(part("audio", { content: "video", bytes: 50 }))).toBe(3_000);
    expect(tokens(part("file", { content: "pdf", bytes: 1_000 }))).toBe(1_800);
    expect(tokens(part("file", { content: "pdf", bytes: 2_500 }))).toBe(4_900);
    expect(tokens(part("file", { content: "pdf", bytes: 2_500_000 }))).toBe(20_000);
    expect(tokens(part("file", { content: "text", bytes: 700 }))).toBe(700);
    expect(tokens(part("file", { content: "image", bytes: 700 }))).toBe(1_500);
    for (const content of ["video", "other"] as const) expect(tokens(part("file", { content, bytes: 7 }))).toBe(20_000);
  });

  test("prices input as audio only where there is audio, or a file that may be a video", () => {
    const { catalog, model } = catalogWith(withAudio);
    const most = (...parts: MediaPart[]) =>
      catalog.bound(model, sizeOf({ inputBytes: 1_000_000, parts, outputCap: 1 }), "standard").maxNanoUsd;
    const plain = 100_000n * 2_500n + 20_000n;
    const heard = 100_000n * 30_000n + 20_000n;
    expect(most()).toBe(plain);
    expect(most(part("image"))).toBe(plain);
    expect(most(part("file", { content: "pdf", bytes: 9 }))).toBe(plain);
    expect(most(part("audio"))).toBe(heard);
    expect(most(part("file"))).toBe(heard);
    expect(most(part("file", { content: "video", bytes: 9 }))).toBe(heard);
  });

  test("prices input as a cache write only where one is requested or automatic", () => {
    const cached = { ...textModel, pricing: { input: "2", cache_write: "2.5", cache_write_1h: "4", output: "10" } };
    const most = (json: Json, cacheWrites?: "short" | "long") => {
      const { catalog, model } = catalogWith(json);
      const size = sizeOf({ inputBytes: 1_000_000, outputCap: 1, ...(cacheWrites && { cacheWrites }) });
      return catalog.bound(model, size, "standard").inputNanoUsd;
    };
    expect(most(cached)).toBe(100_000n * 2_000n);
    expect(most(cached, "short")).toBe(100_000n * 2_500n);
    expect(most(cached, "long")).toBe(100_000n * 4_000n);
    expect(most({ ...cached, automatic_cache_writes: true })).toBe(100_000n * 2_500n);
  });

  test("bills the request itself of every call that is answered, as it was held", () => {
    const { catalog, model } = catalogWith({ ...textModel, pricing: { input: "2", output: "10", request: "0.03" } });
    const usage = catalog.billed(model, { input: 100, output: 7 });
    expect(usage).toEqual({ input: 100, output: 7, request: 1 });
    expect(catalog.billed(model, usage)).toEqual(usage);
    expect(catalog.cost(model, usage, "standard")).toBe(200_000n + 70_000n + 30_000_000n);
    expect(catalog.bound(model, sizeOf({ outputCap: 7 }), "standard").maxNanoUsd).toBeGreaterThan(30_000_000n);
    // No usage means that the provider received no request; and most models have no such price.
    expect(catalog.billed(model, { input: 0, output: 0 })).toEqual({ input: 0, output: 0 });
    const { catalog: other, model: usual } = catalogWith(textModel);
    expect(other.billed(usual, { input: 100 })).toEqual({ input: 100 });
  });

  test("caps output by the caller, the model and the context, whichever is least, for each choice", () => {
    const { catalog, model } = catalogWith(textModel);
    const cap = (over: Partial<CallSize>) => catalog.bound(model, sizeOf(over), "standard").outputCap;
    expect(cap({})).toBe(4_000);
    expect(cap({ outputCap: 50 })).toBe(50);
    expect(cap({ outputCap: 1_000_000 })).toBe(4_000);
    const one = catalog.bound(model, sizeOf({ outputCap: 50 }), "standard");
    const four = catalog.bound(model, sizeOf({ outputCap: 50, choices: 4 }), "standard");
    expect(four.maxNanoUsd - one.maxNanoUsd).toBe(3n * 50n * 10_000n);
  });

  test("requires the whole hold where the caller set the cap, and one token otherwise", () => {
    const { catalog, model } = catalogWith(textModel);
    const named = catalog.bound(model, sizeOf({ outputCap: 50 }), "standard");
    expect(named.minNanoUsd).toBe(named.maxNanoUsd);
    const free = catalog.bound(model, sizeOf({ choices: 2 }), "standard");
    expect(free.maxNanoUsd - free.minNanoUsd).toBe(3_999n * 2n * 10_000n);
  });

  test("uses the most expensive tier that the prompt can reach, also where a longer one is cheaper", () => {
    const { catalog, model } = catalogWith({
      ...textModel,
      tiers: [
        { above_input_tokens: 1_000, pricing: { input: "9", output: "90" } },
        { above_input_tokens: 50_000, pricing: { input: "1", output: "1" } },
      ],
    });
    const most = (inputBytes: number) =>
      catalog.bound(model, sizeOf({ inputBytes, messages: 0, outputCap: 1 }), "standard").maxNanoUsd;
    expect(most(488)).toBe(1_000n * 2_500n + 10_000n);
    expect(most(489)).toBe(1_001n * 9_000n + 90_000n);
    expect(most(90_000)).toBe(90_512n * 9_000n + 90_000n);
  });

  test("gives every input of an embeddings call its own context, and no output", () => {
    const { catalog, model } = catalogWith(embeddingsModel);
    const bound = catalog.bound(model, sizeOf({ inputBytes: 1_000_000, messages: 256 }), "standard");
    expect(bound.inputTokens).toBe(256_000);
    expect(bound.outputCap).toBe(0);
    expect(bound.maxNanoUsd).toBe(256_000n * 20n);
    expect(bound.minNanoUsd).toBe(bound.maxNanoUsd);
    expect(bound.capFor(bound.maxNanoUsd - 1n)).toBe(0);
    expect(catalog.bound(model, sizeOf({ inputBytes: 10, messages: 1 }), "standard").inputTokens).toBe(538);
  });

  test("bounds a rerank call by its searches, and by its bytes whatever the context: long documents are split", () => {
    const size = sizeOf({ inputBytes: 5_000, messages: 2, searches: 3 });
    const bound = (pricing: object) => {
      const { catalog, model } = catalogWith({ ...rerankModel, pricing });
      const { maxNanoUsd, minNanoUsd, inputTokens } = catalog.bound(model, size, "standard");
      expect(minNanoUsd).toBe(maxNanoUsd);
      return [maxNanoUsd, inputTokens];
    };
    expect(bound({ search: "0.002" })).toEqual([6_000_000n, 5_544]);
    expect(bound({ input: "1" })).toEqual([5_544_000n, 5_544]);
    expect(bound({ input: "1", search: "0.002" })).toEqual([11_544_000n, 5_544]);
  });

  test("refuses a model that is not billed by tokens", () => {
    const { catalog, model } = catalogWith(imageModel);
    expect(() => catalog.bound(model, sizeOf(), "standard")).toThrow(/acme\/image is not billed by tokens/);
  });
});
