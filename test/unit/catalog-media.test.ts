import { describe, expect, test } from "vitest";
import type { Tier, Usage } from "#catalog";
import { ServiceError } from "#errors";
import {
  catalogWith,
  imageModel,
  type Json,
  speechModel,
  textModel,
  transcriptionModel,
  videoModel,
  withField,
} from "../support/catalog-fixture.ts";

const noUploads = new Map<string, number>();

function fault(entry: Json, value: Json, at: "" | "input" = "input"): Pick<ServiceError, "code" | "param" | "message"> {
  const { catalog, model } = catalogWith(entry);
  try {
    catalog.checkInput(model, { value, at });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, param, message } = error;
    return { code, param: param ?? "", message };
  }
  throw new Error("nothing is wrong with it");
}

describe("checkInput", () => {
  test("an image model's hints: unsupported ones are omitted; auto, where it has none, is no value", () => {
    const { catalog, model } = catalogWith({
      ...imageModel,
      input_schema: { ...(imageModel["input_schema"] as Json), additionalProperties: false },
    });
    const taken = { prompt: "a", quality: "high" };
    const hints = { style: "vivid", background: "auto", moderation: "low", output_format: "png" };
    expect(catalog.checkInput(model, { value: { ...taken, ...hints, size: "auto" }, at: "" })).toEqual({
      ...taken,
      n: 1,
      size: "512x512",
    });
    expect(catalog.ignoredInput(model, { ...taken, ...hints, size: "auto", user: "u", more: 1 })).toEqual([
      "background",
      "moderation",
      "output_format",
      "style",
      "user",
    ]);
    expect(catalog.checkInput(model, { value: { prompt: "a", quality: "auto" }, at: "" })).not.toHaveProperty(
      "quality",
    );
    const automatic = catalogWith(withField(imageModel, "quality", { enum: ["low", "auto"] }));
    expect(
      automatic.catalog.checkInput(automatic.model, { value: { prompt: "a", quality: "auto" }, at: "" }),
    ).toMatchObject({ quality: "auto" });
  });

  test("accepts what the schema accepts, and more where the provider does", () => {
    const { catalog, model } = catalogWith(imageModel);
    for (const value of [{ prompt: "a" }, { prompt: "a", n: 4, size: "1024x1024", image: ["x"], own: { deep: 1 } }])
      expect(() => catalog.checkInput(model, { value, at: "" })).not.toThrow();
  });

  test("returns the parameters with the defaults that determine the price", () => {
    const { catalog, model } = catalogWith(videoModel);
    const value = { prompt: "a", resolution: "720p" };
    const filled = catalog.checkInput(model, { value, at: "input" });
    expect(filled).toEqual({ prompt: "a", duration: "4", resolution: "720p", sound: false });
    expect(value).toEqual({ prompt: "a", resolution: "720p" });
    const image = catalogWith(imageModel);
    const own = { prompt: "a", mood: { deep: 1 } };
    expect(image.catalog.checkInput(image.model, { value: own, at: "" })).toEqual({
      ...own,
      n: 1,
      size: "512x512",
    });
  });

  test("names the field by the parameters' place in the body", () => {
    expect(fault(imageModel, { prompt: "a", n: 9 }, "")).toMatchObject({ code: "invalid_value", param: "n" });
    expect(fault(videoModel, { prompt: "a", duration: "5" })).toMatchObject({ param: "input.duration" });
    expect(fault(imageModel, { prompt: "a", image: ["x", 5] }, "")).toMatchObject({ param: "image[1]" });
    expect(fault(imageModel, { prompt: "a", image: ["x", 5] })).toMatchObject({ param: "input.image[1]" });
    expect(fault(speechModel, {})).toMatchObject({ param: "input.text" });
  });

  test("says what is allowed", () => {
    expect(fault(videoModel, { prompt: "a", duration: "5" }).message).toContain('"4"|"8"');
    expect(fault(imageModel, { prompt: "a", n: 9 }).message).toContain("<=4");
    const numbers = withField(imageModel, "steps", { enum: [4, 8, 12] });
    expect(fault(numbers, { prompt: "a", steps: 5 })).toMatchObject({
      param: "input.steps",
      message: "input.steps: Invalid option: expected one of 4|8|12.",
    });
    const described = withField(imageModel, "side", { type: "string", pattern: "^\\d+$", description: "<pixels>" });
    expect(fault(described, { prompt: "a", side: "x" }).message).toBe("input.side: Invalid string: expected <pixels>.");
    const plain = withField(imageModel, "side", { type: "string", pattern: "^\\d+$" });
    expect(fault(plain, { prompt: "a", side: "x" }).message).toContain("^\\d+$");
  });

  test("names a parameter that the provider does not take", () => {
    expect(fault(videoModel, { prompt: "a", seed: 5 })).toMatchObject({ code: "invalid_value", param: "input.seed" });
  });

  test("is for models with an input schema", () => {
    const { catalog, model } = catalogWith(textModel);
    expect(() => catalog.checkInput(model, { value: {}, at: "" })).toThrow(TypeError);
    expect(() => catalog.units(model, {}, noUploads)).toThrow(TypeError);
    expect(() => catalog.boundOfUnits(model, {}, {}, "standard")).toThrow(TypeError);
  });
});

