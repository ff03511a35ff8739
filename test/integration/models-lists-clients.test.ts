import Anthropic from "@anthropic-ai/sdk";
import { type Model as GeminiModel, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { beforeAll, describe, expect, test } from "vitest";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ ANTHROPIC_API_KEY: "k", GEMINI_API_KEY: "k" });

interface Ours {
  readonly id: string;
  readonly owned_by: string;
  readonly name: string;
  readonly description: string;
  readonly reasoning: object | null;
  readonly deprecated_at: number | null;
  readonly type: string;
  readonly created: number;
  readonly context_length: number;
  readonly max_output_tokens: number;
}

/** Our own list for comparison, newest first like the providers' lists. */
let texts: readonly Ours[] = [];
const bare = ({ id }: Ours) => id.slice(id.indexOf("/") + 1);

// The lists need no key: this one is invalid.
const apiKey = "nobody";
const openai = () => new OpenAI({ apiKey, baseURL: `${running.service.baseUrl}/v1`, maxRetries: 0 });
const anthropic = () => new Anthropic({ apiKey, baseURL: running.service.baseUrl, maxRetries: 0 });
const gemini = (apiVersion: string) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: running.service.baseUrl, apiVersion } });

beforeAll(async () => {
  const all = (await Array.fromAsync(openai().models.list())) as unknown as Ours[];
  texts = all.filter(({ type }) => type === "text").toSorted((a, b) => b.created - a.created || (a.id < b.id ? -1 : 1));
});

describe("openai", () => {
  test("lists every model by its full id", async () => {
    const ids = (await Array.fromAsync(openai().models.list())).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["local/chat", "local/image", ...texts.map(({ id }) => id)]));
    for (const provider of ["anthropic", "google", "openai", "local"])
      expect(texts.filter(({ owned_by }) => owned_by === provider)).not.toEqual([]);
    expect(await openai().models.retrieve("local/chat")).toMatchObject({ id: "local/chat", object: "model" });
  });
});

describe("@anthropic-ai/sdk", () => {
  const infoOf = (model: Ours): Anthropic.ModelInfo => ({
    type: "model",
    id: model.owned_by === "anthropic" ? bare(model) : model.id,
    display_name: model.name,
    created_at: `${new Date(model.created * 1000).toISOString().slice(0, 19)}Z`,
    max_input_tokens: model.context_length,
    max_tokens: model.max_output_tokens,
    capabilities: null,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    line: null,
  });
  const expected = () => texts.filter(({ owned_by }) => ["anthropic", "local"].includes(owned_by)).map(infoOf);

  test("lists the provider's models and the local ones, newest first, two at a time", async () => {
    expect(expected().length).toBeGreaterThan(4);
    const page = await anthropic().models.list({ limit: 2 });
    expect(page.data).toEqual(expected().slice(0, 2));
    expect([page.has_more, page.first_id, page.last_id]).toEqual([
      true,
      ...expected()
        .slice(0, 2)
        .map(({ id }) => id),
    ]);
    expect(await Array.fromAsync(page)).toEqual(expected());
  });

  test("pages backwards from a model too", async () => {
    const [start, ...before] = expected().slice(0, 5).toReversed();
    const page = await anthropic().models.list({ limit: 2, before_id: start?.id ?? "" });
    const pages: string[][] = [];
    for await (const each of page.iterPages()) pages.push(each.data.map(({ id }) => id));
    const ids = before.toReversed().map(({ id }) => id);
    expect(pages).toEqual([ids.slice(2), ids.slice(0, 2)]);
  });

  test("filters by lifecycle, which is the same for all models", async () => {
    const { models } = anthropic();
    expect((await models.list({ lifecycle: ["active", "deprecated"] })).data).toEqual(expected());
    expect((await models.list({ lifecycle: ["retired"] })).data).toEqual([]);
  });

  test("retrieves a model by the provider's name and by ours", async () => {
    const { models } = anthropic();
    for (const info of expected()) {
      const { _request_id, ...found } = await models.retrieve(info.id);
      expect([found, _request_id]).toEqual([info, expect.stringMatching(/^req_/)]);
      const full = info.id.includes("/") ? info.id : `anthropic/${info.id}`;
      expect(await models.retrieve(full)).toMatchObject(info);
    }
  });

  test.each(["claude-none", "openai/gpt-4.1-mini", "gpt-4.1-mini", "google/gemini-2.5-flash", "local/embeddings"])(
    "%s is not among them: NotFoundError",
    async (id) => {
      const thrown: unknown = await anthropic()
        .models.retrieve(id)
        .catch((each: unknown) => each);
      expect(thrown).toBeInstanceOf(Anthropic.NotFoundError);
      expect(thrown).toMatchObject({ status: 404, type: "not_found_error", message: expect.stringContaining(id) });
    },
  );
});

describe.each(["v1beta", "v1"])("@google/genai at /%s", (version) => {
  const modelOf = (model: Ours) => ({
    name: `models/${model.owned_by === "google" ? bare(model) : model.id}`,
    displayName: model.name,
    description: model.description,
    thinking: model.reasoning !== null,
    inputTokenLimit: model.context_length,
    outputTokenLimit: model.max_output_tokens,
    supportedActions: ["generateContent", "countTokens"],
  });
  /** Removes the client's additions to every model. */
  const seen = (model: GeminiModel) => ({ ...model, tunedModelInfo: undefined });

  test("lists every model for text, seven at a time", async () => {
    const pager = await gemini(version).models.list({ config: { pageSize: 7 } });
    expect([pager.pageLength, pager.hasNextPage()]).toEqual([7, true]);
    expect((await Array.fromAsync(pager)).map(seen)).toEqual(texts.map(modelOf));
  });

  test("gets Google's own by the bare name, all by the full one", async () => {
    const { models } = gemini(version);
    for (const each of texts.filter(({ owned_by }) => ["google", "local", "anthropic"].includes(owned_by))) {
      const expected = modelOf(each);
      for (const model of [expected.name, expected.name.slice("models/".length), each.id])
        expect(seen(await models.get({ model }))).toEqual(expected);
    }
  });

  test.each(["gemini-none", "claude-sonnet-5", "models/local/embeddings", "models/models/models/local/chat"])(
    "%s is not among them: 404",
    async (model) => {
      const thrown: unknown = await gemini(version)
        .models.get({ model })
        .catch((each: unknown) => each);
      expect(thrown).toMatchObject({ name: "ApiError", status: 404 });
      expect(JSON.parse((thrown as Error).message)).toMatchObject({ error: { code: 404, status: "NOT_FOUND" } });
    },
  );
});
