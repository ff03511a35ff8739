import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cloudParts, loadCatalog, type Model, type Tier, upstreamVariables } from "#catalog";
import { type Json, validInputs } from "../support/catalog-fixture.ts";
import { temporaryJson } from "../support/end-of-file.ts";

const catalog = loadCatalog(undefined);
const modelOf = (id: string): Model => {
  const model = catalog.find(id);
  if (model === undefined) throw new Error(`${id} is not there`);
  return model;
};
const listUsd = (id: string) =>
  Object.fromEntries(Object.entries(modelOf(id).pricing).map(([key, line]) => [key, line.list_usd]));
const mediaModels = catalog.list().filter((model) => model.inputSchema !== undefined);

describe("the catalog that is shipped", () => {
  test("has the two local models, which need no key and have a small price", () => {
    const chat = catalog.find("local/chat");
    expect(chat).toMatchObject({ type: "text", contextLength: 131_072, maxOutputTokens: 8_192 });
    expect(chat?.features).toEqual(new Set(["tools", "json", "image", "audio", "file"]));
    expect(chat?.upstreams).toEqual([{ upstream: "local", model: "chat" }]);
    expect(listUsd("local/chat")).toEqual({ input: "0.10", cached_input: "0.05", audio_input: "0.30", output: "0.40" });
    expect(catalog.find("local/embeddings")).toMatchObject({ type: "embeddings", contextLength: 8_192 });
    expect(listUsd("local/embeddings")).toEqual({ input: "0.02" });
    expect(catalog.upstreams.get("local")).toMatchObject({ provider: "local" });
    expect(catalog.upstreams.get("local")?.apiKeyEnv).toBeUndefined();
  });

  test("prices long prompts as their providers do", () => {
    expect(listUsd("google/gemini-2.5-pro")).toMatchObject({
      input: "1.25",
      cached_input: "0.125",
      output: "10.00",
      input_above_200000: "2.50",
      cached_input_above_200000: "0.25",
      output_above_200000: "15.00",
    });
    expect(listUsd("openai/gpt-5.4")).toMatchObject({ input: "2.50", input_above_272000: "5.00" });
    expect(listUsd("anthropic/claude-haiku-5-5")).toMatchObject({ input: "0.10", input_above_100000: "0.50" });
  });

  test("sends OpenAI's cap in the field that its reasoning models take", () => {
    const ours = catalog.list().filter((model) => model.type === "text" && model.upstreams[0]?.upstream === "openai");
    expect(ours.length).toBeGreaterThan(10);
    expect(ours.filter((model) => model.outputCapField !== "max_completion_tokens")).toEqual([]);
  });

  test("marks the models whose billed reasoning is not fully in their stream", () => {
    const hiding = new Set(
      catalog
        .list()
        .filter((model) => model.hiddenReasoning)
        .map(({ id }) => id),
    );
    const texts = catalog.list().filter((model) => model.type === "text");
    // OpenAI's since GPT-5, Claude since 4, Gemini since 2.5, Grok since 4; and models whose host can hide reasoning on
    // request.
    const expected = texts.filter(
      ({ id, upstreams }) =>
        /^(openai\/gpt-([5-9]|oss)|anthropic\/|google\/|xai\/)/.test(id) ||
        upstreams.some(({ upstream }) => upstream === "groq"),
    );
    expect([...hiding]).toEqual(expected.map(({ id }) => id));
    expect(modelOf("local/chat").hiddenReasoning).toBe(false);
    expect(modelOf("deepseek/deepseek-v4-pro").hiddenReasoning).toBe(false);
  });

  test("calls OpenAI's models in the format with all their features", () => {
    const only = (format: string) =>
      catalog
        .list()
        .filter(({ upstreams }) =>
          upstreams.some(({ upstream, formats }) => upstream === "openai" && formats?.join() === format),
        );
    // Chat completions refuse tools to reasoning models among them; responses have no sound.
    const reasoning = catalog.list().filter(({ id }) => /^openai\/gpt-(5\.[2-9]|6)/.test(id));
    expect(reasoning.length).toBeGreaterThan(10);
    expect(only("responses")).toEqual(reasoning);
    expect(reasoning.filter(({ features }) => !features.has("tools"))).toEqual([]);
    expect(only("chat")).toEqual(catalog.list().filter(({ id }) => id.startsWith("openai/gpt-audio")));
    expect(catalog.upstreams.get("openai")?.formats).toEqual(["chat", "responses"]);
  });

  const of = (upstream: string) =>
    catalog.list().filter(({ type, upstreams }) => type === "text" && upstreams[0]?.upstream === upstream);

  test("offers the features of Claude and Gemini, each document bounded by the whole context", () => {
    expect(of("anthropic").length).toBeGreaterThan(5);
    expect(of("gemini").length).toBeGreaterThan(5);
    for (const { features, maxPartTokens, contextLength } of of("anthropic")) {
      expect(features).toEqual(new Set(["tools", "json", "image", "file", "cache_retention"]));
      expect(maxPartTokens["file"]).toBe(contextLength);
    }
    for (const { features, maxPartTokens, contextLength } of of("gemini")) {
      expect(features).toEqual(new Set(["tools", "json", "image", "audio", "file"]));
      expect([maxPartTokens["audio"], maxPartTokens["file"]]).toEqual([contextLength, contextLength]);
    }
  });

  test("has an upstream with a variable for its key for every provider, each of which some model uses", () => {
    const used = new Set(catalog.list().flatMap((model) => model.upstreams.map(({ upstream }) => upstream)));
    expect(used).toEqual(new Set(catalog.upstreams.keys()));
    const names = upstreamVariables(catalog).map(({ name }) => name);
    expect(names).toContain("OPENAI_API_KEY");
    expect(names).toContain("OPENAI_BASE_URL");
    expect(names).toEqual(expect.arrayContaining(["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]));
    expect(names).toEqual(expect.arrayContaining(["GEMINI_API_KEY", "GEMINI_BASE_URL"]));
    expect(names).toEqual(expect.arrayContaining(["REPLICATE_API_TOKEN", "REPLICATE_BASE_URL"]));
    expect(names).toEqual(expect.arrayContaining(["FAL_KEY", "FAL_BASE_URL"]));
    expect(names.filter((name) => name.includes("COMPAT"))).toEqual([]);
  });

  test("loses no parameter of a model to the clouds that serve it too", () => {
    const cloudIds = new Set(
      [...catalog.upstreams.values()].flatMap(({ id, provider }) => (cloudParts[provider] ? [id] : [])),
    );
    const file = JSON.parse(readFileSync("shared/catalog/models.json", "utf8")) as {
      models: { upstreams: { upstream: string }[] }[];
    };
    const models = file.models.flatMap((model) => {
      const upstreams = model.upstreams.filter(({ upstream }) => !cloudIds.has(upstream));
      return upstreams.length > 0 ? [{ ...model, upstreams }] : [];
    });
    const alone = loadCatalog(temporaryJson("without-clouds", { ...file, models })).list();
    expect(cloudIds.size).toBeGreaterThan(0);
    expect(alone.length).toBeGreaterThan(50);
    for (const { id, supportedParameters } of alone)
      expect([id, modelOf(id).supportedParameters]).toEqual([id, supportedParameters]);
  });

  test("prices long cache retention for every model that bills cache writes", () => {
    const writes = catalog.list().filter((model) => "cache_write" in model.pricing);
    expect(writes.length).toBeGreaterThan(15);
    for (const { id, features, ownedBy } of writes) {
      const { input, cache_write_1h } = listUsd(id);
      expect(features.has("cache_retention")).toBe(true);
      // Anthropic's entries live for an hour, OpenAI's for half a day.
      expect(Number(cache_write_1h)).toBeCloseTo((ownedBy === "openai" ? 2.5 : 2) * Number(input), 9);
    }
    expect(listUsd("openai/gpt-6-sol")).toMatchObject({ cache_write_1h: "5.00", cache_write_1h_above_272000: "10.00" });
  });

  test("gives elite accounts a lower price for every model", () => {
    const lines = catalog.list().flatMap((model) => Object.values(model.pricing));
    expect(lines.length).toBeGreaterThan(100);
    const isFree = ({ list_usd }: { list_usd: string }) => Number(list_usd) === 0;
    expect(lines.filter((line) => Number(line.elite_usd) >= Number(line.list_usd) && !isFree(line))).toEqual([]);
    // Only moderations are free.
    const free = catalog.list().filter((model) => Object.values(model.pricing).some(isFree));
    expect(free.map(({ endpoint }) => endpoint)).toEqual(free.map(() => "/v1/moderations"));
  });
});

describe("the models for images and media that are shipped", () => {
  test("are of each task that a provider has, local ones first", () => {
    const tasks = new Set(mediaModels.map(({ task }) => task));
    expect(tasks).toEqual(new Set(["images", "speech", "transcription", "video", "music"]));
    expect(mediaModels.slice(0, 4).map(({ id, task }) => [id, task])).toEqual([
      ["local/image", "images"],
      ["local/speech", "speech"],
      ["local/transcription", "transcription"],
      ["local/video", "video"],
    ]);
    expect(mediaModels.length).toBeGreaterThan(20);
  });

  test.each(mediaModels.map((model) => [model.id, model] as const))(
    "hold for %s at least what any use of it can cost, in both tiers",
    (_, model) => {
      const fileBytes = fc.integer({ min: 1, max: 209_715_200 });
      const share = fc.integer({ min: 0, max: 1_000_000 });
      const scenario = fc.record({ input: validInputs(model.inputSchema ?? {}), fileBytes, share });
      fc.assert(
        fc.property(scenario, ({ input, fileBytes, share }) => {
          const at = model.type === "image" ? "" : "input";
          expect(() => catalog.checkInput(model, { value: input, at })).not.toThrow();
          const uploads = new Map(Object.values(input).map((value) => [String(value), fileBytes]));
          const units = catalog.units(model, input, uploads);
          const usage = Object.fromEntries(
            Object.entries(units).map(([key, most]) => {
              const used = (most * share) / 1e6;
              return [key, key === "second" || key === "minute" ? Math.floor(used * 1e6) / 1e6 : Math.floor(used)];
            }),
          );
          for (const tier of ["standard", "elite"] satisfies Tier[]) {
            const bound = catalog.boundOfUnits(model, input, units, tier).maxNanoUsd;
            expect(bound).toBeGreaterThan(0n);
            expect(catalog.cost(model, units, tier, input)).toBe(bound);
            expect(catalog.cost(model, usage, tier, input)).toBeLessThanOrEqual(bound);
          }
        }),
        { numRuns: 60 },
      );
    },
  );

  const costUsd = (id: string, input: Json, usage: Json) =>
    Number(catalog.cost(modelOf(id), usage, "standard", input)) / 1e9;

  test("have the prices of the local ones", () => {
    expect(listUsd("local/image")).toEqual({ image: "0.01", input_image: "0.002" });
    expect(listUsd("local/speech")).toEqual({ character: "0.000005" });
    expect(listUsd("local/transcription")).toEqual({ minute: "0.002" });
    expect(listUsd("local/video")).toEqual({ second: "0.01", second_1280x720: "0.02" });
    expect(costUsd("local/video", { prompt: "a", resolution: "1280x720" }, { second: 4 })).toBe(0.08);
  });

  test.each(["16x16", "2048x2048", "99x1024", "1999x2000"])("draw %s locally", (size) => {
    expect(() => catalog.checkInput(modelOf("local/image"), { value: { prompt: "a", size }, at: "" })).not.toThrow();
  });
  test.each(["15x16", "16x2049", "0512x512", "512", "512x512x512"])("do not draw %s", (size) => {
    const check = () => catalog.checkInput(modelOf("local/image"), { value: { prompt: "a", size }, at: "" });
    expect(check).toThrow("size: Invalid string: expected <width>x<height>, each side 16 to 2048.");
  });

  test("price GPT Image by quality and size as in the provider's table, and `auto` as the most expensive", () => {
    const cost = (input: Json) => costUsd("openai/gpt-image-2", { prompt: "", ...input }, { image: 1 });
    const withPrompt = (usd: number) => Number((usd + 4_000 * 0.00000125).toFixed(9));
    const sizes = ["1024x1024", "1536x1024", "1024x1536"];
    const row = (quality: string) => sizes.map((size) => cost({ quality, size }));
    expect([row("low"), row("medium"), row("high")]).toEqual([
      [0.006, 0.005, 0.005].map(withPrompt),
      [0.053, 0.041, 0.041].map(withPrompt),
      [0.211, 0.165, 0.165].map(withPrompt),
    ]);
    expect([cost({}), cost({ quality: "auto" })]).toEqual([0.053, 0.211].map(withPrompt));
  });

  test("price Grok Imagine by quality and resolution", () => {
    const cost = (input: Json) => costUsd("xai/grok-imagine-image-2.0", { prompt: "a", ...input }, { image: 1 });
    const column = (resolution: string) => ["low", "medium"].map((quality) => cost({ quality, resolution }));
    expect([column("1k"), column("2k"), cost({})]).toEqual([[0.04, 0.06], [0.06, 0.08], 0.04]);
  });

  /** One second for each of the values, in their order. */
  const seconds = (id: string, field: string, values: readonly unknown[], more: Json = {}) =>
    values.map((value) => costUsd(id, { prompt: "", ...more, [field]: value }, { second: 1 }));

  test("price videos as in their providers' tables", () => {
    const sizes = ["360p", "720p", "1080p", "4k"];
    expect(seconds("google/gemini-omni-1.2-flash", "resolution", sizes)).toEqual([0.0245, 0.0705, 0.1055, 0.2105]);
    expect(seconds("google/gemini-omni-1.1-flash", "resolution", sizes)).toEqual([0.0305, 0.1005, 0.1505, 0.3005]);
    const sound = [false, true];
    const veo = (id: string) =>
      sizes.slice(1).map((resolution) => seconds(id, "generate_audio", sound, { resolution }));
    expect(veo("google/veo-3.1")).toEqual([
      [0.2, 0.4],
      [0.2, 0.4],
      [0.4, 0.6],
    ]);
    expect(veo("google/veo-3.1-fast")).toEqual([
      [0.1, 0.15],
      [0.1, 0.15],
      [0.3, 0.35],
    ]);
    expect(seconds("kuaishou/kling-3.0-standard", "generate_audio", sound)).toEqual([0.084, 0.126]);
    expect(seconds("kuaishou/kling-3.0-pro", "generate_audio", sound)).toEqual([0.112, 0.168]);
    expect(seconds("kuaishou/kling-3.0-4k", "generate_audio", sound)).toEqual([0.42, 0.42]);
    expect(seconds("bytedance/seedance-2.5", "resolution", ["480p", "720p"])).toEqual([0.2205, 0.473]);
    expect(seconds("bytedance/seedance-2.0", "resolution", sizes.slice(1, 3))).toEqual([0.3034, 0.682]);
    const tiers = ["480P", "768P", "2K", "4K"];
    expect(seconds("minimax/minimax-h3", "resolution", tiers)).toEqual([0.05, 0.06, 0.13, 0.16]);
    expect(seconds("minimax/minimax-h3-max", "resolution", tiers.slice(0, 2))).toEqual([0.05, 0.08]);
    const shapes = ["360p", "540p", "720p", "1080p"];
    expect(seconds("pixverse/pixverse-v6", "resolution", shapes)).toEqual([0.025, 0.035, 0.045, 0.09]);
    expect(seconds("pixverse/pixverse-v6", "resolution", shapes, { generate_audio_switch: true })).toEqual([
      0.035, 0.045, 0.06, 0.115,
    ]);
  });

  test("price a video from an image as one from text, plus the price of the image", () => {
    const both = mediaModels.flatMap(({ id }) => /^(.*)-image-to-video$/.exec(id)?.[1] ?? []);
    expect(both.length).toBeGreaterThan(4);
    for (const id of both) expect(listUsd(`${id}-image-to-video`)).toEqual(listUsd(id));
    const input = { prompt: "x".repeat(4_000), image: "upl_a", reference_images: ["upl_b", "upl_c"] };
    const cost = costUsd("google/gemini-omni-1.2-flash", input, { second: 8 });
    expect(cost).toBeCloseTo(8 * 0.0705 + 3 * 0.00306, 9);
  });

  test("price Gemini's images by resolution, with their input images", () => {
    const cost = (input: Json) => costUsd("google/gemini-3-pro-image", { prompt: "", ...input }, { image: 1 });
    expect(["1K", "2K", "4K"].map((resolution) => cost({ resolution }))).toEqual([0.136, 0.136, 0.242]);
    expect(cost({ image: ["upl_a", "upl_b"] })).toBeCloseTo(0.136 + 2 * 0.0011, 9);
  });

  const outputUnits = new Set(["image", "second", "minute", "character", "input_image"]);

  test("are priced by their output alone, except for input images", () => {
    for (const { id, type, pricing } of mediaModels)
      for (const [key, { unit }] of Object.entries(pricing)) {
        const isOutput = outputUnits.has(unit) && (unit !== "character" || type === "audio");
        expect([id, key, isOutput]).toEqual([id, key, true]);
      }
  });

  /** The provider's own lowest price of each model: the output, and a character of the prompt. */
  test.each<[id: string, input: Json, made: Json, providerUsd: number, characterUsd: number]>([
    ["openai/gpt-image-2", { quality: "low", size: "1536x1024" }, { image: 1 }, 0.005, 0.00000125],
    ["openai/gpt-image-2.5-flare", { quality: "low", size: "1024x1024" }, { image: 1 }, 0.00588, 0.00000125],
    ["google/gemini-nano-banana-2.1", {}, { image: 1 }, 0.0336, 0.000000375],
    ["google/gemini-3-pro-image", {}, { image: 1 }, 0.134, 0.0000005],
    ["google/gemini-3.1-flash-lite-image", {}, { image: 1 }, 0.0336, 0.000000063],
    ["google/gemini-2.5-flash-image", {}, { image: 1 }, 0.039, 0.000000075],
    ["google/gemini-omni-1.2-flash", { resolution: "360p", duration: 3 }, { second: 3 }, 3 * 0.024, 0.000000375],
    ["google/gemini-omni-1.1-flash", { resolution: "360p", duration: 3 }, { second: 3 }, 3 * 0.03, 0.000000375],
  ])("cover the longest prompt of %s", (id, input, made, providerUsd, characterUsd) => {
    const { properties } = modelOf(id).inputSchema as { properties: { prompt: { maxLength: number } } };
    const longest = { ...input, prompt: "x".repeat(properties.prompt.maxLength) };
    const paidUsd = providerUsd + longest.prompt.length * characterUsd;
    expect(costUsd(id, longest, made)).toBeGreaterThanOrEqual(Number(paidUsd.toFixed(9)));
  });

  test("price music by started minutes", () => {
    const cost = (ms: number) => costUsd("elevenlabs/eleven-music", { prompt: "a", music_length_ms: ms }, {});
    const properties = modelOf("elevenlabs/eleven-music").inputSchema?.["properties"];
    const { music_length_ms } = properties as { music_length_ms: { enum: number[] } };
    expect(music_length_ms.enum.length).toBeGreaterThan(5);
    for (const ms of music_length_ms.enum) {
      expect(cost(ms)).toBeCloseTo(0.6 * Math.ceil(ms / 60_000), 9);
      expect(Math.ceil((ms + 4_000) / 60_000)).toBe(Math.ceil(ms / 60_000));
    }
  });

  test("charge input images of GPT Image for every image, so that edits are not free", () => {
    const edit = { prompt: "x".repeat(4_000), quality: "low", size: "1024x1024", image: ["upl_a", "upl_b"], n: 2 };
    const once = 0.01088 + 2 * 0.012288;
    expect(costUsd("openai/gpt-image-2.5-flare", edit, { image: 2 })).toBeCloseTo(2 * once, 9);
    expect(costUsd("openai/gpt-image-2.5-flare", edit, { image: 1 })).toBeCloseTo(once, 9);
  });

  test("accept no parameter that would cost extra without a price", () => {
    const refused: readonly (readonly [string, Json])[] = [
      ["openai/gpt-image-2.5-flare", { partial_images: 3 }],
      ["openai/gpt-image-2.6-flare", { output_format: "gif" }],
      ["openai/gpt-image-2.6-flare", { frame_count: 16 }],
      ["openai/gpt-image-2", { size: "3840x2160" }],
      ["xai/grok-imagine-image-2.0", { image: "upl_a" }],
      ["xai/grok-imagine-image-2.0", { resolution: "4k" }],
      ["black-forest-labs/flux-1-schnell", { steps: 50 }],
      ["black-forest-labs/flux-1-schnell", { width: 2048 }],
      ["google/gemini-3-pro-image", { resolution: "8K" }],
      ["google/gemini-nano-banana-2.1", { resolution: "2K" }],
      ["google/gemini-2.5-flash-image", { image: "upl_a" }],
      ["ideogram/ideogram-v3", { image_urls: ["upl_a"] }],
      ["ideogram/ideogram-v3", { num_images: 8 }],
      ["ideogram/ideogram-v3-quality", { n: 2 }],
      ["google/veo-3.1", { resolution: "8k" }],
      ["kuaishou/kling-3.0-pro", { voice_ids: ["a"] }],
      ["bytedance/seedance-2.5", { duration: "auto" }],
      ["minimax/minimax-h3", { duration: 16 }],
      ["pixverse/pixverse-v6", { sync_mode: true }],
    ];
    for (const [id, input] of refused) {
      const [field = ""] = Object.keys(input);
      const check = () => catalog.checkInput(modelOf(id), { value: { prompt: "a", ...input }, at: "" });
      expect(check).toThrow(expect.objectContaining({ code: "invalid_value", param: field }));
    }
  });

  test("bill at least ten seconds of a recording where the provider does", () => {
    expect(costUsd("openai/whisper-large-v3", { file: "upl_a" }, { minute: 0.01 })).toBeCloseTo(0.00185 / 6, 6);
    expect(costUsd("openai/whisper-1", { file: "upl_a" }, { minute: 0.01 })).toBeCloseTo(0.00006, 9);
  });
});
