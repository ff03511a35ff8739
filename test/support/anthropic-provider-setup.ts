import { onTestFinished } from "vitest";
import type { JsonObject } from "#json";
import { createAnthropic } from "../../workers/providers/anthropic/index.ts";
import type { TextCall } from "../../workers/providers/provider.ts";
import { createManualClock } from "./manual-clock.ts";
import { startMockAnthropic } from "./mock-anthropic.ts";
import { log, oneByOne } from "./upstreams-setup.ts";

export const question = { model: "claude-mock", max_tokens: 100, messages: [{ role: "user", content: "Hi there" }] };

type More = Partial<Pick<TextCall, "signal" | "headers">>;

/**
 * A mock provider, a provider object for it whose streams arrive event by event, and calls. `at` is appended to the
 * mock's address.
 */
export async function startAnthropic({ concurrency = 2, apiKey, at = "" }: Options = { apiKey: "sk-ant-operator" }) {
  const mock = await startMockAnthropic();
  const clock = createManualClock();
  const target = { baseUrl: mock.url + at, apiKey, concurrency, storesAnswers: false, formats: [] };
  const provider = createAnthropic(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const call = (body: JsonObject = question, more: More = {}): TextCall => ({
    format: "messages",
    model: "claude-mock",
    headers: {},
    body,
    signal: new AbortController().signal,
    log,
    ...more,
  });
  const stream = (asked = call()) => oneByOne(provider.stream(asked));
  const count = (asked: TextCall): Promise<number> => {
    if (!provider.count) throw new Error("it does not count");
    return provider.count(asked);
  };
  return { mock, clock, provider, call, stream, count };
}

interface Options {
  readonly concurrency?: number;
  readonly apiKey?: string | undefined;
  readonly at?: string;
}
