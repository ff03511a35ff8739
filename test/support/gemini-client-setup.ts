import { GoogleGenAI, type HttpOptions } from "@google/genai";
import { type MockAnthropic, startMockAnthropic } from "./mock-anthropic.ts";
import { type MockGemini, startMockGemini } from "./mock-gemini.ts";
import { mockChunk, mockText, mockUsage } from "./mock-openai.ts";
import type { MockProvider } from "./mock-provider.ts";
import { ofFile } from "./of-file.ts";
import type { Client, Customer } from "./service.ts";
import {
  catalogWith,
  costBy,
  entriesOf,
  localModel,
  nanoUsd,
  type Prices,
  providerModel,
  type Running,
  startWithProvider,
} from "./service-setup.ts";

export { entriesOf, never } from "./service-setup.ts";

/** The provider's own name of the native model; the other models are each behind another API format. */
export const ownName = "gemini-2.5-flash";
export const nativeModel = `google/${ownName}`;
const chatModel = providerModel;
const responsesModel = "openai/gpt-5.5";
const messagesModel = "anthropic/claude-sonnet-5";

/** In nano-USD per token, by price key; independent of the catalog's price list. */
const prices: Prices = {
  [localModel]: { input: 100n, cached_input: 50n, audio_input: 300n, output: 400n },
  [nativeModel]: { input: 300n, cached_input: 30n, audio_input: 1_000n, output: 2_500n },
  [chatModel]: { input: 400n, cached_input: 100n, output: 1_600n },
  [responsesModel]: { input: 5_000n, cached_input: 500n, output: 30_000n },
  [messagesModel]: { input: 2_000n, cached_input: 200n, cache_write: 2_500n, cache_write_1h: 4_000n, output: 10_000n },
};

const pricing = Object.fromEntries(
  Object.entries(prices).map(([model, keys]) => [
    model,
    {
      pricing: Object.fromEntries(Object.entries(keys).map(([key, price]) => [key, String(Number(price) / 1_000)])),
      // An aborted stream is not read to its end for usage.
      ...(model !== localModel && { hidden_reasoning: false }),
    },
  ]),
);

/** The cost of these units at `prices`. */
export const costOf = costBy(prices);

export interface Served extends Running {
  readonly gemini: MockGemini;
  readonly anthropic: MockAnthropic;
}

/** The target of a call: the local model, Google, or a provider of another API format. */
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
export const google: Target = {
  name: "Google's",
  model: nativeModel,
  mock: ({ gemini }) => gemini,
  says: "You said: Hello there",
};
export const chatProvider: Target = {
  name: "chat",
  model: chatModel,
  mock: ({ provider }) => provider,
  says: mockText,
};
export const responsesProvider: Target = {
  name: "responses",
  model: responsesModel,
  mock: ({ provider }) => provider,
  says: mockText,
};
export const messagesProvider: Target = {
  name: "messages",
  model: messagesModel,
  mock: ({ anthropic }) => anthropic,
  says: "You said: Hello there",
};
/** Thinks, and refuses its tool calls without the thinking before them. */
export const deepseekModel = "deepseek/deepseek-v4-pro";
export const others: readonly Target[] = [chatProvider, responsesProvider, messagesProvider];
export const targets: readonly Target[] = [local, google, ...others];

/** One service for all tests of a file; the mocks are reset before each. */
export const geminiService = (): Served =>
  ofFile(
    async (onEnd) => {
      const [gemini, anthropic] = await Promise.all([startMockGemini(), startMockAnthropic()]);
      const providers = {
        GEMINI_API_KEY: "operator",
        GEMINI_BASE_URL: gemini.url,
        ANTHROPIC_API_KEY: "sk-ant-operator",
        ANTHROPIC_BASE_URL: anthropic.url,
        CATALOG_FILE: catalogWith(
          { deepseek: { base_url_env: "OPENAI_BASE_URL", key_env: "OPENAI_API_KEY" } },
          pricing,
        ),
      };
      const running = await startWithProvider(providers, onEnd);
      onEnd(() => Promise.all([running.provider.close(), gemini.close(), anthropic.close()]));
      return { ...running, gemini, anthropic };
    },
    ({ provider, gemini, anthropic }) => {
      for (const mock of [provider, gemini, anthropic]) mock.reset();
    },
  );

/** The official client with the customer's key. */
export const clientOf = (service: Client, { key }: Customer, httpOptions: HttpOptions = {}) =>
  new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: service.baseUrl, ...httpOptions } });

export async function newCaller({ service }: Served, usd = "10", httpOptions?: HttpOptions) {
  const customer = await service.account(usd);
  return { customer, client: clientOf(service, customer, httpOptions) };
}

/** A minimal request. */
export const asking = (model: string, contents = "Hello there") => ({ model, contents });

/** The body of the last request to the target's provider. */
export const sent = (served: Served, { mock }: Target): Readonly<Record<string, unknown>> =>
  mock?.(served).requests.at(-1)?.body ?? {};

/** The charge of the latest call. */
export async function chargeOf(service: Client, customer: Customer): Promise<bigint> {
  const [entry] = await entriesOf(service, customer);
  return -nanoUsd(entry?.amount_usd ?? "0.00");
}

/** The mock of OpenAI's chat calls tools only if scripted. */
export function scriptChatCalls({ provider }: Served, names: readonly string[], { stream = false } = {}): void {
  const calls = names.map((name, index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: '{"city":"Oslo"}' },
  }));
  const message = { role: "assistant", content: null, refusal: null, tool_calls: calls };
  const body = { id: "x", choices: [{ index: 0, message, finish_reason: "tool_calls" }], usage: mockUsage() };
  const delta = (index: number, more: object) => mockChunk({ tool_calls: [{ index, ...more }] });
  const events = [
    mockChunk({ role: "assistant", content: null }),
    ...calls.map(({ index, function: { name }, ...call }) =>
      delta(index, { ...call, function: { name, arguments: "" } }),
    ),
    ...calls.map(({ index }) => delta(index, { function: { arguments: '{"city":' } })),
    ...calls.map(({ index }) => delta(index, { function: { arguments: '"Oslo"}' } })),
    mockChunk({}, "tool_calls"),
    mockChunk(undefined, null, { usage: mockUsage() }),
  ];
  provider.respond(stream ? { events } : { body });
}
