import { describe, expect, test } from "vitest";
import { loadCatalog, upstreamVariables } from "#catalog";

const catalog = loadCatalog(undefined);
const listUsd = (id: string) => {
  const model = catalog.find(id);
  if (model === undefined) throw new Error(`${id} is not there`);
  return Object.fromEntries(Object.entries(catalog.pricing(model)).map(([key, line]) => [key, line.list_usd]));
};

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
    const usage = { input: 1_000_000 };
    const dear = catalog
      .list()
      .filter((model) => catalog.cost(model, usage, "elite") >= catalog.cost(model, usage, "standard"));
    expect(dear).toEqual([]);
  });
});
