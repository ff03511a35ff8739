import { onTestFinished } from "vitest";
import type { Clock } from "#platform/clock";
import type { Environment } from "../../shared/platform/process/secret-files.ts";
import { createAnthropic } from "../../workers/providers/anthropic/index.ts";
import { createAzure } from "../../workers/providers/azure/index.ts";
import { createBedrock } from "../../workers/providers/bedrock/index.ts";
import { createFal } from "../../workers/providers/fal/index.ts";
import { createGemini } from "../../workers/providers/gemini/index.ts";
import { createOpenai } from "../../workers/providers/openai/index.ts";
import type { Provider, TextCall, UpstreamEndpoint } from "../../workers/providers/provider.ts";
import { createReplicate } from "../../workers/providers/replicate/index.ts";
import { createVertex } from "../../workers/providers/vertex/index.ts";
import { createManualClock } from "./manual-clock.ts";
import { createAwaitedClock, createMediaCalls } from "./media-calls-setup.ts";
import { startMockAnthropic } from "./mock-anthropic.ts";
import { mockAzureKey, startMockAzure } from "./mock-azure.ts";
import { mockApiKey, startMockBedrock } from "./mock-bedrock.ts";
import { startMockFal } from "./mock-fal.ts";
import { startMockGemini } from "./mock-gemini.ts";
import { startMockOpenai } from "./mock-openai.ts";
import type { MockProvider } from "./mock-provider.ts";
import { startMockReplicate } from "./mock-replicate.ts";
import { type MockVertex, startMockVertex } from "./mock-vertex.ts";
import { mockAccount, mockProject } from "./mock-vertex-tokens.ts";
import { errorOf, log, oneByOne } from "./upstreams-setup.ts";

interface Options extends Partial<Omit<UpstreamEndpoint, "baseUrl">> {
  readonly baseUrl?: (url: string) => string;
}

/** The upstream that a test does not change, and its usual text call. */
interface Usual
  extends Omit<UpstreamEndpoint, "baseUrl" | "concurrency" | "storesAnswers" | "parts" | "env">,
    Partial<Pick<UpstreamEndpoint, "parts">> {
  readonly call: Pick<TextCall, "format" | "model" | "body">;
}

export type Way = "answer" | "stream" | "count" | "embed";

/** A mock of a provider's server, the adapter for it, and calls whose files are collected. */
async function start<Mock extends Pick<MockProvider, "url" | "request" | "close">>(
  startMock: (clock: Clock) => Promise<Mock>,
  create: (target: UpstreamEndpoint, deps: { clock: Clock; hosts: Environment }, mock: Mock) => Provider,
  { call: usual, ...endpoint }: Usual,
  { baseUrl = (url) => url, ...changes }: Options = {},
) {
  const clock = createAwaitedClock();
  const mock = await startMock(clock);
  const common = { concurrency: 2, storesAnswers: false, parts: {}, env: undefined };
  const hosts = { AZURE_AUTHORITY_HOST: mock.url };
  const provider = create({ ...common, ...endpoint, ...changes, baseUrl: baseUrl(mock.url) }, { clock, hosts }, mock);
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const text = (body: TextCall["body"] = {}, more: Partial<TextCall> = {}): TextCall => ({
    headers: {},
    signal: new AbortController().signal,
    reserveMemory: () => {},
    log,
    ...usual,
    body: { ...usual.body, ...body },
    ...more,
  });
  /** The events one by one. */
  const stream = (asked = text()) => oneByOne(provider.stream(asked));
  /** Asks in one of the ways; a stream is read to its end. */
  const ask = async (way: Way, asked = text()): Promise<unknown> =>
    way === "stream" ? Array.fromAsync(stream(asked)) : (provider[way]?.(asked) ?? Promise.resolve());
  /** Reads a stream that fails. Returns its events and its error. */
  const readFailing = async (asked = text()) => {
    const events: unknown[] = [];
    const read = async () => {
      for await (const event of stream(asked)) events.push(event);
    };
    return { failure: await errorOf(read()), events };
  };
  return { mock, clock, provider, text, stream, ask, readFailing, ...createMediaCalls(usual.model) };
}

const user = { role: "user", content: "Hi" };

const openai = { apiKey: "sk-operator", formats: ["chat", "responses"] } as const;
const chat = { format: "chat", model: "provider-model", body: { model: "m", messages: [user] } } as const;
export const startOpenai = (options?: Options) =>
  start(() => startMockOpenai(), createOpenai, { ...openai, call: chat }, options);

const response = {
  format: "responses",
  model: "m",
  body: { model: "gpt-5.2", input: "Hi", max_output_tokens: 50 },
} as const;
export const startResponses = (options?: Options) =>
  start(() => startMockOpenai(), createOpenai, { ...openai, call: response }, options);

