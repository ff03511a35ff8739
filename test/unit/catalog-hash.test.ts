import { expect, test } from "vitest";
import { catalogOf, embeddingsModel, type Json, textModel } from "../support/catalog-fixture.ts";

const hash = (...models: readonly Json[]) => catalogOf(models).hash;
const base = hash(textModel, embeddingsModel);

const reversed = (object: Json): Json => Object.fromEntries(Object.entries(object).toReversed());

test("a hash is short, and the same at every load", () => {
  expect(base).toMatch(/^[0-9a-f]{12}$/);
  expect(hash(textModel, embeddingsModel)).toBe(base);
});

test.each<[string, readonly Json[]]>([
  ["the order of keys", [reversed(textModel), { ...embeddingsModel, pricing: { input: "0.02" } }]],
  ["the order of models", [embeddingsModel, textModel]],
  ["a default that is written out", [{ ...textModel, aliases: [] }, embeddingsModel]],
])("%s does not change it", (_, models) => {
  expect(hash(...models)).toBe(base);
});

test.each<[string, readonly Json[]]>([
  ["a price", [{ ...textModel, pricing: { input: "2.51", output: "10" } }, embeddingsModel]],
  ["a discount", [{ ...textModel, elite_discount_bps: 1 }, embeddingsModel]],
  ["a limit", [{ ...textModel, max_output_tokens: 4_001 }, embeddingsModel]],
  ["a model that is missing", [textModel]],
])("%s changes it", (_, models) => {
  expect(hash(...models)).not.toBe(base);
});

test("the order in which a model's upstreams are tried changes it", () => {
  const served = ["one", "two"].map((model) => ({ upstream: "acme", model }));
  expect(hash({ ...textModel, upstreams: served.toReversed() })).not.toBe(hash({ ...textModel, upstreams: served }));
});
