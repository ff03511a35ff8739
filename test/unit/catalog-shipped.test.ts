import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loadCatalog, type Model, type Tier, upstreamVariables } from "#catalog";
import { type Json, validInputs } from "./catalog-fixture.ts";

const catalog = loadCatalog(undefined);
const modelOf = (id: string): Model => {
  const model = catalog.find(id);
  if (model === undefined) throw new Error(`${id} is not there`);
  return model;
};
const listUsd = (id: string) =>
  Object.fromEntries(Object.entries(catalog.pricing(modelOf(id))).map(([key, line]) => [key, line.list_usd]));
const mediaModels = catalog.list().filter((model) => model.inputSchema !== undefined);

describe("the catalog that is shipped", () => {
  test("has the two local models, which need no key and cost a little", () => {
    const chat = catalog.find("local/chat");
    expect(chat).toMatchObject({ type: "text", contextLength: 131_072, maxOutputTokens: 8_192 });
    expect(chat?.features).toEqual(new Set(["tools", "json", "image"]));
    expect(chat?.upstreams).toEqual([{ upstream: "local", model: "chat" }]);
    expect(listUsd("local/chat")).toEqual({ input: "0.10", cached_input: "0.05", output: "0.40" });
    expect(catalog.find("local/embeddings")).toMatchObject({ type: "embeddings", contextLength: 8_192 });
    expect(listUsd("local/embeddings")).toEqual({ input: "0.02" });
    expect(catalog.upstreams.get("local")).toMatchObject({ provider: "local" });
    expect(catalog.upstreams.get("local")?.apiKeyEnv).toBeUndefined();
  });

  test("prices long prompts as their makers do", () => {
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

  test("offers no feature that a maker's compatible endpoint leaves out in silence", () => {
    const ignored = ["json", "file", "audio", "logprobs"] as const;
    const through = catalog.list().filter((model) => model.upstreams.some(({ upstream }) => upstream === "anthropic"));
    expect(through.length).toBeGreaterThan(5);
    expect(through.filter((model) => ignored.some((feature) => model.features.has(feature)))).toEqual([]);
  });

  test("has an upstream with a variable for its key for every maker, each of which some model uses", () => {
    const used = new Set(catalog.list().flatMap((model) => model.upstreams.map(({ upstream }) => upstream)));
    expect(used).toEqual(new Set(catalog.upstreams.keys()));
    const names = upstreamVariables(catalog).map(({ name }) => name);
    expect(names).toContain("OPENAI_API_KEY");
    expect(names).toContain("OPENAI_BASE_URL");
    expect(names).toContain("ANTHROPIC_COMPAT_BASE_URL");
    expect(names).toContain("GEMINI_COMPAT_BASE_URL");
    expect(names).not.toContain("ANTHROPIC_BASE_URL");
    expect(names).not.toContain("GEMINI_BASE_URL");
  });

  test("gives elite accounts a lower price for every model", () => {
    const lines = catalog.list().flatMap((model) => Object.values(catalog.pricing(model)));
    expect(lines.length).toBeGreaterThan(100);
    expect(lines.filter(({ list_usd, elite_usd }) => Number(elite_usd) >= Number(list_usd))).toEqual([]);
  });
});

describe("the models for images and media that are shipped", () => {
  test("are of each task that a provider has, local ones first", () => {
    const tasks = new Set(mediaModels.map(({ task }) => task));
    expect(tasks).toEqual(new Set(["images", "speech", "transcription", "video"]));
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
            const bound = catalog.boundOfUnits(model, input, units, tier).mostNanoUsd;
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

  test("cost what the local ones say", () => {
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

  test("price GPT Image by quality and size as its maker's table does, and what is left to the maker as the dearest", () => {
    const cost = (input: Json) => costUsd("openai/gpt-image-2", { prompt: "", ...input }, { image: 1 });
    const sizes = ["1024x1024", "1536x1024", "1024x1536"];
    const row = (quality: string) => sizes.map((size) => cost({ quality, size }));
    expect([row("low"), row("medium"), row("high")]).toEqual([
      [0.006, 0.005, 0.005],
      [0.053, 0.041, 0.041],
      [0.211, 0.165, 0.165],
    ]);
    expect([cost({}), cost({ quality: "auto" })]).toEqual([0.053, 0.211]);
  });

  test("price Grok Imagine by quality and resolution", () => {
    const cost = (input: Json) => costUsd("xai/grok-imagine-image-2.0", { prompt: "a", ...input }, { image: 1 });
    const column = (resolution: string) => ["low", "medium"].map((quality) => cost({ quality, resolution }));
    expect([column("1k"), column("2k"), cost({})]).toEqual([[0.04, 0.06], [0.06, 0.08], 0.04]);
  });

  test("charge input images and long prompts of GPT Image for every image, so that edits are not free", () => {
    const edit = { prompt: "x".repeat(4_000), quality: "low", size: "1024x1024", image: ["upl_a", "upl_b"], n: 2 };
    const once = 0.00588 + 2 * 0.012288 + 4_000 * 0.00000125;
    expect(costUsd("openai/gpt-image-2.5-flare", edit, { image: 2 })).toBeCloseTo(2 * once, 9);
    expect(costUsd("openai/gpt-image-2.5-flare", edit, { image: 1 })).toBeCloseTo(once, 9);
  });

  test("take nothing that would cost extra without a price", () => {
    const refused: readonly (readonly [string, Json])[] = [
      ["openai/gpt-image-2.5-flare", { partial_images: 3 }],
      ["openai/gpt-image-2.6-flare", { output_format: "gif" }],
      ["openai/gpt-image-2.6-flare", { frame_count: 16 }],
      ["openai/gpt-image-2", { size: "3840x2160" }],
      ["xai/grok-imagine-image-2.0", { image: "upl_a" }],
      ["xai/grok-imagine-image-2.0", { resolution: "4k" }],
      ["black-forest-labs/flux-1-schnell", { steps: 50 }],
      ["black-forest-labs/flux-1-schnell", { width: 2048 }],
    ];
    for (const [id, input] of refused) {
      const [field = ""] = Object.keys(input);
      const check = () => catalog.checkInput(modelOf(id), { value: { prompt: "a", ...input }, at: "" });
      expect(check).toThrow(expect.objectContaining({ code: "invalid_value", param: field }));
    }
  });

  test("bill ten seconds of a recording at least where the maker does", () => {
    expect(costUsd("openai/whisper-large-v3", { file: "upl_a" }, { minute: 0.01 })).toBeCloseTo(0.00185 / 6, 6);
    expect(costUsd("openai/whisper-1", { file: "upl_a" }, { minute: 0.01 })).toBeCloseTo(0.00006, 9);
  });
});
