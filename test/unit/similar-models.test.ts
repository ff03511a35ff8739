import { expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { modelNotFound } from "#errors";
import { similarModels } from "../../api/admission/model.ts";
import { catalogOf, textModel } from "../support/catalog-fixture.ts";

const shipped = loadCatalog(undefined).list();

test.each([
  ["the bare id", "gpt-4o", ["openai/gpt-4o"]],
  ["a provider's name for it", "gpt-4o-2024-08-06", ["openai/gpt-4o"]],
  ["a dated name that the catalog does not have", "claude-sonnet-4-6-20260217", ["anthropic/claude-sonnet-4-6"]],
  ["the latest one", "claude-opus-5-latest", ["anthropic/claude-opus-5"]],
  ["a host in place of the provider", "groq/gpt-oss-120b", ["openai/gpt-oss-120b"]],
  ["two prefixes", "openrouter/anthropic/claude-opus-5", ["anthropic/claude-opus-5"]],
  ["a variant", "deepseek/deepseek-v4-pro:free", ["deepseek/deepseek-v4-pro"]],
  ["capitals and other punctuation", "Anthropic/Claude Sonnet 4.6", ["anthropic/claude-sonnet-4-6"]],
  ["a digit too many", "anthropic/claude-sonnet-4-66", ["anthropic/claude-sonnet-4-6"]],
  ["two letters too many in a long name", "text-embeddings-3-smalls", ["openai/text-embedding-3-small"]],
  ["another short name", "gpt-9", []],
  ["a name far from any", "nobody/nothing-like-it", []],
  ["only a provider", "openai/", []],
  ["nothing", "", []],
])("%s", (_, name, ids) => {
  expect(similarModels(shipped, name)).toEqual(ids);
});

test("a name under several providers gives up to three ids, each of them once", () => {
  const ids = ["a/one", "b/one", "c/one", "d/one"];
  const models = catalogOf(ids.map((id) => ({ ...textModel, id, aliases: [`${id.slice(0, 1)}-one`] }))).list();
  expect(similarModels(models, "one")).toEqual(ids.slice(0, 3));
  expect(modelNotFound("one", ["a/one", "b/one"]).message).toBe(
    "The model 'one' does not exist. Did you mean 'a/one' or 'b/one'?",
  );
});

test("hostile names cost little and match nothing", () => {
  const start = process.cpuUsage();
  for (const name of ["/".repeat(80), "-latest".repeat(1e6), "a".repeat(79), `gpt-4o${" ".repeat(1e6)}`])
    for (let times = 0; times < 20; times++) expect(similarModels(shipped, name)).toEqual([]);
  const { user, system } = process.cpuUsage(start);
  expect((user + system) / 1_000).toBeLessThan(2_000);
});
