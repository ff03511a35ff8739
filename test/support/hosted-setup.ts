import { onTestFinished } from "vitest";
import { createFal } from "../../workers/providers/fal/index.ts";
import type { Provider, UpstreamEndpoint } from "../../workers/providers/provider.ts";
import { createReplicate } from "../../workers/providers/replicate/index.ts";
import { createAwaitedClock, createMediaCalls } from "./media-calls-setup.ts";
import { startMockFal } from "./mock-fal.ts";
import { startMockReplicate } from "./mock-replicate.ts";

type Options = { readonly concurrency?: number; readonly baseUrl?: (url: string) => string };

/** A mock of Replicate, a provider for it, and calls whose files are collected. */
export const startReplicate = (options?: Options) =>
  start(startMockReplicate, createReplicate, { apiKey: "r8-operator", model: "acme/model" }, options);

/** The same for fal. */
export const startFal = (options?: Options) =>
  start(startMockFal, createFal, { apiKey: "fal-operator", model: "acme/model/text-to-image" }, options);

async function start<Mock extends { readonly url: string; close(): Promise<void> }>(
  startMock: () => Promise<Mock>,
  create: (target: UpstreamEndpoint, deps: { clock: ReturnType<typeof createAwaitedClock> }) => Provider,
  { apiKey, model }: { apiKey: string; model: string },
  { concurrency = 2, baseUrl = (url) => url }: Options = {},
) {
  const mock = await startMock();
  const clock = createAwaitedClock();
  const target = { baseUrl: baseUrl(mock.url), apiKey, concurrency, storesAnswers: false, formats: [] };
  const provider = create(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  return { mock, clock, provider, ...createMediaCalls(model) };
}