describe("units", () => {
  const unitsOf = (entry: Json, input: Json, uploads: ReadonlyMap<string, number> = noUploads) => {
    const { catalog, model } = catalogWith(entry);
    return catalog.units(model, input, uploads);
  };

  test("are a field's number, or string of digits with or without an s, else its default", () => {
    expect(unitsOf(imageModel, { prompt: "a" })).toEqual({ image: 1 });
    expect(unitsOf(imageModel, { prompt: "a", n: 3 })).toEqual({ image: 3 });
    expect(unitsOf(videoModel, { prompt: "a" })).toEqual({ second: 4 });
    expect(unitsOf(videoModel, { prompt: "a", duration: "8" })).toEqual({ second: 8 });
    const suffixed = withField(videoModel, "duration", { enum: ["4s", "12s"], default: "4s" });
    expect(unitsOf(suffixed, { prompt: "a" })).toEqual({ second: 4 });
    expect(unitsOf(suffixed, { prompt: "a", duration: "12s" })).toEqual({ second: 12 });
  });

  test("are the code points of a text", () => {
    expect(unitsOf(speechModel, { text: "häß 🙂" })).toEqual({ character: 5 });
  });

  test("are the maximum minutes of a recording, by its bytes and the provider's limit", () => {
    const minutes = (bytes: number) => unitsOf(transcriptionModel, { file: "upl_a" }, new Map([["upl_a", bytes]]));
    expect(minutes(60_000)).toEqual({ minute: 2 });
    expect(minutes(1)).toEqual({ minute: 0.000034 });
    expect(minutes(100_000_000)).toEqual({ minute: 25 });
    expect(unitsOf(transcriptionModel, { file: "upl_unknown" })).toEqual({ minute: 25 });
  });

  test("are the input images, a single one, a list or none, and one request", () => {
    const edits = {
      ...imageModel,
      units: { image: { field: "n" }, input_image: { items_of: ["image"] }, request: { count: 1 } },
      pricing: { image: "1", input_image: "1", request: "1" },
    };
    expect(unitsOf(edits, { prompt: "a", n: 2 })).toEqual({ image: 2, request: 1 });
    expect(unitsOf(edits, { prompt: "a", image: "x" })).toEqual({ image: 1, input_image: 1, request: 1 });
    expect(unitsOf(edits, { prompt: "a", image: ["x", "y"], n: 2 })).toEqual({ image: 2, input_image: 2, request: 1 });
  });

  test("are counted for every image where the provider bills them so", () => {
    const edits = {
      ...imageModel,
      units: { image: { field: "n" }, input_image: { items_of: ["image"], per: "image" } },
      pricing: { image: "1", input_image: "0.001" },
    };
    expect(unitsOf(edits, { prompt: "four", n: 3, image: ["x", "y"] })).toEqual({ image: 3, input_image: 6 });
  });
});

