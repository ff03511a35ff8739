import { onTestFinished } from "vitest";
import type { Task } from "../../shared/catalog/index.ts";
import { createGemini } from "../../workers/providers/gemini/index.ts";
import type { GenerationCall, JsonObject, TextCall } from "../../workers/providers/provider.ts";
import { startMockGemini } from "./mock-gemini.ts";
import { createAwaitedClock, type Kept } from "./openai-media-setup.ts";
import { log, undisturbed } from "./upstreams-setup.ts";

/** In the form that the provider's keys have. */
export const operatorKey = "AIzaSyOperator_0123456789-abcdefghijklm";

interface Options {
  readonly concurrency?: number;
  /** What stands behind the mock's address. */
  readonly path?: string;
}

/** A mock of Google's server, a provider for it, text calls, and calls whose files are kept in a list. */
export async function startGemini({ concurrency = 4, path = "" }: Options = {}) {
  const mock = await startMockGemini();
  const clock = createAwaitedClock();
  const target = {
    baseUrl: mock.url + path,
    apiKey: operatorKey,
    concurrency,
    storesAnswers: false,
    formats: ["gemini"] as const,
  };
  const provider = createGemini(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const common = { model: "gemini-mock", log, signal: new AbortController().signal };
  const text = (body: JsonObject = {}, more: Partial<TextCall> = {}): TextCall => ({
    ...common,
    format: "gemini",
    headers: {},
    body: { contents: [{ role: "user", parts: [{ text: "Hi there" }] }], ...body },
    ...more,
  });
  const kept: Kept[] = [];
  const media = (task: Task, input: JsonObject, more: Partial<GenerationCall> = {}): GenerationCall => ({
    ...common,
    ...undisturbed,
    task,
    input,
    uploads: new Map(),
    job: undefined,
    remember: () => Promise.resolve(),
    store: async (body, about) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.concat(await Array.fromAsync(body));
      kept.push({ bytes, about });
    },
    ...more,
  });
  return { mock, clock, target, provider, text, media, kept };
}
