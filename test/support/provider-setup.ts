import { onTestFinished } from "vitest";
import type { Clock } from "#platform/clock";
import { createAnthropic } from "../../workers/providers/anthropic/index.ts";
import { createFal } from "../../workers/providers/fal/index.ts";
import { createGemini } from "../../workers/providers/gemini/index.ts";
import { createOpenai } from "../../workers/providers/openai/index.ts";
import type { Provider, TextCall, UpstreamEndpoint } from "../../workers/providers/provider.ts";
import { createReplicate } from "../../workers/providers/replicate/index.ts";
import { createAwaitedClock, createMediaCalls } from "./media-calls-setup.ts";
import { startMockAnthropic } from "./mock-anthropic.ts";
import { startMockFal } from "./mock-fal.ts";
import { startMockGemini } from "./mock-gemini.ts";
import { startMockOpenai } from "./mock-openai.ts";
import type { MockProvider } from "./mock-provider.ts";
import { startMockReplicate } from "./mock-replicate.ts";
import { errorOf, log, oneByOne } from "./upstreams-setup.ts";

interface Options extends Partial<Omit<UpstreamEndpoint, "baseUrl">> {
  readonly baseUrl?: (url: string) => string;
}

/** The upstream that a test does not change, and its usual text call. */
interface Usual extends Omit<UpstreamEndpoint, "baseUrl" | "concurrency" | "storesAnswers"> {
  readonly call: Pick<TextCall, "format" | "model" | "body">;
}

export type Way = "answer" | "stream" | "count" | "embed";

/** A mock of a provider's server, the adapter for it, and calls whose files are collected. */
async function start<Mock extends Pick<MockProvider, "url" | "request" | "close">>(
  startMock: () => Promise<Mock>,
  create: (target: UpstreamEndpoint, deps: { clock: Clock }) => Provider,
  { call: usual, ...endpoint }: Usual,
  { baseUrl = (url) => url, ...changes }: Options = {},
) {
  const mock = await startMock();
  const clock = createAwaitedClock();
  const common = { concurrency: 2, storesAnswers: false };
  const provider = create({ ...common, ...endpoint, ...changes, baseUrl: baseUrl(mock.url) }, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const text = (body: TextCall["body"] = {}, more: Partial<TextCall> = {}): TextCall => ({
    headers: {},
    signal: new AbortController().signal,
    log,
    ...usual,
    body: { ...usual.body, ...body },
    ...more,
  });
  /** The events one by one. */
  const stream = (asked = text()) => oneByOne(provider.stream(asked));
  /** Asks in one of the ways; a stream is read to its end. */
  const ask = (way: Way, asked = text()): Promise<unknown> =>
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
  start(startMockOpenai, createOpenai, { ...openai, call: chat }, options);

const response = {
  format: "responses",
  model: "m",
  body: { model: "gpt-5.2", input: "Hi", max_output_tokens: 50 },
} as const;
export const startResponses = (options?: Options) =>
  start(startMockOpenai, createOpenai, { ...openai, call: response }, options);

const message = {
  format: "messages",
  model: "claude-mock",
  body: { model: "claude-mock", max_tokens: 100, messages: [{ role: "user", content: "Hi there" }] },
} as const;
export const startAnthropic = (options?: Options) =>
  start(startMockAnthropic, createAnthropic, { apiKey: "sk-ant-operator", formats: [], call: message }, options);

/** Looks like a real key. */
export const googleKey = "AIzaSyOperator_0123456789-abcdefghijklm";
const content = {
  format: "gemini",
  model: "gemini-mock",
  body: { contents: [{ role: "user", parts: [{ text: "Hi there" }] }] },
} as const;
export const startGemini = (options?: Options) =>
  start(startMockGemini, createGemini, { apiKey: googleKey, formats: ["gemini"], call: content }, options);

const hosted = { apiKey: "r8-operator", formats: [], call: { ...chat, model: "acme/model" } } as const;
export const startReplicate = (options?: Options) => start(startMockReplicate, createReplicate, hosted, options);

const queued = { apiKey: "fal-operator", formats: [], call: { ...chat, model: "acme/model/text-to-image" } } as const;
export const startFal = (options?: Options) => start(startMockFal, createFal, queued, options);

/** Its mock takes the scripts of any provider. */
type Started = Omit<Awaited<ReturnType<typeof startOpenai>>, "mock"> & { readonly mock: MockProvider };

const providers = {
  openai: startOpenai,
  responses: startResponses,
  anthropic: startAnthropic,
  gemini: startGemini,
  replicate: startReplicate,
  fal: startFal,
};
export type ProviderName = keyof typeof providers;

export const startProvider = (name: ProviderName, options?: Options): Promise<Started> =>
  providers[name](options) as Promise<unknown> as Promise<Started>;
