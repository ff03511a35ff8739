import Anthropic from "@anthropic-ai/sdk";
import { type MockAnthropic, startMockAnthropic } from "./mock-anthropic.ts";
import { ofFile } from "./of-file.ts";
import type { Client, Customer } from "./service.ts";
import { catalogWith, costBy, localModel, type Running, startWithProvider } from "./service-setup.ts";

export { entriesOf, never } from "./service-setup.ts";

/** Anthropic's model by its own name and by ours, which the mock provider serves. */
export const ownName = "claude-sonnet-5";
export const nativeModel = `anthropic/${ownName}`;
/** A model hosted behind OpenAI's interface, by the mock of `service-setup.ts`. */
export const hostedModel = "anthropic/claude-hosted";
export const models = [localModel, nativeModel, hostedModel] as const;
/** The cost of a usage at list prices, in nano-USD per token. */
export const costOf = costBy({
  [localModel]: { input: 100n, output: 400n },
  [nativeModel]: { input: 2_000n, cached_input: 200n, cache_write: 2_500n, cache_write_1h: 4_000n, output: 10_000n },
  "anthropic/claude-opus-5": { input: 5_000n, cached_input: 500n, output: 25_000n },
  [hostedModel]: { input: 3_000n, cached_input: 300n, output: 15_000n },
});

/** Has a price for five-minute cache writes, and none for one-hour ones. */
export const shortCacheModel = "anthropic/claude-opus-5";
/** Has no price for either. */
export const uncachedModel = "anthropic/claude-opus-4-8";
const features = ["tools", "json", "image", "file"];
const fewerPrices = {
  [shortCacheModel]: {
    features,
    pricing: { input: "5", cached_input: "0.5", cache_write: "6.25", output: "25" },
  },
  [uncachedModel]: { features, pricing: { input: "5", cached_input: "0.5", output: "25" } },
};

const withHostedModel = (): string =>
  catalogWith({ groq: { base_url_env: "OPENAI_BASE_URL", key_env: "OPENAI_API_KEY" } }, fewerPrices, [
    {
      id: hostedModel,
      name: "Hosted",
      owned_by: "anthropic",
      type: "text",
      released: "2026-01-01",
      context_length: 131_072,
      max_output_tokens: 8_192,
      features: ["tools", "json", "image", "file"],
      max_part_tokens: { image: 1_024, file: 50_000 },
      pricing: { input: "3", cached_input: "0.3", output: "15" },
      aliases: ["claude-hosted"],
      upstreams: [{ upstream: "groq", model: "hosted-own-name" }],
    },
  ]);

interface Served extends Running {
  readonly anthropic: MockAnthropic;
}

/** One service for all tests of a file; the mock providers are reset before each. */
export const anthropicService = (): Served =>
  ofFile(
    async (onEnd) => {
      const anthropic = await startMockAnthropic();
      const env = {
        ANTHROPIC_API_KEY: "sk-ant-operator",
        ANTHROPIC_BASE_URL: anthropic.url,
        CATALOG_FILE: withHostedModel(),
      };
      const running = await startWithProvider(env, onEnd);
      onEnd(() => Promise.all([running.provider.close(), anthropic.close()]));
      return { ...running, anthropic };
    },
    ({ provider, anthropic }) => {
      for (const mock of [provider, anthropic]) mock.reset();
    },
  );

/** The official client as its documentation sets it up, with this customer's key. */
export const clientOf = (service: Client, { key }: Customer, options: object = {}) =>
  new Anthropic({ apiKey: key, baseURL: service.baseUrl, maxRetries: 0, ...options });

/** A customer with a balance, and its client. */
export async function newCaller({ service }: Served, usd = "1") {
  const customer = await service.account(usd);
  return { customer, client: clientOf(service, customer) };
}

/** A minimal request. */
export const asking = <Model extends string>(model: Model, content = "Hello there") => ({
  model,
  max_tokens: 1_000,
  messages: [{ role: "user" as const, content }],
});

export const textOf = ({ content }: { content: readonly { type: string }[] }): string =>
  content.map((block) => ("text" in block ? String(block.text) : "")).join("");
