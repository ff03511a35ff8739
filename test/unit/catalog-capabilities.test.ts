import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { loadCatalog, type Model } from "#catalog";
import { chatCodec, type Format } from "#formats";
import type { JsonObject } from "#json";
import { checkFit, listedModel } from "../../api/admission/model.ts";
import { paidRoutes } from "../../api/routes/paid.ts";
import { converters, convertRequest, ignoredParams } from "../../workers/conversion/index.ts";
import {
  catalogWith,
  imageModel,
  type Json,
  textModel,
  transcriptionModel,
  without,
} from "../support/catalog-fixture.ts";

const catalog = loadCatalog(undefined);
const texts = catalog.list().filter(({ type }) => type === "text");
const mediaModels = catalog.list().filter(({ media }) => media !== undefined);
const byId = (models: readonly Model[]) => models.map((model) => [model.id, model] as const);

const chatRoute = paidRoutes.find(({ endpoint }) => endpoint === "/v1/chat/completions");
const registry = { known: () => false } as Parameters<typeof listedModel>[0]["registry"];

/** True if a chat request with these fields passes the checks of admission. */
function isAdmitted({ id: model }: Model, fields: object): boolean {
  const body = { model, messages: [{ role: "user", content: "Hi" }], ...fields };
  if (!chatRoute) throw new Error("no route");
  try {
    const call = chatCodec.parse(body, JSON.stringify(body).length);
    const deps = { catalog, registry, nativeFormatsAnyModel: false };
    checkFit(
      deps,
      chatRoute,
      call,
      listedModel(deps, chatRoute, { name: model, param: "model" }, () => false),
    );
    return true;
  } catch {
    return false;
  }
}

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const parts = {
  image: { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
  file: { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQ=" } },
  audio: {
    type: "input_audio",
    input_audio: { format: "wav", data: Buffer.from("RIFF\0\0\0\0WAVE").toString("base64") },
  },
} as const;

describe.each(byId(texts))("%s", (_, model) => {
  test.each(["image", "file", "audio"] as const)("lists %s among its inputs if it takes such a part", (kind) => {
    const messages = [{ role: "user", content: [{ type: "text", text: "What is it?" }, parts[kind]] }];
    expect(isAdmitted(model, { messages })).toBe(model.inputModalities.includes(kind));
    expect(model.inputModalities[0]).toBe("text");
  });

  test("lists audio among its outputs if it can speak", () => {
    const spoken = { modalities: ["text", "audio"], audio: { voice: "alloy", format: "wav" } };
    expect(isAdmitted(model, spoken)).toBe(model.outputModalities.includes("audio"));
  });
});

/** Fields that accept the id of an upload, and no other text. */
function uploadFields(model: Model): readonly string[] {
  const schema = (model.inputSchema ?? {}) as { properties: Record<string, unknown>; required?: string[] };
  const fits = (field: string, value: unknown) => {
    try {
      catalog.checkInput(model, { value: { ...required, [field]: value }, at: "input" });
      return true;
    } catch (error) {
      // Another field may be at fault, for example a required upload.
      return (error as { param?: string }).param?.startsWith(`input.${field}`) === false;
    }
  };
  const required = Object.fromEntries((schema.required ?? []).map((field) => [field, "upl_a1"]));
  return Object.keys(schema.properties).filter(
    (field) => (fits(field, "upl_a1") || fits(field, ["upl_a1"])) && !fits(field, "a word") && !fits(field, ["a word"]),
  );
}

test.each(byId(mediaModels))(
  "%s lists images and recordings among its inputs if a field takes their upload",
  (_, model) => {
    const takes = (kind: "image" | "audio" | "text") => model.inputModalities.includes(kind);
    const isHearing = model.task === "transcription";
    expect([takes("image"), takes("audio")]).toEqual(
      [!isHearing, isHearing].map((fitting) => fitting && uploadFields(model).length > 0),
    );
    expect(model.outputModalities).toHaveLength(1);
    expect(model.supportedParameters).toEqual(Object.keys((model.inputSchema?.["properties"] ?? {}) as object));
  },
);

test("modalities follow the type and the task", () => {
  const of = (id: string) => {
    const { inputModalities, outputModalities } = catalog.find(id) as Model;
    return [inputModalities.join(), outputModalities.join()];
  };
  expect(of("openai/gpt-audio-1.5")).toEqual(["text,audio", "text,audio"]);
  expect(of("google/gemini-2.5-pro")).toEqual(["text,image,file,audio", "text"]);
  expect(of("local/embeddings")).toEqual(["text", "embeddings"]);
  expect(of("local/image")).toEqual(["text,image", "image"]);
  expect(of("local/speech")).toEqual(["text", "audio"]);
  expect(of("openai/gpt-transcribe")).toEqual(["text,audio", "text"]);
  expect(of("kuaishou/kling-3.0-pro-image-to-video")).toEqual(["text,image", "video"]);
  expect(of("elevenlabs/eleven-music")).toEqual(["text", "audio"]);
  // Only the units name the field if it lacks the pattern of an upload's id.
  expect(catalogWith(imageModel).model.inputModalities).toEqual(["text"]);
  const priced = { units: { image: { field: "n" }, input_image: { items_of: ["image"] } } };
  const edits = { ...imageModel, ...priced, pricing: { image: "0.04", input_image: "0.01" } };
  expect(catalogWith(edits).model.inputModalities).toEqual(["text", "image"]);
  expect(catalogWith(transcriptionModel).model.inputModalities).toEqual(["audio"]);
});

const tools = [{ type: "function", function: { name: "add", parameters: { type: "object", properties: {} } } }];
const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
/** The fields of a request that uses a parameter. An unsupported parameter makes the first one ineffective. */
const uses: Readonly<Record<string, (model: Model) => JsonObject>> = {
  max_tokens: () => ({ max_tokens: 20_000 }),
  max_completion_tokens: () => ({ max_completion_tokens: 20_000 }),
  temperature: () => ({ temperature: 0.5 }),
  top_p: () => ({ top_p: 0.5 }),
  stop: () => ({ stop: ["END"] }),
  seed: () => ({ seed: 7 }),
  frequency_penalty: () => ({ frequency_penalty: 0.5 }),
  presence_penalty: () => ({ presence_penalty: 0.5 }),
  tools: () => ({ tools }),
  tool_choice: () => ({ tool_choice: "auto", tools }),
  parallel_tool_calls: () => ({ parallel_tool_calls: false, tools }),
  response_format: () => ({ response_format: { type: "json_object" } }),
  structured_outputs: () => ({
    response_format: { type: "json_schema", json_schema: { name: "a", strict: true, schema } },
  }),
  logprobs: () => ({ logprobs: true }),
  top_logprobs: () => ({ top_logprobs: 2, logprobs: true }),
  reasoning_effort: ({ reasoning }) => ({ reasoning_effort: reasoning?.supported_efforts.at(-1) ?? "high" }),
  web_search_options: () => ({ web_search_options: { search_context_size: "low" } }),
};

const spoken: Partial<Record<string, Format>> = { anthropic: "messages", gemini: "gemini" };

/** True if the parameter reaches every upstream of the model, converted or unchanged. */
function reachesAll(model: Model, parameter: string): boolean {
  const fields = uses[parameter]?.(model) ?? {};
  if (!isAdmitted(model, fields)) return false;
  const [field = ""] = Object.keys(fields);
  return model.upstreams.every(({ upstream, model: name, formats }) => {
    const { provider, formats: all, quirks } = catalog.upstreams.get(upstream) ?? { provider: "", formats: [] };
    const list: readonly Format[] = formats ?? all;
    const format = spoken[provider] ?? (list.includes("chat") ? "chat" : (list[0] ?? "chat"));
    const request = { model: name, messages: [{ role: "user", content: "Hi" }], max_tokens: 20_000, ...fields };
    const target = { model: name, cap: 20_000, capField: model.outputCapField, ...(quirks && { quirks }) } as const;
    try {
      const ignored = ignoredParams();
      if (format === "chat") converters.chat.native.prepare(request, target, ignored);
      else
        for (const name of convertRequest(converters.chat, converters[format], request, target).ignored)
          ignored.add(name, true);
      return !ignored.names().includes(field);
    } catch {
      return false;
    }
  });
}

const file = JSON.parse(readFileSync(new URL("../../shared/catalog/models.json", import.meta.url), "utf8")) as {
  models: { id: string; unsupported_parameters?: string[]; upstreams: { upstream: string }[] }[];
  upstreams: Record<string, { unsupported_parameters?: string[] }>;
};
const exceptionsOf = (id: string): readonly string[] => {
  const { unsupported_parameters = [], upstreams = [] } = file.models.find((each) => each.id === id) ?? {};
  return [
    ...unsupported_parameters,
    ...upstreams.flatMap(({ upstream }) => file.upstreams[upstream]?.unsupported_parameters ?? []),
  ];
};

test.each(byId(texts))("%s lists the parameters that reach its upstreams unless these refuse them", (id, model) => {
  const reaching = Object.keys(uses).filter((parameter) => reachesAll(model, parameter));
  const exceptions = exceptionsOf(id);
  const efforts = model.reasoning?.supported_efforts ?? [];
  const isTaken = (each: string) => !exceptions.includes(each) && (each !== "reasoning_effort" || efforts.length > 0);
  expect(model.supportedParameters).toEqual(reaching.filter(isTaken));
});

test("a model that reasons has every effort converted for its upstreams, and reasons always unless one turns it off", () => {
  for (const model of texts) {
    const { reasoning } = model;
    for (const effort of reasoning?.supported_efforts ?? [])
      expect([model.id, effort, isAdmitted(model, { reasoning_effort: effort })]).toEqual([model.id, effort, true]);
    expect(reasoning?.mandatory ?? false).toBe(reasoning ? !reasoning.supported_efforts.includes("none") : false);
  }
  // Only reasoning is billed without being shown.
  expect(texts.filter(({ hiddenReasoning, reasoning }) => hiddenReasoning && !reasoning)).toEqual([]);
});

test("every shipped model has a description of one sentence, and no two have the same", () => {
  const descriptions = catalog.list().map(({ description }) => description);
  expect(descriptions.filter((each) => !/^(xAI|[A-Z])[^\n]*[^.]\.$/.test(each))).toEqual([]);
  expect(new Set(descriptions).size).toBe(descriptions.length);
});

describe("an entry", () => {
  const load = (more: Json) => catalogWith({ ...textModel, ...more }).model;

  test("lists its details on reasoning, deprecation and exceptions", () => {
    const more = { released: "2026-01", deprecated_at: "2026-11-01", unsupported_parameters: ["seed", "stop"] };
    const model = load({ ...more, reasoning: { efforts: ["none", "high"], default: "high" }, description: "One." });
    expect(model).toMatchObject({ description: "One.", deprecatedAt: Date.UTC(2026, 10, 1) / 1000 });
    expect(model.reasoning).toEqual({
      mandatory: false,
      supported_efforts: ["none", "high"],
      default_effort: "high",
    });
    expect(model.supportedParameters).toContain("reasoning_effort");
    expect(model.supportedParameters).not.toEqual(expect.arrayContaining(["seed"]));
    expect(load({}).supportedParameters).toEqual(expect.arrayContaining(["seed", "stop"]));
    expect(load({})).toMatchObject({ description: "", deprecatedAt: null, reasoning: null });
  });

  test.each([
    ["deprecated_at: is before the release", { deprecated_at: "2026-01-01" }],
    ["deprecated_at: must be YYYY-MM-DD", { deprecated_at: "soon" }],
    ["reasoning.default: is not among", { reasoning: { default: "high" } }],
    ["reasoning.efforts.0: Invalid option", { reasoning: { efforts: ["utmost"] } }],
    ["unsupported_parameters.0: Invalid option", { unsupported_parameters: ["top_z"] }],
    [
      "reasoning: does not fit",
      { ...without(textModel, "max_output_tokens"), type: "embeddings", pricing: { input: "1" }, reasoning: {} },
    ],
  ])("%s stops the load", (message, more) => {
    const entry = { ...textModel, ...more };
    expect(() => catalogWith("type" in more ? without(entry, "max_output_tokens") : entry)).toThrow(message);
  });
});
