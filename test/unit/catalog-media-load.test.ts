import { describe, expect, test } from "vitest";
import { CatalogError } from "#catalog";
import {
  catalogOf,
  imageModel,
  type Json,
  speechModel,
  textModel,
  transcriptionModel,
  videoModel,
  withField,
  without,
} from "../support/catalog-fixture.ts";

const upTo = (maximum: number) => ({ type: "integer", minimum: 1, maximum, default: 1 });
const variants = (...list: readonly Json[]): Json => ({ ...imageModel, variants: list });
const large = { name: "large", when: { size: ["1024x1024"] }, pricing: { image: "0.08" } };
const units = (over: Json): Json => ({ ...imageModel, units: over });
const schema = (over: Json): Json => ({ ...imageModel, input_schema: over });

describe("a model for images or media stops the load", () => {
  test.each([
    ["without a task", without(imageModel, "task"), "task: must be one of images for a model of type 'image'"],
    ["with a task of another type", { ...imageModel, task: "speech" }, "task: must be one of images"],
    ["with an unknown task", { ...imageModel, task: "dance" }, "task: "],
    ["without an input schema", without(imageModel, "input_schema"), "input_schema: is missing"],
    ["whose input is not an object", schema({ type: "string" }), "input_schema.type: must be 'object'"],
    [
      "whose schema zod does not support",
      schema({ type: "object", properties: { n: upTo(4), x: { not: { type: "string" } } } }),
      "input_schema: is not a supported schema: not is not supported",
    ],
    [
      "whose schema has an invalid pattern",
      withField(imageModel, "style", { type: "string", pattern: "(" }),
      "input_schema: is not a supported schema: Invalid regular expression",
    ],
    ["with a price that nothing counts", units({}), "units.image: and its price need each other"],
    [
      "with a count that has no price",
      units({ image: { field: "n" }, input_image: { items_of: ["image"] } }),
      "units.input_image: and its price need each other",
    ],
    ["with an unknown rule", units({ image: { pages_of: "n" } }), "units.image"],
    ["with a rule that does not fit the unit", units({ image: { characters_of: "prompt" } }), "units.image"],
    [
      "that counts a field it does not have",
      units({ image: { field: "count" } }),
      "units.image: counts 'count', which input_schema does not have",
    ],
    [
      "whose count has no maximum",
      withField(imageModel, "n", { type: "integer", minimum: 1, default: 1 }),
      "input_schema.properties.n: needs a maximum",
    ],
    [
      "whose count may be 0",
      withField(imageModel, "n", { ...upTo(4), minimum: 0 }),
      "input_schema.properties.n: needs a minimum above 0",
    ],
    [
      "whose count has no type",
      withField(imageModel, "n", { minimum: 1, maximum: 4, default: 1 }),
      "input_schema.properties.n: must be an enum or of type integer",
    ],
    [
      "whose count of images may be broken",
      withField(imageModel, "n", { ...upTo(4), type: "number" }),
      "input_schema.properties.n: must be an enum or of type integer",
    ],
    [
      "with an enum value that is not a count",
      withField(videoModel, "duration", { enum: ["4", "auto"], default: "4" }),
      "input_schema.properties.duration: has values that are not counts",
    ],
    [
      "whose count is in another unit",
      withField(videoModel, "duration", { enum: ["4s", "4ms"], default: "4s" }),
      "input_schema.properties.duration: has values that are not counts",
    ],
    [
      "whose count is optional and has no default",
      withField(imageModel, "n", { type: "integer", minimum: 1, maximum: 4 }),
      "input_schema.properties.n: is neither required nor has a default",
    ],
    [
      "whose default is more than its maximum",
      withField(imageModel, "n", { ...upTo(4), default: 100 }),
      "input_schema.properties.n.default: does not match the schema of the field",
    ],
    [
      "whose default has no price",
      withField(imageModel, "size", { enum: ["512x512", "1024x1024"], default: "auto" }),
      "input_schema.properties.size.default: does not match the schema of the field",
    ],
    ["that makes more than four images", withField(imageModel, "n", upTo(5)), "properties.n: must have a maximum of 4"],
    [
      "whose text has no maximum length",
      withField(speechModel, "text", { type: "string" }),
      "input_schema.properties.text: needs a maxLength, because units.character counts it",
    ],
    [
      "whose text is not a string",
      withField(speechModel, "text", { type: "array", maxLength: 9 }),
      "input_schema.properties.text: must be of type string",
    ],
    [
      "whose recording is not a string",
      withField(transcriptionModel, "file", { type: "object" }),
      "input_schema.properties.file: must be of type string",
    ],
    [
      "whose recording has no maximum length",
      { ...transcriptionModel, units: { minute: { minutes_of: "file", bytes_per_second: 500 } } },
      "units.minute",
    ],
    [
      "whose input images are without number",
      {
        ...withField(imageModel, "image", { type: "array", items: { type: "string" } }),
        units: { image: { field: "n" }, input_image: { items_of: ["image"] } },
        pricing: { image: "1", input_image: "1" },
      },
      "input_schema.properties.image: must be a string, or a list with maxItems",
    ],
    [
      "that counts something again for images it does not make",
      {
        ...withField(videoModel, "image", { type: "string" }),
        units: { second: { field: "duration" }, input_image: { items_of: ["image"], per: "image" } },
        pricing: { second: "1", input_image: "1" },
      },
      "units.input_image.per: 'image' has no price",
    ],
    ["with a variant whose name is taken", variants(large, large), "variants.1.name: 'large' is taken already"],
    ["with a variant without a name", variants(without(large, "name")), "variants.0.name: "],
    ["with a variant that always matches", variants({ ...large, when: {} }), "variants.0.when: names no field"],
    ["with a variant without a price", variants({ ...large, pricing: {} }), "variants.0.pricing: has no price"],
    [
      "with a variant that adds a price",
      variants({ ...large, pricing: { image: "1", request: "1" } }),
      "variants.0.pricing.request: must be priced in the model too",
    ],
    ["with a variant that is free", variants({ ...large, pricing: { image: "0" } }), "variants.0.pricing.image: is 0"],
    [
      "with a variant of a field it does not have",
      variants({ ...large, when: { depth: ["deep"] } }),
      "variants.0.when.depth: is not in input_schema",
    ],
    [
      "with a variant of a value that the field does not have",
      variants({ ...large, when: { size: ["2048x2048"] } }),
      'variants.0.when.size: has "2048x2048", which is not a value of the field',
    ],
    [
      "with a variant of a field that takes any value",
      variants({ ...large, when: { prompt: ["a"] } }),
      "variants.0.when.prompt: must be an enum in input_schema, so that every value has a price",
    ],
    [
      "with a more expensive variant of an optional field without a default",
      variants({ ...large, when: { quality: ["high"] } }),
      "variants.0.when.quality: has no default, and image is dearer with it than without",
    ],
  ])("%s", (_, entry, complaint) => {
    const load = () => catalogOf([entry]);
    expect(load).toThrow(CatalogError);
    expect(load).toThrow(`model ${String(entry["id"])}: `);
    expect(load).toThrow(complaint);
  });

  test.each([
    ["task", { ...textModel, task: "images" }],
    ["input_schema", { ...textModel, input_schema: { type: "object" } }],
    ["units", { ...textModel, units: { request: { count: 1 } } }],
    ["variants", { ...textModel, variants: [{ name: "a", when: { x: [1] }, pricing: { input: "1" } }] }],
  ])("and so does a text model with %s", (field, entry) => {
    expect(() => catalogOf([entry])).toThrow(
      new RegExp(`model acme/one: ${field}: do(es)? not fit a model of type 'text'`),
    );
  });
});

describe("a model for images or media that loads", () => {
  test("has its task and its input schema, unlike text models", () => {
    const catalog = catalogOf([textModel, imageModel, videoModel, speechModel, transcriptionModel]);
    expect(catalog.list().map(({ task }) => task)).toEqual([undefined, "images", "video", "speech", "transcription"]);
    expect(catalog.find("acme/image")?.inputSchema).toEqual(imageModel["input_schema"]);
    expect(catalog.find("acme/one")).not.toHaveProperty("inputSchema");
  });

  test("has a price line for each variant, under the variant's name", () => {
    const catalog = catalogOf([variants(large, { ...large, name: "with_image", when: { image: { present: true } } })]);
    const [model] = catalog.list();
    expect(model && model.pricing).toEqual({
      image: { unit: "image", list_usd: "0.04", elite_usd: "0.036" },
      image_large: { unit: "image", list_usd: "0.08", elite_usd: "0.072" },
      image_with_image: { unit: "image", list_usd: "0.08", elite_usd: "0.072" },
    });
  });
});
