import { onTestFinished } from "vitest";
import type { Task } from "../../shared/catalog/index.ts";
import { createFal } from "../../workers/providers/fal/index.ts";
import type { GenerationCall, JsonObject, Provider, Target } from "../../workers/providers/provider.ts";
import { createReplicate } from "../../workers/providers/replicate/index.ts";
import { startMockFal } from "./mock-fal.ts";
import { startMockReplicate } from "./mock-replicate.ts";
import { createAwaitedClock, type Kept, type More } from "./openai-media-setup.ts";
import { log, undisturbed } from "./upstreams-setup.ts";

type Options = { readonly concurrency?: number; readonly baseUrl?: (url: string) => string };

/** A mock of Replicate, a provider for it, and calls whose files are kept in a list. */
export const startReplicate = (options?: Options) =>
  start(startMockReplicate, createReplicate, { apiKey: "r8-operator", model: "acme/model" }, options);

/** The same of fal. */
export const startFal = (options?: Options) =>
  start(startMockFal, createFal, { apiKey: "fal-operator", model: "acme/model/text-to-image" }, options);

async function start<Mock extends { readonly url: string; close(): Promise<void> }>(
  startMock: () => Promise<Mock>,
  create: (target: Target, deps: { clock: ReturnType<typeof createAwaitedClock> }) => Provider,
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
  const kept: Kept[] = [];
  const remembered: string[] = [];
  const call = (task: Task, input: JsonObject, more: More & { model?: string } = {}): GenerationCall => ({
    task,
    model,
    input,
    uploads: new Map(),
    job: undefined,
    remember: (job) => Promise.resolve(void remembered.push(job)),
    store: async (body, about) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.concat(await Array.fromAsync(body));
      kept.push({ bytes, about });
    },
    ...undisturbed,
    signal: new AbortController().signal,
    log,
    ...more,
  });
  return { mock, clock, provider, kept, remembered, call };
}
