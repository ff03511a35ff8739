import { describe, expect, test } from "vitest";
import { CatalogError, loadCatalog, noQuirks, upstreamVariables } from "#catalog";
import {
  catalogOf,
  embeddingsModel,
  imageModel,
  type Json,
  moderationModel,
  rerankModel,
  speechModel,
  textModel,
  transcriptionModel,
  videoModel,
  without,
} from "../support/catalog-fixture.ts";

const pricing = (over: object): Json => ({ ...textModel, pricing: { input: "2.50", output: "10", ...over } });
const tiers = (...list: readonly [number, object][]): Json => ({
  ...textModel,
  tiers: list.map(([above_input_tokens, prices]) => ({ above_input_tokens, pricing: prices })),
});
const prices = { input: "5", output: "15" };
const serving = (more: Json): Json => ({ ...textModel, upstreams: [{ upstream: "acme", model: "one", ...more }] });

describe("a model that stops the load", () => {
  test.each([
    ["text without a price for input", { ...textModel, pricing: { output: "1" } }, "pricing.input: is missing"],
    ["text without a price for output", { ...textModel, pricing: { input: "1" } }, "pricing.output: is missing"],
    ["text without prices", without(textModel, "pricing"), "pricing: "],
    ["a negative price", pricing({ input: "-1" }), "pricing.input: must be a decimal string"],
    ["a price that is a number", pricing({ input: 1 }), "pricing.input: "],
    ["a price with an exponent", pricing({ input: "1e3" }), "pricing.input: must be a decimal string"],
    ["a price with ten decimals", pricing({ input: "0.1234567891" }), "at most 9 decimals"],
    ["a zero that nothing allows", pricing({ input: "0.00" }), "pricing.input: is 0, and 'free' does not name it"],
    ["a free key that costs", { ...textModel, free: ["input"] }, "pricing.input: is not 0, but 'free' names it"],
    ["a free key without a price", { ...textModel, free: ["cached_input"] }, "free: names 'cached_input'"],
    ["cached input dearer than input", pricing({ cached_input: "3" }), "pricing.cached_input: is dearer than input"],
    ["a price of pieces on text", pricing({ image: "1" }), "pricing.image: does not fit a model of type 'text'"],
    ["an unknown price key", pricing({ thought: "1" }), "thought"],
    ["an unknown field", { ...textModel, color: "red" }, "color"],
    ["audio without its price", { ...textModel, features: ["audio"], max_part_tokens: { audio: 9 } }, "audio_input"],
    [
      "audio output without its price",
      { ...textModel, features: ["audio_output"] },
      "pricing.audio_output: is missing",
    ],
    [
      "a longer cache without its price",
      { ...textModel, features: ["cache_retention"] },
      "pricing.cache_write_1h: is missing: the feature 'cache_retention' has no price",
    ],
    ["web search without its price", { ...textModel, features: ["web_search"] }, "pricing.request: is missing"],
    ["a feature that no price can carry", { ...textModel, features: ["service_tier"] }, "features.0: "],
    ["images without a maximum", { ...textModel, features: ["image"] }, "max_part_tokens.image: "],
    ["a maximum without images", { ...textModel, max_part_tokens: { image: 9 } }, "max_part_tokens.image: "],
    ["output as long as the context", { ...textModel, max_output_tokens: 100_000 }, "max_output_tokens: must be less"],
    ["text without a context length", without(textModel, "context_length"), "context_length: is missing"],
    ["text without an output limit", without(textModel, "max_output_tokens"), "max_output_tokens: is missing"],
    ["an endpoint of another type", { ...textModel, endpoint: "/v1/embeddings" }, "endpoint: contradicts type 'text'"],
    ["an upstream that is not there", { ...textModel, upstreams: [{ upstream: "x", model: "y" }] }, "'x' is not among"],
    ["no upstream", { ...textModel, upstreams: [] }, "upstreams: "],
    ["a weight of nothing", serving({ weight: 0 }), "upstreams.0.weight: "],
    ["a weight in parts", serving({ weight: 0.5 }), "upstreams.0.weight: "],
    ["a cost that is no price", serving({ cost: { input: 1, output: "1" } }), "upstreams.0.cost.input: "],
    ["a cost without the output", serving({ cost: { input: "1" } }), "upstreams.0.cost.output: is missing"],
    [
      "a cost of what is not billed",
      serving({ cost: { input: "1", output: "1", image: "1" } }),
      "upstreams.0.cost.image: is not a price key",
    ],
    ["a day that does not exist", { ...textModel, released: "2026-02-30" }, "released: must be"],
    ["an alias with a slash", { ...textModel, aliases: ["acme/uno"] }, "aliases.0: must be a bare name"],
    ["an alias twice", { ...textModel, aliases: ["uno", "uno"] }, "aliases: 'uno' is taken already"],
    ["a discount of the whole price", { ...textModel, elite_discount_bps: 10_000 }, "elite_discount_bps: "],
    ["tiers that do not ascend", tiers([2_000, prices], [2_000, prices]), "tiers.1.above_input_tokens: must ascend"],
    ["a tier beyond the context", tiers([100_000, prices]), "tiers.0.above_input_tokens: is never reached"],
    ["a tier that leaves a price out", tiers([2_000, { input: "5" }]), "tiers.0.pricing.output: "],
    ["a tier with a price more", tiers([2_000, { ...prices, cached_input: "1" }]), "tiers.0.pricing.cached_input: "],
    ["a tier that is free", tiers([2_000, { input: "5", output: "0" }]), "tiers.0.pricing.output: is 0"],
    ["embeddings without a price", { ...embeddingsModel, pricing: {} }, "pricing.input: is missing"],
    [
      "embeddings with output",
      { ...embeddingsModel, pricing: { input: "1", output: "1" } },
      "pricing.output: does not",
    ],
    [
      "embeddings with an output limit",
      { ...embeddingsModel, max_output_tokens: 9 },
      "max_output_tokens: does not fit",
    ],
    ["embeddings with features", { ...embeddingsModel, features: ["tools"] }, "features: do not fit"],
    ["rerank without a price", { ...rerankModel, pricing: {} }, "pricing: needs a price for one of input, search"],
    ["rerank by pieces", { ...rerankModel, pricing: { search: "1", image: "1" } }, "pricing.image: does not fit"],
    ["rerank without a context length", without(rerankModel, "context_length"), "context_length: is missing"],
    ["rerank at another endpoint", { ...rerankModel, endpoint: "/v1/media/generations" }, "served by /v1/rerank"],
    [
      "rerank with an input schema",
      { ...rerankModel, input_schema: {} },
      "input_schema: does not fit a model with the",
    ],
    [
      "rerank of another type",
      { ...rerankModel, type: "embeddings" },
      "task: does not fit a model of type 'embeddings'",
    ],
    [
      "media priced by searches",
      { ...imageModel, pricing: { image: "1", search: "1" } },
      "pricing.search: does not fit",
    ],
    [
      "moderation that costs",
      { ...moderationModel, pricing: { request: "1" }, free: [] },
      "free: must name 'request': moderations cost nothing",
    ],
    ["moderation without a price", { ...moderationModel, pricing: {}, free: [] }, "pricing.request: is missing"],
    [
      "an image model without a price for images",
      { ...imageModel, pricing: {} },
      "pricing: needs a price for one of image",
    ],
    [
      "an image model priced by tokens",
      { ...imageModel, pricing: { image: "1", input: "1" } },
      "pricing.input: does not fit",
    ],
  ])("%s", (_, entry, complaint) => {
    const load = () => catalogOf([entry]);
    expect(load).toThrow(CatalogError);
    expect(load).toThrow(`model ${String(entry["id"])}: `);
    expect(load).toThrow(complaint);
  });

  test.each(["One", "acme", "acme/", "/one", "ACME/one", "acme/one/two", "acme/o ne"])("the id '%s'", (id) => {
    expect(() => catalogOf([{ ...textModel, id }])).toThrow(`model ${id}: id: must have the form provider/model`);
  });

  test("an id, or an alias, that another model has", () => {
    expect(() => catalogOf([textModel, textModel])).toThrow("model acme/one: id: 'acme/one' is taken already");
    const aliased = { ...textModel, aliases: ["uno"] };
    expect(() => catalogOf([aliased, { ...embeddingsModel, aliases: ["uno"] }])).toThrow(
      "model acme/vectors: aliases: 'uno' is taken already",
    );
  });

  test("the message lists the faults of all entries", () => {
    const load = () => catalogOf([pricing({ input: "0" }), { ...embeddingsModel, pricing: {} }]);
    expect(load).toThrow("model acme/one: pricing.input: is 0");
    expect(load).toThrow("model acme/vectors: pricing.input: is missing");
  });

  test("an entry without an id is named by its index", () => {
    expect(() => catalogOf([textModel, without(textModel, "id")])).toThrow("models[1]: id: ");
  });
});

