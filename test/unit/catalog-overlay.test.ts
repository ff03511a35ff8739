import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { CatalogError, loadCatalog } from "#catalog";
import { type Json, textModel } from "../support/catalog-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "overlay-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileOf(content: unknown): string {
  const file = join(folder, `${files++}.json`);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

const tiered: Json = {
  ...textModel,
  id: "acme/two",
  pricing: { input: "2.50", cached_input: "0.50", output: "10" },
  tiers: [{ above_input_tokens: 2_000, pricing: { input: "5", cached_input: "1", output: "20" } }],
};
const upstreams = { acme: { provider: "openai", base_url: "https://acme.test/v1", key_env: "ACME_API_KEY" } };
const base = fileOf({ elite_discount_bps: 1_000, upstreams, models: [textModel, tiered] });

const load = (overlay: unknown, file = base) => loadCatalog(file, fileOf(overlay));
const pricesOf = (catalog: ReturnType<typeof load>, id: string) => {
  const model = catalog.find(id);
  return model && Object.fromEntries(Object.entries(model.pricing).map(([key, line]) => [key, line.list_usd]));
};

describe("an overlay", () => {
  test("changes one price by one line, and nothing else", () => {
    const before = loadCatalog(base);
    const after = load({ models: { "acme/one": { pricing: { input: "1.00" } } } });
    expect(pricesOf(after, "acme/one")).toEqual({ input: "1.00", output: "10.00" });
    expect(pricesOf(after, "acme/two")).toEqual(pricesOf(before, "acme/two"));
    const cost = (catalog: typeof before) => {
      const model = catalog.find("acme/one");
      return model && catalog.cost(model, { input: 1_000_000 }, "standard");
    };
    expect([cost(before), cost(after)]).toEqual([2_500_000_000n, 1_000_000_000n]);
  });

  test("changes one price of the shipped catalog", () => {
    const catalog = loadCatalog(
      undefined,
      fileOf({ models: { "openai/gpt-4o": { pricing: { input: "1.00", cached_input: "0.10" } } } }),
    );
    expect(pricesOf(catalog, "openai/gpt-4o")).toMatchObject({ input: "1.00", output: "10.00" });
    expect(catalog.list()).toHaveLength(loadCatalog(undefined).list().length);
  });

  test("removes fields and models by null, adds models at the end, and replaces lists as a whole", () => {
    const catalog = load({
      models: {
        "acme/two": { pricing: { cached_input: null }, tiers: null, context_length: 50_000 },
        "acme/one": null,
        "acme/three": { ...tiered, id: "acme/three", tiers: [] },
        "acme/four": { ...textModel, id: undefined },
      },
    });
    expect(catalog.list().map(({ id }) => id)).toEqual(["acme/two", "acme/three", "acme/four"]);
    expect(pricesOf(catalog, "acme/two")).toEqual({ input: "2.50", output: "10.00" });
    expect(pricesOf(catalog, "acme/three")).toEqual({ input: "2.50", cached_input: "0.50", output: "10.00" });
    expect(catalog.find("acme/two")).toMatchObject({ contextLength: 50_000, maxOutputTokens: 4_000 });
  });

  test("also changes upstreams and the discount", () => {
    const catalog = load({
      elite_discount_bps: 2_000,
      upstreams: { acme: { concurrency: 7, key_env: null }, other: { provider: "local" } },
      models: { "acme/one": { upstreams: [{ upstream: "other", model: "chat" }] } },
    });
    expect(catalog.upstreams.get("acme")).toMatchObject({ concurrency: 7, baseUrl: "https://acme.test/v1" });
    expect(catalog.upstreams.get("acme")?.apiKeyEnv).toBeUndefined();
    expect(catalog.find("acme/one")).toMatchObject({ eliteDiscountBps: 2_000, upstreams: [{ upstream: "other" }] });
  });

  test("that is empty changes nothing", () => {
    expect(load({}).hash).toBe(loadCatalog(base).hash);
  });

  test("cannot reach a prototype", () => {
    const overlay = '{"models": {"acme/one": {"pricing": {"__proto__": {"output": "1"}}}}}';
    expect(() => load(overlay)).toThrow('overlay: model acme/one: pricing: Unrecognized key: "__proto__"');
    expect(({} as Json)["output"]).toBeUndefined();
  });
});

/** The lines below the first one, which names the files. */
function faults(overlay: unknown, file = base): readonly string[] {
  try {
    load(overlay, file);
  } catch (error) {
    const [first = "", ...lines] = (error as CatalogError).message.split("\n  ");
    if (!(error instanceof CatalogError) || !first.includes(folder)) throw error;
    return lines;
  }
  return [];
}

describe("a fault of an overlay stops the load, and says where it is from", () => {
  test.each([
    ["model acme/one: pricing.input: Invalid input", { models: { "acme/one": { pricing: { input: 1 } } } }],
    [
      "model acme/one: pricing.input: is missing: the model has no price",
      { models: { "acme/one": { pricing: { input: null } } } },
    ],
    [
      "model acme/two: pricing.cached_input: is dearer than input",
      { models: { "acme/two": { pricing: { input: "0.10" } } } },
    ],
    ["model acme/won: name: Invalid input", { models: { "acme/won": { pricing: { input: "1" } } } }],
    [
      "model acme/won: is not in the catalog without the overlay, so it needs every field that is required",
      { models: { "acme/won": { pricing: { input: "1" } } } },
    ],
    [
      "upstream acne: is not in the catalog without the overlay, so it needs every field that is required",
      { upstreams: { acne: { concurrency: 64 } } },
    ],
    ["model acme/won: is not in the catalog, so it cannot be removed", { models: { "acme/won": null } }],
    [
      "model acme/one: upstreams.0.upstream: 'acme' is not among the catalog's upstreams",
      { upstreams: { acme: null } },
    ],
    ["model acme/one: id: differs from its key", { models: { "acme/one": { id: "acme/uno" } } }],
    ["upstream acme: quirks: Unrecognized key", { upstreams: { acme: { quirks: { kind: true } } } }],
  ])("%s", (message, overlay) => {
    expect(faults(overlay)).toContainEqual(expect.stringContaining(`overlay: ${message}`));
  });

  test.each([
    ["models: Invalid input: expected record", { models: [{ id: "acme/one" }] }],
    ["models.acme/one: Invalid input: expected record", { models: { "acme/one": "1.00" } }],
    ['the file: Unrecognized key: "prices"', { prices: {} }],
    ["the file: Invalid input: expected object", "[]"],
  ])("%s", (message, overlay) => {
    expect(faults(overlay)).toContainEqual(expect.stringContaining(message));
  });

  test("but a fault of the catalog itself is the catalog's", () => {
    const broken = fileOf({ elite_discount_bps: 1_000, upstreams, models: [textModel, { ...tiered, color: "red" }] });
    const lines = faults({ models: { "acme/one": { pricing: { input: "-1" } } } }, broken);
    expect(lines).toEqual([
      expect.stringMatching(/^overlay: model acme\/one: pricing.input: /),
      expect.stringMatching(/^model acme\/two: .*color/),
    ]);
    // An overlay can fix it.
    expect(faults({ models: { "acme/two": { color: null } } }, broken)).toEqual([]);
  });

  test("as do a file that is missing and one that is not JSON", () => {
    expect(() => loadCatalog(base, "/nowhere/overlay.json")).toThrow(
      /^The catalog overlay \/nowhere\/overlay.json cannot be read: ENOENT/,
    );
    expect(() => load("{")).toThrow(/^The catalog overlay .* cannot be read: /);
  });
});