const message = {
  format: "messages",
  model: "claude-mock",
  body: { model: "claude-mock", max_tokens: 100, messages: [{ role: "user", content: "Hi there" }] },
} as const;
export const startAnthropic = (options?: Options) =>
  start(
    () => startMockAnthropic(),
    createAnthropic,
    { apiKey: "sk-ant-operator", formats: [], call: message },
    options,
  );

/** Looks like a real key. */
export const googleKey = "AIzaSyOperator_0123456789-abcdefghijklm";
const content = {
  format: "gemini",
  model: "gemini-mock",
  body: { contents: [{ role: "user", parts: [{ text: "Hi there" }] }] },
} as const;
export const startGemini = (options?: Options) =>
  start(() => startMockGemini(), createGemini, { apiKey: googleKey, formats: ["gemini"], call: content }, options);

/** OpenAI's v1 API of the resource. */
const azure = {
  apiKey: mockAzureKey,
  formats: ["chat", "responses"],
  call: { format: "chat", model: "gpt-main", body: { model: "gpt-main", messages: [user] } },
} as const;
export const startAzure = (options: Options = {}) =>
  start(() => startMockAzure(), createAzure, azure, { baseUrl: (url) => `${url}/openai/v1`, ...options });

/** A dated version of it. */
const version = { stream_usage: "request", whole_answer_cap: undefined, api_version: "2024-10-21" } as const;
export const startDatedAzure = (options: Options = {}) =>
  startAzure({ baseUrl: (url) => `${url}/openai`, quirks: version, ...options });

const foundryCall = { ...message, model: "claude-main", body: { ...message.body, model: "claude-main" } };
export const startFoundry = (options: Options = {}) =>
  start(
    () => startMockAzure(),
    createAzure,
    { apiKey: mockAzureKey, formats: ["messages"], call: foundryCall },
    { baseUrl: (url) => `${url}/anthropic`, ...options },
  );

const hosted = { apiKey: "r8-operator", formats: [], call: { ...chat, model: "acme/model" } } as const;
export const startReplicate = (options?: Options) =>
  start(() => startMockReplicate(), createReplicate, hosted, options);

const queued = { apiKey: "fal-operator", formats: [], call: { ...chat, model: "acme/model/text-to-image" } } as const;
export const startFal = (options?: Options) => start(() => startMockFal(), createFal, queued, options);

/** A project's location, reached with the key of a service account. */
const vertex = {
  apiKey: mockAccount,
  formats: ["gemini", "messages", "chat"],
  parts: { project: mockProject, region: "global" },
} as const;
const createMockedVertex = (target: UpstreamEndpoint, deps: { clock: Clock }, { tokens }: MockVertex) =>
  createVertex(
    { ...target, env: target.env ?? {} },
    { ...deps, hosts: { GOOGLE_OAUTH_TOKEN_URL: `${tokens.url}/token`, ...target.env } },
  );
const startVertexWith = (call: Usual["call"]) => (options?: Options) =>
  start((clock) => startMockVertex({ now: () => clock.now() }), createMockedVertex, { ...vertex, call }, options);
export const startVertex = startVertexWith(content);
export const startVertexClaude = startVertexWith(message);
export const startVertexChat = startVertexWith({
  ...chat,
  body: { ...chat.body, model: "meta/llama-mock-maas" },
});

const haiku = "{geo}.anthropic.claude-haiku-4-5-20251001-v1:0";
const bedrock = {
  apiKey: mockApiKey,
  formats: ["messages", "chat", "responses"],
  parts: { region: "us-east-1" },
  call: { ...message, model: haiku, body: { ...message.body, model: haiku } },
} as const;
/** The time of the mock's server stands still. */
const standing = createManualClock();
export const startBedrock = ({ place, ...options }: Options & { place?: { region: string; prefix: string } } = {}) =>
  start(() => startMockBedrock({ now: () => standing.now(), ...place }), createBedrock, bedrock, options);
const llama = { format: "chat", model: "{geo}.meta.llama4-scout-17b-instruct-v1:0" } as const;
const llamaCall = { ...llama, body: { model: llama.model, max_tokens: 100, messages: [user] } };
export const startConverse = (options?: Options) =>
  start(() => startMockBedrock({ now: () => standing.now() }), createBedrock, { ...bedrock, call: llamaCall }, options);

/** Its mock takes the scripts of any provider. */
type Started = Omit<Awaited<ReturnType<typeof startOpenai>>, "mock"> & { readonly mock: MockProvider };

const providers = {
  openai: startOpenai,
  responses: startResponses,
  anthropic: startAnthropic,
  gemini: startGemini,
  azure: startAzure,
  foundry: startFoundry,
  replicate: startReplicate,
  fal: startFal,
  vertex: startVertex,
  bedrock: startBedrock,
  converse: startConverse,
};
export type ProviderName = keyof typeof providers;

export const startProvider = (name: ProviderName, options?: Options): Promise<Started> =>
  providers[name](options) as Promise<unknown> as Promise<Started>;
