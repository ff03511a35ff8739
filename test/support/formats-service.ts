import { type MockAnthropic, startMockAnthropic } from "./mock-anthropic.ts";
import { type MockGemini, startMockGemini } from "./mock-gemini.ts";
import { mockText } from "./mock-openai.ts";
import type { MockProvider } from "./mock-provider.ts";
import { movableClock } from "./movable-clock.ts";
import { relayed, relayedModel } from "./native-formats.ts";
import { ofFile } from "./of-file.ts";
import type { Environment } from "./service.ts";
import {
  catalogWith,
  costBy,
  type FileService,
  localModel,
  type Prices,
  providerModel,
  startWithProvider,
} from "./service-setup.ts";

/** Has a price for five-minute cache writes, and none for one-hour ones. */
export const shortCacheModel = "anthropic/claude-opus-5";
/** Has no price for either. */
export const uncachedModel = "anthropic/claude-opus-4-8";
/** Thinks, and refuses its tool calls without the thinking before them. */
export const deepseekModel = "deepseek/deepseek-v4-pro";
/** The providers' own names of the native models. */
export const claudeName = "claude-sonnet-5";
export const geminiName = "gemini-2.5-flash";

/** In nano-USD per token, by price key; independent of the catalog's price list. */
const prices: Prices = {
  [localModel]: { input: 100n, cached_input: 50n, audio_input: 300n, output: 400n },
  [providerModel]: { input: 400n, cached_input: 100n, output: 1_600n },
  "openai/gpt-5.5": { input: 5_000n, cached_input: 500n, output: 30_000n },
  [`anthropic/${claudeName}`]: {
    input: 2_000n,
    cached_input: 200n,
    cache_write: 2_500n,
    cache_write_1h: 4_000n,
    output: 10_000n,
  },
  [shortCacheModel]: { input: 5_000n, cached_input: 500n, cache_write: 6_250n, output: 25_000n },
  [uncachedModel]: { input: 5_000n, cached_input: 500n, output: 25_000n },
  [`google/${geminiName}`]: { input: 300n, cached_input: 30n, audio_input: 1_000n, output: 2_500n },
};

const usdPerMillion = (nanoUsd: bigint) => String(Number(nanoUsd) / 1_000);

const pricing = Object.fromEntries(
  Object.entries(prices).map(([model, keys]) => [
    model,
    {
      pricing: Object.fromEntries(Object.entries(keys).map(([key, price]) => [key, usdPerMillion(price)])),
      // An aborted stream is not read to its end for usage.
      ...(model !== localModel && { hidden_reasoning: false }),
      // The feature of caches that last an hour has no price here.
      ...([shortCacheModel, uncachedModel].includes(model) && { features: ["tools", "json", "image", "file"] }),
    },
  ]),
);

/** The cost of these units at `prices`. */
export const costOf = costBy({ ...prices, [relayedModel]: { input: 1_000n, cached_input: 500n, output: 4_000n } });

/** The target of a call: the local model, or a provider by its API format. */
export interface Target {
  readonly name: string;
  readonly model: string;
  readonly mock?: (served: Served) => MockProvider;
  /** The answer to "Hello there". */
  readonly says: string;
}

export const local: Target = {
  name: "local",
  model: localModel,
  says: 'You said: "Hello there". This is a model for tests: it repeats what it reads.',
};
export const chatProvider: Target = {
  name: "chat",
  model: providerModel,
  mock: ({ provider }) => provider,
  says: mockText,
};
/** Speaks only chat, and may be called in every format. */
export const relay: Target = { ...chatProvider, name: "relay", model: relayedModel };
export const responsesProvider: Target = { ...chatProvider, name: "responses", model: "openai/gpt-5.5" };
export const messagesProvider: Target = {
  name: "messages",
  model: `anthropic/${claudeName}`,
  mock: ({ anthropic }) => anthropic,
  says: "You said: Hello there",
};
export const geminiProvider: Target = {
  ...messagesProvider,
  name: "gemini",
  model: `google/${geminiName}`,
  mock: ({ gemini }) => gemini,
};
export const others: readonly Target[] = [chatProvider, responsesProvider, messagesProvider];
export const targets: readonly Target[] = [local, geminiProvider, ...others];

export interface Served extends FileService {
  readonly gemini: MockGemini;
  readonly anthropic: MockAnthropic;
}

/** One service for all tests of a file, with a provider of each format; the mocks are reset before each test. */
export const formatsService = (env: Environment = {}): Served =>
  ofFile(
    async (onEnd) => {
      const [gemini, anthropic] = await Promise.all([startMockGemini(), startMockAnthropic()]);
      const standIn = { base_url_env: "OPENAI_BASE_URL", key_env: "OPENAI_API_KEY" };
      const providers = {
        GEMINI_API_KEY: "operator",
        GEMINI_BASE_URL: gemini.url,
        ANTHROPIC_API_KEY: "sk-ant-operator",
        ANTHROPIC_BASE_URL: anthropic.url,
        CATALOG_FILE: catalogWith({ deepseek: standIn, groq: standIn }, pricing, [relayed]),
        ...env,
      };
      const { clock, ...time } = movableClock();
      const running = await startWithProvider(providers, onEnd, clock);
      onEnd(() => Promise.all([running.provider.close(), gemini.close(), anthropic.close()]));
      return { ...running, ...time, gemini, anthropic };
    },
    (served) => {
      for (const mock of mocksOf(served)) mock.reset();
    },
  );

const mocksOf = ({ provider, gemini, anthropic }: Served) => [provider, gemini, anthropic];

/** Everything that the providers received. */
export const received = (served: Served) => mocksOf(served).flatMap(({ requests }) => requests);

/** The body of the last request to the target's provider. */
export const sent = (served: Served, { mock }: Target): Readonly<Record<string, unknown>> =>
  mock?.(served).requests.at(-1)?.body ?? {};
