import type { Json } from "./catalog-fixture.ts";
import { temporaryJson } from "./end-of-file.ts";
import { type MockOpenai, startMockOpenai } from "./mock-openai.ts";
import { ofFile } from "./of-file.ts";
import { type PromptCache, promptCache, usageWith } from "./prompt-cache.ts";
import { testStores } from "./servers.ts";
import { type Client, startService } from "./service.ts";

export const warmModel = "acme/weighed";
const names = ["alpha", "beta", "gamma", "delta"] as const;

const model: Json = {
  id: warmModel,
  name: "Weighed",
  owned_by: "acme",
  type: "text",
  released: "2026-01-01",
  context_length: 1_000_000,
  max_output_tokens: 4_000,
  features: ["tools"],
  pricing: { input: "1", cached_input: "0.1", output: "4" },
  upstreams: names.map((upstream) => ({ upstream, weight: 1, model: `${upstream}-weighed` })),
};

export interface WarmUpstream {
  readonly mock: MockOpenai;
  /** Empties its cache and its counts, and ends its scripts. */
  reset(): void;
  fail(): void;
  readonly counts: { calls: number; cached: number };
}

/** A stand-in of an upstream with a prompt cache of its own. `note` gets the prompt of each call. */
async function startUpstream(note: (messages: unknown) => void): Promise<WarmUpstream> {
  const mock = await startMockOpenai({ record: false });
  const counts = { calls: 0, cached: 0 };
  let cache: PromptCache;
  function reset(): void {
    cache = promptCache();
    Object.assign(counts, { calls: 0, cached: 0 });
    mock.always(({ body }) => {
      const usage = cache(body["messages"]);
      note(body["messages"]);
      counts.calls++;
      counts.cached += usage.cached;
      return { usage: usageWith(usage) };
    });
  }
  reset();
  return { mock, counts, reset, fail: () => mock.always({ status: 500, body: { error: { message: "oops" } } }) };
}

export interface Warm {
  readonly service: Client;
  readonly upstreams: readonly WarmUpstream[];
  /** The cached tokens of the calls since the reset, as they were and as one upstream alone would have had them. */
  readonly cachedTokens: () => { readonly cached: number; readonly atOne: number };
}

/** A service with a model at four upstreams of equal weight, each with a prompt cache, which are reset before each test. */
export const warmService = (): Warm =>
  ofFile(
    async (onEnd) => {
      const state = { atOne: 0, one: promptCache() };
      const upstreams = await Promise.all(
        names.map(() => startUpstream((messages) => (state.atOne += state.one(messages).cached))),
      );
      const entries = names.map((name, n) => [
        name,
        { provider: "openai", base_url: upstreams[n]?.mock.url, key_env: "OPENAI_API_KEY" },
      ]);
      const catalog = { elite_discount_bps: 0, upstreams: Object.fromEntries(entries), models: [model] };
      const env = {
        CATALOG_FILE: temporaryJson("catalog", catalog),
        OPENAI_API_KEY: "sk-operator",
        NATIVE_FORMATS_ANY_MODEL: "true",
      };
      const service = await startService(await testStores(), { env, onEnd });
      onEnd(() => Promise.all(upstreams.map(({ mock }) => mock.close())));
      return {
        service,
        upstreams,
        state,
        cachedTokens: () => ({
          cached: upstreams.reduce((sum, { counts }) => sum + counts.cached, 0),
          atOne: state.atOne,
        }),
      };
    },
    ({ upstreams, state }) => {
      Object.assign(state, { atOne: 0, one: promptCache() });
      for (const upstream of upstreams) upstream.reset();
    },
  );
