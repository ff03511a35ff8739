import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { runProgram, temporaryFolder } from "../support/program.ts";

const catalog = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  runProgram(["infra/cli/catalog.ts", ...args], env);

async function fileOf(name: string, content: object): Promise<string> {
  const file = join(await temporaryFolder(), name);
  await writeFile(file, JSON.stringify(content));
  return file;
}

/** A catalog with a single model at this price. */
const small = (input: string, more: object = {}) => ({
  elite_discount_bps: 1_000,
  upstreams: { local: { provider: "local" } },
  models: [
    {
      id: "acme/one",
      name: "One",
      owned_by: "acme",
      type: "text",
      released: "2026-01-02",
      context_length: 1_000,
      max_output_tokens: 100,
      pricing: { input, output: "9" },
      upstreams: [{ upstream: "local", model: "chat" }],
      ...more,
    },
  ],
});

const overlay = {
  upstreams: { openai: { concurrency: 9 } },
  models: {
    "openai/gpt-4o": { pricing: { input: "1.00", cached_input: "0.10" }, description: null },
    "local/video": null,
    "acme/one": small("1").models[0],
  },
};

describe("check", () => {
  test("summarizes the shipped catalog", async () => {
    const { code, out, err } = await catalog(["check"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(
      /^catalog +shipped\noverlay +none\nhash +[0-9a-f]{12}\nmodels +\d+\n( {2}\w+ +\d+\n)+upstreams +\d+\n$/,
    );
  });

  test("takes files from its arguments, else from the environment, where an empty one is none", async () => {
    const [one, two] = [await fileOf("one.json", small("1")), await fileOf("overlay.json", { models: {} })];
    const found = { hash: loadCatalog(one).hash, models: 1, types: { text: 1 }, upstreams: ["local"] };
    const runs = await Promise.all([
      catalog(["check", one, "--overlay", two, "--json"]),
      catalog(["check", "--json"], { CATALOG_FILE: one, CATALOG_OVERLAY: two }),
      catalog(["check", "--json"], { CATALOG_FILE: one, CATALOG_OVERLAY: "" }),
    ]);
    for (const { code, out } of runs) expect([code, JSON.parse(out)]).toEqual([0, found]);
  });

  test("prints every fault and exits with 1", async () => {
    const file = await fileOf("broken.json", small("free", { color: "red" }));
    const { code, out, err } = await catalog(["check", file]);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(`The catalog ${file} is not valid.\n`);
    expect(err).toContain("  model acme/one: pricing.input: must be a decimal string");
    expect(err).toContain('  model acme/one: Unrecognized key: "color"');
  });
});

describe("diff", () => {
  test("shows what the environment's overlay changes, one line for each field", async () => {
    const { code, out } = await catalog(["diff"], { CATALOG_OVERLAY: await fileOf("over.json", overlay) });
    expect(code).toBe(0);
    const lines = out.split("\n").map((line) => line.trim().split(/ {2,}/));
    expect(lines).toEqual([
      ["ID", "FIELD", "OLD", "NEW"],
      ["model", "acme/one", "added"],
      ["model", "local/video", "removed"],
      ["upstream", "openai", "concurrency", "512", "9"],
      ["model", "openai/gpt-4o", "description", expect.any(String), "-"],
      ["model", "openai/gpt-4o", "pricing.input", "2.50", "1.00"],
      ["model", "openai/gpt-4o", "pricing.cached_input", "1.25", "0.10"],
      [""],
    ]);
  });

  test("compares two files, also for programs", async () => {
    const [one, two] = [
      await fileOf("a.json", small("1")),
      await fileOf("b.json", small("2", { features: ["tools", "json"] })),
    ];
    const { out } = await catalog(["diff", one, two, "--json"]);
    expect(JSON.parse(out)).toEqual({
      added: [],
      removed: [],
      changed: [
        { part: "model", id: "acme/one", field: "features", old: "", new: "tools, json" },
        { part: "model", id: "acme/one", field: "pricing.input", old: "1", new: "2" },
      ],
    });
    expect((await catalog(["diff", one, one])).out).toBe("No differences.\n");
    expect(JSON.parse((await catalog(["diff", one, "--json"])).out)).toMatchObject({ added: [{ id: "acme/one" }] });
  });

  test("exits with 1 if a catalog has faults", async () => {
    const { code, err } = await catalog(["diff", await fileOf("bad.json", {})]);
    expect([code, err]).toEqual([1, expect.stringContaining("bad.json is not valid")]);
  });
});

const stores = {
  REDIS_URL: "redis://127.0.0.1:1",
  MONGODB_URI: "mongodb://127.0.0.1:1/none",
  S3_ENDPOINT: "http://127.0.0.1:1",
  S3_ACCESS_KEY_ID: "none",
  S3_SECRET_ACCESS_KEY: "none",
};

test.each(["api/main.ts", "workers/main.ts"])(
  "%s does not start without the overlay that it is given",
  async (main) => {
    const CATALOG_OVERLAY = "/nowhere/missing.json";
    const { code, err } = await runProgram([main], { ...stores, CATALOG_OVERLAY });
    expect([code, err]).toEqual([
      1,
      expect.stringContaining(`The catalog overlay ${CATALOG_OVERLAY} cannot be read: ENOENT`),
    ]);
  },
);
