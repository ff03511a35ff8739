import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
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

export const imageModel: Json = {
  id: "acme/picture",
  name: "Picture",
  owned_by: "acme",
  type: "image",
  released: "2026-01-02",
  pricing: { image: "0.04" },
  upstreams: [{ upstream: "acme", model: "picture" }],
};

export const without = (entry: Json, field: string): Json =>
  Object.fromEntries(Object.entries(entry).filter(([key]) => key !== field));

/** A catalog whose models are these, and whose elite discount is a tenth. */
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

/** The same with one model, and that model. */
export function catalogWith(entry: Json) {
  const catalog = catalogOf([entry]);
  const [model] = catalog.list();
  if (model === undefined) throw new Error("no model");
  return { catalog, model };
}