describe("an upstream that stops the load", () => {
  const good = { provider: "openai", base_url: "https://acme.test/v1" };
  test.each([
    ["without an address", { provider: "openai" }, "base_url: is missing"],
    ["with a slash at the end of its address", { ...good, base_url: "https://acme.test/v1/" }, "base_url: "],
    ["with a password in its address", { ...good, base_url: "https://me:secret@acme.test" }, "base_url: "],
    ["with an address that is none", { ...good, base_url: "acme" }, "base_url: "],
    [
      "with a key variable of another kind",
      { ...good, key_env: "ADMIN_TOKEN" },
      "key_env: must be the name of a variable",
    ],
    ["with an address variable of another kind", { ...good, base_url_env: "MONGODB_URI" }, "base_url_env: must be"],
    ["of Anthropic without an address", { provider: "anthropic" }, "base_url: is missing, and base_url_env too"],
    [
      "of another provider than OpenAI's with formats",
      { ...good, provider: "gemini", formats: ["chat"] },
      "formats: are for the provider 'openai' only: those of 'gemini' are fixed",
    ],
    [
      "of another provider than OpenAI's with quirks",
      { ...good, provider: "gemini", quirks: { extra_fields: ["top_k"] } },
      "quirks: are for the provider 'openai' only",
    ],
    ["with a quirk that there is not", { ...good, quirks: { unknown_fields: "pass" } }, "quirks: "],
    [
      "with a format that OpenAI's interface has not",
      { ...good, formats: ["chat", "messages"] },
      "formats: 'messages' is not supported by the provider 'openai', only chat and responses",
    ],
    ["with a format twice", { ...good, formats: ["chat", "chat"] }, "formats: names a format twice"],
    ["without formats", { ...good, formats: [] }, "formats: "],
    ["with an unknown format", { ...good, formats: ["smoke"] }, "formats.0: "],
    ["of an unknown provider", { ...good, provider: "smoke" }, "provider: "],
    ["that is local and has a key", { provider: "local", key_env: "A_API_KEY" }, "provider: 'local' runs inside"],
    ["with a silence longer than the whole", { ...good, silence_timeout_ms: 900_001 }, "silence_timeout_ms: is longer"],
    ["without concurrency", { ...good, concurrency: 0 }, "concurrency: "],
    ["with an unknown field", { ...good, color: "red" }, "color"],
  ])("%s", (_, acme, complaint) => {
    const load = () => catalogOf([textModel], { upstreams: { acme } });
    expect(load).toThrow(CatalogError);
    expect(load).toThrow("upstream acme: ");
    expect(load).toThrow(complaint);
  });
});

