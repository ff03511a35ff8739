import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { loadCatalog } from "#catalog";

export type Json = Record<string, unknown>;

export const textModel: Json = {
  id: "acme/one",
  name: "One",
  owned_by: "acme",
  type: "text",
  released: "2026-01-02",
  context_length: 100_000,
  max_output_tokens: 4_000,
  pricing: { input: "2.50", output: "10" },
  upstreams: [{ upstream: "acme", model: "one" }],
};

export const embeddingsModel: Json = {
  id: "acme/vectors",
  name: "Vectors",
  owned_by: "acme",
  type: "embeddings",
  released: "2026-01",
  context_length: 1_000,
  pricing: { input: "0.02" },
  upstreams: [{ upstream: "acme", model: "vectors" }],
};

export const rerankModel: Json = {
  ...embeddingsModel,
  id: "acme/ranks",
  type: "other",
  task: "rerank",
  pricing: { search: "0.002" },
};

export const moderationModel: Json = {
  ...rerankModel,
  id: "acme/moderates",
  task: "moderation",
  pricing: { request: "0" },
  free: ["request"],
};

export const imageModel: Json = {
  id: "acme/image",
  name: "Image",
  owned_by: "acme",
  type: "image",
  task: "images",
  released: "2026-01-02",
  input_schema: {
    type: "object",
    required: ["prompt"],
    properties: {
      prompt: { type: "string", minLength: 1, maxLength: 100 },
      n: { type: "integer", minimum: 1, maximum: 4, default: 1 },
      size: { enum: ["512x512", "1024x1024"], default: "512x512" },
      quality: { enum: ["low", "high"] },
      image: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" }, maxItems: 3 }] },
    },
  },
  units: { image: { field: "n" } },
  pricing: { image: "0.04" },
  upstreams: [{ upstream: "acme", model: "image" }],
};

const media = (over: Json): Json => ({ ...imageModel, endpoint: "/v1/media/generations", ...over });

export const videoModel: Json = media({
  id: "acme/film",
  type: "video",
  task: "video",
  input_schema: {
    type: "object",
    required: ["prompt"],
    additionalProperties: false,
    properties: {
      prompt: { type: "string" },
      duration: { enum: ["4", "8"], default: "4" },
      resolution: { enum: ["480p", "720p"], default: "480p" },
      sound: { type: "boolean", default: false },
      image: { type: "string" },
    },
  },
  units: { second: { field: "duration" } },
  pricing: { second: "0.10" },
});

export const speechModel: Json = media({
  id: "acme/voice",
  type: "audio",
  task: "speech",
  input_schema: {
    type: "object",
    required: ["text"],
    properties: { text: { type: "string", minLength: 1, maxLength: 50 }, voice: { enum: ["ann", "bob"] } },
  },
  units: { character: { characters_of: "text" } },
  pricing: { character: "0.000015" },
});

export const transcriptionModel: Json = media({
  id: "acme/ear",
  type: "audio",
  task: "transcription",
  input_schema: { type: "object", required: ["file"], properties: { file: { type: "string" } } },
  units: { minute: { minutes_of: "file", bytes_per_second: 500, max: 25 } },
  pricing: { minute: "0.006" },
});

/** The model with another schema for one field of its input. */
export function withField(model: Json, field: string, schema: Json): Json {
  const input = model["input_schema"] as { readonly properties: Json };
  return { ...model, input_schema: { ...input, properties: { ...input.properties, [field]: schema } } };
}

export const without = (entry: Json, field: string): Json =>
  Object.fromEntries(Object.entries(entry).filter(([key]) => key !== field));

/** A catalog with these models, and an elite discount of a tenth. */
export function catalogOf(models: readonly Json[], rest: Json = {}) {
  const file = path.join(tmpdir(), `catalog-${randomUUID()}.json`);
  const upstreams = { acme: { provider: "openai", base_url: "https://acme.test/v1", key_env: "ACME_API_KEY" } };
  writeFileSync(file, JSON.stringify({ elite_discount_bps: 1_000, upstreams, models, ...rest }));
  try {
    return loadCatalog(file);
  } finally {
    rmSync(file);
  }
}

/** A catalog with one model, and that model. */
export function catalogWith(entry: Json) {
  const catalog = catalogOf([entry]);
  const [model] = catalog.list();
  if (model === undefined) throw new Error("no model");
  return { catalog, model };
}

/** Inputs that match a schema, as far as its keywords occur in the shipped catalog; texts are short. */
export function validInputs(schema: Readonly<Json>): fc.Arbitrary<Json> {
  const { properties, required } = schema as { readonly properties: Json; readonly required: string[] };
  const fields = Object.entries(properties).map(([name, field]) => [name, valid(field as Json)] as const);
  return fc.record(Object.fromEntries(fields), { requiredKeys: required });
}

function valid(schema: Json): fc.Arbitrary<unknown> {
  const {
    type,
    items,
    minimum,
    maximum,
    minLength,
    maxLength,
    minItems,
    maxItems,
    pattern,
    multipleOf = 1,
  } = schema as Record<string, number> & { type?: string; items?: Json; pattern?: string };
  const options = schema["enum"] ?? schema["anyOf"];
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...schema["enum"]);
  if (Array.isArray(options)) return fc.oneof(...options.map((option: Json) => valid(option)));
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  if (type === "boolean") return fc.boolean();
  if (type === "number") return fc.double({ min: minimum ?? 0, max: maximum ?? 1, noNaN: true });
  if (type === "array" && items) return fc.array(valid(items), { minLength: minItems ?? 0, maxLength: maxItems ?? 3 });
  if (type === "integer") {
    const [min, max] = [(minimum ?? 0) / multipleOf, Math.floor((maximum ?? 1e9) / multipleOf)];
    return fc.integer({ min, max }).map((count) => count * multipleOf);
  }
  if (type !== "string") throw new Error(`no values for ${JSON.stringify(schema)}`);
  const units = { minLength: minLength ?? 0, maxLength: Math.min(maxLength ?? 50, 50) };
  return fc.string({ unit: "grapheme", ...units }).filter((text) => text.length <= (maxLength ?? 50));
}
