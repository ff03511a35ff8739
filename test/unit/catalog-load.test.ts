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
    ["pricing.input: is missing", { ...textModel, pricing: { output: "1" } }],
    ["pricing.output: is missing", { ...textModel, pricing: { input: "1" } }],
    ["pricing: Invalid input: expected object", without(textModel, "pricing")],
    ["pricing.input: must be a decimal string", pricing({ input: "-1" })],
    ["pricing.input: Invalid input: expected string", pricing({ input: 1 })],
    ["pricing.input: must be a decimal string", pricing({ input: "1e3" })],
    ["at most 9 decimals", pricing({ input: "0.1234567891" })],
    ["pricing.input: is 0, and 'free' does not name it", pricing({ input: "0.00" })],
    ["pricing.input: is not 0, but 'free' names it", { ...textModel, free: ["input"] }],
    ["free: names 'cached_input'", { ...textModel, free: ["cached_input"] }],
    ["pricing.cached_input: is dearer than input", pricing({ cached_input: "3" })],
    ["pricing.image: does not fit a model of type 'text'", pricing({ image: "1" })],
    ['pricing: Unrecognized key: "thought"', pricing({ thought: "1" })],
    ['Unrecognized key: "color"', { ...textModel, color: "red" }],
    ["pricing.audio_input: is missing", { ...textModel, features: ["audio"], max_part_tokens: { audio: 9 } }],
    ["pricing.audio_output: is missing", { ...textModel, features: ["audio_output"] }],
    [
      "pricing.cache_write_1h: is missing: the feature 'cache_retention' has no price",
      { ...textModel, features: ["cache_retention"] },
    ],
    ["pricing.request: is missing", { ...textModel, features: ["web_search"] }],
    ["features.0: Invalid option", { ...textModel, features: ["service_tier"] }],
    ["max_part_tokens.image: and the feature 'image' need each other", { ...textModel, features: ["image"] }],
    ["max_part_tokens.image: and the feature 'image' need each other", { ...textModel, max_part_tokens: { image: 9 } }],
    ["max_output_tokens: must be less", { ...textModel, max_output_tokens: 100_000 }],
    ["context_length: is missing", without(textModel, "context_length")],
    ["max_output_tokens: is missing", without(textModel, "max_output_tokens")],
    ["endpoint: contradicts type 'text'", { ...textModel, endpoint: "/v1/embeddings" }],
    ["'x' is not among", { ...textModel, upstreams: [{ upstream: "x", model: "y" }] }],
    ["upstreams: Too small", { ...textModel, upstreams: [] }],
    ["upstreams.0.weight: Too small", serving({ weight: 0 })],
    ["upstreams.0.weight: Invalid input: expected int", serving({ weight: 0.5 })],
    ["upstreams.0.cost.input: Invalid input: expected string", serving({ cost: { input: 1, output: "1" } })],
    ["upstreams.0.cost.output: is missing", serving({ cost: { input: "1" } })],
    ["upstreams.0.cost.image: is not a price key", serving({ cost: { input: "1", output: "1", image: "1" } })],
    ["released: must be", { ...textModel, released: "2026-02-30" }],
    ["aliases.0: must be a bare name", { ...textModel, aliases: ["acme/uno"] }],
    ["aliases: 'uno' is taken already", { ...textModel, aliases: ["uno", "uno"] }],
    ["elite_discount_bps: Too big", { ...textModel, elite_discount_bps: 10_000 }],
    ["tiers.1.above_input_tokens: must ascend", tiers([2_000, prices], [2_000, prices])],
    ["tiers.0.above_input_tokens: is never reached", tiers([100_000, prices])],
    ["tiers.0.pricing.output: must be priced in every tier or in none", tiers([2_000, { input: "5" }])],
    [
      "tiers.0.pricing.cached_input: must be priced in every tier or in none",
      tiers([2_000, { ...prices, cached_input: "1" }]),
    ],
    ["tiers.0.pricing.output: is 0", tiers([2_000, { input: "5", output: "0" }])],
    ["pricing.input: is missing", { ...embeddingsModel, pricing: {} }],
    ["pricing.output: does not", { ...embeddingsModel, pricing: { input: "1", output: "1" } }],
    ["max_output_tokens: does not fit", { ...embeddingsModel, max_output_tokens: 9 }],
    ["features: do not fit", { ...embeddingsModel, features: ["tools"] }],
    ["pricing: needs a price for one of input, search", { ...rerankModel, pricing: {} }],
    ["pricing.image: does not fit", { ...rerankModel, pricing: { search: "1", image: "1" } }],
    ["context_length: is missing", without(rerankModel, "context_length")],
    ["served by /v1/rerank", { ...rerankModel, endpoint: "/v1/media/generations" }],
    ["input_schema: does not fit a model with the", { ...rerankModel, input_schema: {} }],
    ["task: does not fit a model of type 'embeddings'", { ...rerankModel, type: "embeddings" }],
    ["pricing.search: does not fit", { ...imageModel, pricing: { image: "1", search: "1" } }],
    [
      "free: must name 'request': moderations cost nothing",
      { ...moderationModel, pricing: { request: "1" }, free: [] },
    ],
    ["pricing.request: is missing", { ...moderationModel, pricing: {}, free: [] }],
    ["pricing: needs a price for one of image", { ...imageModel, pricing: {} }],
    ["pricing.input: does not fit", { ...imageModel, pricing: { image: "1", input: "1" } }],
  ])("%s", (complaint, entry) => {
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
    ["base_url: is missing", { provider: "openai" }],
    ["base_url: must be an address without", { ...good, base_url: "https://acme.test/v1/" }],
    ["base_url: must be an address without credentials", { ...good, base_url: "https://me:secret@acme.test" }],
    ["base_url: must be an address", { ...good, base_url: "acme" }],
    ["key_env: must be the name of a variable", { ...good, key_env: "ADMIN_TOKEN" }],
    ["base_url_env: must be", { ...good, base_url_env: "MONGODB_URI" }],
    ["base_url: is missing, and base_url_env too", { provider: "anthropic" }],
    ["formats: those of the provider 'gemini' are fixed", { ...good, provider: "gemini", formats: ["chat"] }],
    ["quirks: do not fit the provider 'gemini'", { ...good, provider: "gemini", quirks: { extra_fields: ["top_k"] } }],
    ["region: is missing", { provider: "bedrock", base_url: "https://a.{region}.test" }],
    ["region: must be the name of a region", { ...good, region: "eu/../us" }],
    ["data_residency: must be lower-case letters", { ...good, data_residency: "EU" }],
    [
      "data_residency: cannot be promised for the region 'global'",
      { ...good, provider: "vertex", formats: ["gemini"], region: "global", data_residency: "eu" },
    ],
    ["address_env.resource: is missing", { provider: "azure", base_url: "https://{resource}.test" }],
    ["address_env.project: is not a part of addresses of 'openai'", { ...good, address_env: { project: "A_PROJECT" } }],
    ["address_env.project: must be the name of a variable", { ...good, address_env: { project: "ADMIN_TOKEN" } }],
    ["base_url: must be an address", { ...good, base_url: "https://{account}.acme.test" }],
    ["base_url: may contain no part for the provider 'openai'", { ...good, base_url: "https://{region}.acme.test" }],
    ["quirks.api_version: does not fit the provider", { ...good, quirks: { api_version: "2024-10-21" } }],
    ["quirks.api_version: must be a version", { ...good, quirks: { api_version: "v1" } }],
    ["formats: 'messages' has an address of its own", { ...good, provider: "azure", formats: ["messages", "chat"] }],
    ["quirks: Unrecognized key", { ...good, quirks: { unknown_fields: "pass" } }],
    [
      "formats: 'messages' is not supported by the provider 'openai', only chat and responses",
      { ...good, formats: ["chat", "messages"] },
    ],
    ["formats: names a format twice", { ...good, formats: ["chat", "chat"] }],
    ["formats: Too small", { ...good, formats: [] }],
    ["formats.0: Invalid option", { ...good, formats: ["smoke"] }],
    ["provider: Invalid option", { ...good, provider: "smoke" }],
    ["provider: 'local' runs inside", { provider: "local", key_env: "A_API_KEY" }],
    ["silence_timeout_ms: is longer", { ...good, silence_timeout_ms: 900_001 }],
    ["concurrency: Too small", { ...good, concurrency: 0 }],
    ['Unrecognized key: "color"', { ...good, color: "red" }],
  ])("%s", (complaint, acme) => {
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
      "those of the provider 'anthropic' are fixed",
    ],
    ["in no format", on("openai"), says([]), ""],
  ])("%s", (_, file, over, complaint) => {
    const load = () => catalogOf([{ ...textModel, ...over }], file);
    expect(load).toThrow(`model acme/one: upstreams.0.formats: ${complaint}`);
  });

  test("under a name that says 'anywhere', if the upstream promises a residence of data", () => {
    const bedrock = (data_residency?: string) =>
      on("bedrock", { formats: ["messages"], region: "us-east-1", ...(data_residency && { data_residency }) });
    const named = (model: string) => [{ ...textModel, upstreams: [{ upstream: "acme", model }] }];
    for (const model of ["global.anthropic.one", "arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.one"])
      expect(() => catalogOf(named(model), bedrock("us"))).toThrow(
        "model acme/one: upstreams.0.model: is processed anywhere, but 'acme' promises the data residency 'us'",
      );
    for (const [model, residence] of [["{geo}.anthropic.one", "us"], ["global.one", "global"], ["global.one"]] as const)
      expect(catalogOf(named(model), bedrock(residence)).list()).toHaveLength(1);
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
      addressEnv: {},
      baseUrlEnv: "ACME_BASE_URL",
      formats: ["chat"],
      storesAnswers: false,
      quirks: noQuirks,
      concurrency: 512,
      deadlines: { firstByteMs: 600_000, silenceMs: 120_000, totalMs: 900_000 },
    });
    expect(catalog.upstreams.get("home")).toEqual({
      id: "home",
      addressEnv: {},
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