describe("a model on an upstream that cannot serve it stops the load", () => {
  const on = (provider: string, more: Json = {}) => ({
    upstreams: { acme: { provider, ...(provider !== "local" && { base_url: "https://acme.test" }), ...more } },
  });
  const says = (formats: readonly string[]): Json => ({ upstreams: [{ upstream: "acme", model: "one", formats }] });

  test.each([
    ["embeddings", "anthropic", embeddingsModel],
    ["image", "anthropic", imageModel],
    ["other", "gemini", { ...imageModel, type: "other" }],
    ["text", "replicate", textModel],
    ["embeddings", "replicate", embeddingsModel],
    ["text", "fal", textModel],
    ["embeddings", "fal", embeddingsModel],
  ])("%s on %s", (type, provider, entry) => {
    const load = () => catalogOf([entry], on(provider));
    expect(load).toThrow(CatalogError);
    expect(load).toThrow(
      `model ${String(entry["id"])}: upstreams.0.upstream: 'acme' serves no model of type '${type}': '${provider}' has `,
    );
  });

  test.each([rerankModel, moderationModel])("$task on a host of other vendors' models", (entry) => {
    const complaint = `'acme' serves no model with the task '${String(entry["task"])}'`;
    expect(() => catalogOf([entry], on("replicate"))).toThrow(complaint);
  });

  test.each([
    ["anthropic", [textModel]],
    ["gemini", [textModel, embeddingsModel, imageModel, videoModel, speechModel]],
    ["replicate", [imageModel, videoModel, speechModel, transcriptionModel]],
    ["fal", [imageModel, videoModel, speechModel, transcriptionModel]],
    ["openai", [textModel, embeddingsModel, imageModel, videoModel, speechModel, rerankModel, moderationModel]],
    ["local", [textModel, embeddingsModel, imageModel, videoModel, speechModel, rerankModel, moderationModel]],
  ])("but not the types that %s has", (provider, entries) => {
    expect(catalogOf(entries, on(provider)).list()).toHaveLength(entries.length);
  });

  test.each([
    [
      "in a format that its upstream does not speak",
      on("openai"),
      says(["responses"]),
      "'responses' is not among the formats of",
    ],
    [
      "of a provider that has but one format",
      on("anthropic"),
      says(["messages"]),
      "are for the provider 'openai' only: those of 'anthropic' are fixed",
    ],
    ["in no format", on("openai"), says([]), ""],
  ])("%s", (_, file, over, complaint) => {
    const load = () => catalogOf([{ ...textModel, ...over }], file);
    expect(load).toThrow(`model acme/one: upstreams.0.formats: ${complaint}`);
  });

  test("in a format, if the model is not for text", () => {
    expect(() => catalogOf([{ ...imageModel, ...says(["chat"]) }], on("openai"))).toThrow(
      "model acme/image: upstreams.0.formats: do not fit a model of type 'image'",
    );
  });
});