describe("cost", () => {
  const costOf = (entry: Json, usage: Usage, input?: Json, tier: Tier = "standard") => {
    const { catalog, model } = catalogWith(entry);
    return catalog.cost(model, usage, tier, input);
  };
  const nanoUsd = 1_000_000_000n;

  test("is that of the first variant whose every field fits, defaults filled in, for each price key by itself", () => {
    const priced = {
      ...withField(imageModel, "quality", { enum: ["low", "high"], default: "high" }),
      units: { image: { field: "n" }, request: { count: 1 } },
      pricing: { image: "8", request: "1" },
      variants: [
        { name: "low_large", when: { quality: ["low"], size: ["1024x1024"] }, pricing: { image: "4" } },
        { name: "low", when: { quality: ["low"] }, pricing: { image: "2" } },
        { name: "edit", when: { image: { present: true } }, pricing: { image: "16", request: "3" } },
      ],
    };
    const cost = (input: Json) => costOf(priced, { image: 1, request: 1 }, { prompt: "a", ...input }) / nanoUsd;
    expect(cost({})).toBe(9n);
    expect(cost({ quality: "high", size: "1024x1024" })).toBe(9n);
    expect(cost({ quality: "low" })).toBe(3n);
    expect(cost({ quality: "low", size: "512x512" })).toBe(3n);
    expect(cost({ quality: "low", size: "1024x1024" })).toBe(5n);
    expect(cost({ image: "x" })).toBe(19n);
    expect(cost({ quality: "low", image: ["x"] })).toBe(5n);
  });

  test("tells true from false, and absent from present", () => {
    const priced = {
      ...videoModel,
      variants: [
        { name: "sound", when: { sound: [true] }, pricing: { second: "0.30" } },
        { name: "text", when: { image: { present: false } }, pricing: { second: "0.05" } },
      ],
    };
    const cost = (input: Json) => costOf(priced, { second: 1 }, { prompt: "a", ...input });
    expect(cost({ image: "x" })).toBe(100_000_000n);
    expect(cost({ image: "x", sound: true })).toBe(300_000_000n);
    expect(cost({ sound: false })).toBe(50_000_000n);
    expect(cost({ sound: true })).toBe(300_000_000n);
  });

  test("is that of what the provider delivered, which may be less than requested", () => {
    expect(costOf(imageModel, { image: 2 }, { prompt: "a", n: 4 })).toBe(80_000_000n);
    expect(costOf(videoModel, { second: 3.25 }, { prompt: "a", duration: "8" })).toBe(325_000_000n);
    expect(costOf(transcriptionModel, { minute: 0.123457 }, { file: "upl_a" })).toBe(740_742n);
    expect(costOf(transcriptionModel, { minute: 0.123457 }, { file: "upl_a" }, "elite")).toBe(666_668n);
  });

  test("includes what the input determines, reported or not, if anything was delivered", () => {
    const priced = {
      ...imageModel,
      units: {
        image: { field: "n" },
        input_image: { items_of: ["image"], per: "image" },
      },
      pricing: { image: "1", input_image: "0.1" },
    };
    const input = { prompt: "four", n: 3, image: ["x", "y"] };
    expect(costOf(priced, { image: 2 }, input)).toBe(2_400_000_000n);
    expect(costOf(priced, { image: 2, input_image: 1 }, input)).toBe(2_100_000_000n);
    expect(costOf(priced, { image: 0 }, input)).toBe(0n);
    expect(costOf(priced, {}, input)).toBe(0n);
    expect(costOf(speechModel, {}, { text: "hello" })).toBe(75_000n);
    expect(costOf(speechModel, { character: 5 })).toBe(75_000n);
  });

  test("ignores delivered counts where the input alone determines the cost", () => {
    const priced = { ...videoModel, units: { request: { count: 1 } }, pricing: { request: "0.60" } };
    expect(costOf(priced, { second: 30 }, { prompt: "a" })).toBe(600_000_000n);
    expect(costOf(priced, { second: 30, request: 1 }, { prompt: "a" })).toBe(600_000_000n);
    const { catalog, model } = catalogWith(priced);
    expect(catalog.billed(model, { second: 30 }, { prompt: "a" })).toEqual({ request: 1 });
    expect(costOf(speechModel, { second: 3, character: 5 })).toBe(75_000n);
  });

  test("includes the billed minimum of a recording, in the hold too", () => {
    const rule = { minutes_of: "file", bytes_per_second: 500, max: 25, min: 0.5 };
    const { catalog, model } = catalogWith({ ...transcriptionModel, units: { minute: rule } });
    expect(catalog.units(model, { file: "upl_a" }, new Map([["upl_a", 1]]))).toEqual({ minute: 0.5 });
    expect(catalog.cost(model, { minute: 0.1 }, "standard", { file: "upl_a" })).toBe(3_000_000n);
    expect(catalog.cost(model, { minute: 0.6 }, "standard", { file: "upl_a" })).toBe(3_600_000n);
  });

  test("throws without the input that it depends on", () => {
    const variants = [{ name: "large", when: { size: ["1024x1024"] }, pricing: { image: "0.08" } }];
    expect(() => costOf({ ...imageModel, variants }, { image: 1 })).toThrow(TypeError);
    expect(() => costOf(speechModel, {})).toThrow(TypeError);
    expect(costOf(imageModel, { image: 1 })).toBe(40_000_000n);
  });

  test("refuses a unit without a price, and a malformed count", () => {
    expect(() => costOf(imageModel, { second: 1 }, { prompt: "a" })).toThrow(/no price for 'second'/);
    expect(() => costOf(imageModel, { image: 1.5 }, { prompt: "a" })).toThrow(RangeError);
  });
});

describe("boundOfUnits", () => {
  test("is all or nothing, and has no tokens", () => {
    const { catalog, model } = catalogWith(imageModel);
    const bound = catalog.boundOfUnits(model, { prompt: "a", n: 2 }, { image: 2 }, "elite");
    expect(bound).toMatchObject({ maxNanoUsd: 72_000_000n, minNanoUsd: 72_000_000n, inputTokens: 0, outputCap: 0 });
    expect(bound.capFor(72_000_000n)).toBe(0);
  });
});
