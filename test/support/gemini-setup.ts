import { onTestFinished } from "vitest";
import type { JsonObject } from "#json";
import { createGemini } from "../../workers/providers/gemini/index.ts";
import type { TextCall } from "../../workers/providers/provider.ts";
import { createAwaitedClock, createMediaCalls } from "./media-calls-setup.ts";
import { startMockGemini } from "./mock-gemini.ts";
import { log } from "./upstreams-setup.ts";

/** Looks like a real key. */
export const operatorKey = "AIzaSyOperator_0123456789-abcdefghijklm";

interface Options {
  readonly concurrency?: number;
  /** Appended to the mock's address. */
  readonly path?: string;
}

/** A mock of Google's server, a provider for it, text calls, and calls whose files are collected. */
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
  const text = (body: JsonObject = {}, more: Partial<TextCall> = {}): TextCall => ({
    model: "gemini-mock",
    log,
    signal: new AbortController().signal,
    format: "gemini",
    headers: {},
    body: { contents: [{ role: "user", parts: [{ text: "Hi there" }] }], ...body },
    ...more,
  });
  const { call: media, stored } = createMediaCalls("gemini-mock");
  return { mock, clock, target, provider, text, media, stored };
}
