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
  /** The error of a catalog with this model. */
  const errorOf = (entry: Json) => {
    try {
      catalogOf([entry]);
    } catch (error) {
      if (error instanceof CatalogError && error.message.includes(`model ${String(entry["id"])}: `))
        return error.message;
      throw error;
    }
    return "";
  };

  test.each<[complaint: string, entry: Json]>([
    ["task: must be one of images for a model of type 'image'", without(imageModel, "task")],
    ["task: must be one of images", { ...imageModel, task: "speech" }],
    ["task: Invalid option", { ...imageModel, task: "dance" }],
    ["input_schema: is missing", without(imageModel, "input_schema")],
    ["input_schema.type: must be 'object'", schema({ type: "string" })],
    [
      "input_schema: is not a supported schema: not is not supported",
      schema({ type: "object", properties: { n: upTo(4), x: { not: { type: "string" } } } }),
    ],
    [
      "input_schema: is not a supported schema: Invalid regular expression",
      withField(imageModel, "style", { type: "string", pattern: "(" }),
    ],
    ["units.image: and its price need each other", units({})],
    [
      "units.input_image: and its price need each other",
      units({ image: { field: "n" }, input_image: { items_of: ["image"] } }),
    ],
    ['units.image: Unrecognized key: "pages_of"', units({ image: { pages_of: "n" } })],
    ['units.image: Unrecognized key: "characters_of"', units({ image: { characters_of: "prompt" } })],
    ["units.image: counts 'count', which input_schema does not have", units({ image: { field: "count" } })],
    [
      "input_schema.properties.n.default: does not match the schema of the field",
      withField(imageModel, "n", { ...upTo(4), default: 100 }),
    ],
    [
      "input_schema.properties.size.default: does not match the schema of the field",
      withField(imageModel, "size", { enum: ["512x512", "1024x1024"], default: "auto" }),
    ],
    [
      "units.minute: Invalid input",
      { ...transcriptionModel, units: { minute: { minutes_of: "file", bytes_per_second: 500 } } },
    ],
    [
      "input_schema.properties.image: must be a string, or a list with maxItems",
      {
        ...withField(imageModel, "image", { type: "array", items: { type: "string" } }),
        units: { image: { field: "n" }, input_image: { items_of: ["image"] } },
        pricing: { image: "1", input_image: "1" },
      },
    ],
    [
      "units.input_image.per: 'image' has no price",
      {
        ...withField(videoModel, "image", { type: "string" }),
        units: { second: { field: "duration" }, input_image: { items_of: ["image"], per: "image" } },
        pricing: { second: "1", input_image: "1" },
      },
    ],
    ["variants.1.name: 'large' is taken already", variants(large, large)],
    ["variants.0.name: Invalid input", variants(without(large, "name"))],
  ])("%s", (complaint, entry) => expect(errorOf(entry)).toContain(complaint));

  test.each<[complaint: string, model: Json, field: string, schema: Json]>([
    ["needs a maximum", imageModel, "n", { type: "integer", minimum: 1, default: 1 }],
    ["needs a minimum above 0", imageModel, "n", { ...upTo(4), minimum: 0 }],
    ["must be an enum or of type integer", imageModel, "n", { minimum: 1, maximum: 4, default: 1 }],
    ["must be an enum or of type integer", imageModel, "n", { ...upTo(4), type: "number" }],
    ["has values that are not counts", videoModel, "duration", { enum: ["4", "auto"], default: "4" }],
    ["has values that are not counts", videoModel, "duration", { enum: ["4s", "4ms"], default: "4s" }],
    ["is neither required nor has a default", imageModel, "n", { type: "integer", minimum: 1, maximum: 4 }],
    ["must have a maximum of 4", imageModel, "n", upTo(5)],
    ["needs a maxLength, because units.character counts it", speechModel, "text", { type: "string" }],
    ["must be of type string", speechModel, "text", { type: "array", maxLength: 9 }],
    ["must be of type string", transcriptionModel, "file", { type: "object" }],
  ])("a field of its input: %s", (complaint, model, field, schema) =>
    expect(errorOf(withField(model, field, schema))).toContain(`properties.${field}: ${complaint}`),
  );

  test.each<[complaint: string, change: Json]>([
    ["when: names no field", { when: {} }],
    ["pricing: has no price", { pricing: {} }],
    ["pricing.request: must be priced in the model too", { pricing: { image: "1", request: "1" } }],
    ["pricing.image: is 0", { pricing: { image: "0" } }],
    ["when.depth: is not in input_schema", { when: { depth: ["deep"] } }],
    ['when.size: has "2048x2048", which is not a value of the field', { when: { size: ["2048x2048"] } }],
    ["when.prompt: must be an enum in input_schema, so that every value has a price", { when: { prompt: ["a"] } }],
    ["when.quality: has no default, and image is dearer with it than without", { when: { quality: ["high"] } }],
  ])("a variant: %s", (complaint, change) =>
    expect(errorOf(variants({ ...large, ...change }))).toContain(`variants.0.${complaint}`),
  );

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
