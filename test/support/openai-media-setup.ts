import { onTestFinished } from "vitest";
import { createOpenai } from "../../workers/providers/openai/index.ts";
import { createAwaitedClock, createMediaCalls } from "./media-calls-setup.ts";
import { startMockOpenai } from "./mock-openai.ts";

/** A mock of OpenAI's server, a provider for it, and calls whose files are collected. */
export async function startMedia({ concurrency = 2 } = {}) {
  const mock = await startMockOpenai();
  const clock = createAwaitedClock();
  const target = {
    baseUrl: mock.url,
    apiKey: "sk-operator",
    concurrency,
    storesAnswers: false,
    formats: ["chat"] as const,
  };
  const provider = createOpenai(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  return { mock, clock, provider, ...createMediaCalls("provider-model") };
}