describe("a catalog that loads", () => {
  test("gives the formats of an upstream, chat if it names none, and those of a model where they are less", () => {
    const upstreams = {
      both: { provider: "openai", base_url: "https://both.test/v1", formats: ["chat", "responses"] },
      chat: { provider: "openai", base_url: "https://chat.test/v1" },
    };
    const served = [
      { upstream: "both", model: "one", formats: ["responses"] },
      { upstream: "chat", model: "one" },
    ];
    const catalog = catalogOf([{ ...textModel, upstreams: served }], { upstreams });
    expect([...catalog.upstreams.values()].map(({ formats }) => formats)).toEqual([["chat", "responses"], ["chat"]]);
    expect(catalog.list()[0]?.upstreams).toEqual(served);
  });

  test.each(["ACME_API_KEY", "ACME_API_TOKEN", "FAL_KEY"])("takes %s for the name of a key's variable", (name) => {
    const acme = { provider: "openai", base_url: "https://acme.test/v1", key_env: name };
    expect(catalogOf([textModel], { upstreams: { acme } }).upstreams.get("acme")?.apiKeyEnv).toBe(name);
  });

  test("gives models by id, in the order of the file, with their defaults", () => {
    const catalog = catalogOf([{ ...textModel, aliases: ["one"], features: ["tools"] }, embeddingsModel, imageModel]);
    expect(catalog.list().map((model) => model.id)).toEqual(["acme/one", "acme/vectors", "acme/image"]);
    expect(catalog.find("acme/one")).toMatchObject({
      name: "One",
      ownedBy: "acme",
      type: "text",
      endpoint: "/v1/chat/completions",
      contextLength: 100_000,
      maxOutputTokens: 4_000,
      outputCapField: "max_tokens",
      hiddenReasoning: false,
      eliteDiscountBps: 1_000,
      features: new Set(["tools"]),
      aliases: ["one"],
      created: 1_767_312_000,
      upstreams: [{ upstream: "acme", model: "one" }],
    });
    expect(catalog.find("acme/vectors")).toMatchObject({ endpoint: "/v1/embeddings", maxOutputTokens: 0 });
    expect(catalog.find("acme/image")).toMatchObject({ endpoint: "/v1/images/generations", contextLength: 0 });
    for (const id of ["one", "acme/two", "__proto__", ""]) expect(catalog.find(id)).toBeUndefined();
  });

  test("has long timeouts and high concurrency for upstreams by default", () => {
    const catalog = catalogOf([textModel], {
      upstreams: {
        acme: { provider: "openai", base_url_env: "ACME_BASE_URL" },
        home: {
          provider: "local",
          concurrency: 4,
          first_byte_timeout_ms: 1,
          silence_timeout_ms: 2,
          total_timeout_ms: 3,
        },
      },
    });
    expect(catalog.upstreams.get("acme")).toEqual({
      id: "acme",
      provider: "openai",
      baseUrlEnv: "ACME_BASE_URL",
      formats: ["chat"],
      storesAnswers: false,
      quirks: noQuirks,
      concurrency: 512,
      deadlines: { firstByteMs: 600_000, silenceMs: 120_000, totalMs: 900_000 },
    });
    expect(catalog.upstreams.get("home")).toEqual({
      id: "home",
      provider: "local",
      formats: ["chat"],
      storesAnswers: false,
      quirks: noQuirks,
      concurrency: 4,
      deadlines: { firstByteMs: 1, silenceMs: 2, totalMs: 3 },
    });
  });

  test("allows a price of 0 that is named as free", () => {
    const catalog = catalogOf([{ ...textModel, pricing: { input: "0", output: "1" }, free: ["input"] }]);
    const [model] = catalog.list();
    expect(model && catalog.cost(model, { input: 1_000_000, output: 1 }, "standard")).toBe(1_000n);
  });

  test("names the environment variables of its upstreams", () => {
    const upstreams = {
      acme: {
        provider: "openai",
        base_url: "https://acme.test",
        base_url_env: "ACME_BASE_URL",
        key_env: "ACME_API_KEY",
      },
      own: { provider: "openai", base_url_env: "OWN_BASE_URL" },
    };
    expect(upstreamVariables(catalogOf([textModel], { upstreams }))).toEqual([
      {
        name: "ACME_API_KEY",
        description: "API key of the upstream 'acme'; without it, its models are not listed",
        secret: true,
      },
      {
        name: "ACME_BASE_URL",
        description: "Address of the upstream 'acme'; default: https://acme.test",
        secret: false,
      },
      { name: "OWN_BASE_URL", description: "Address of the upstream 'own'", secret: false },
    ]);
  });
});

describe("a file that stops the load", () => {
  test("because it is missing, not JSON, or of another shape", () => {
    expect(() => loadCatalog("/nowhere/catalog.json")).toThrow(/\/nowhere\/catalog.json cannot be read/);
    expect(() => loadCatalog(import.meta.filename)).toThrow(/cannot be read/);
    expect(() => catalogOf([], {})).toThrow("models: ");
    expect(() => catalogOf([textModel], { color: "red" })).toThrow("color");
    expect(() => catalogOf([textModel], { elite_discount_bps: undefined })).toThrow("elite_discount_bps: ");
  });
});
