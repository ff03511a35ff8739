import { startMockAnthropic } from "../support/mock-anthropic.ts";
import { startMockGemini } from "../support/mock-gemini.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { startMockReplicate } from "../support/mock-replicate.ts";
import { startMockCohere } from "../support/mock-rerank.ts";

/** The providers of a `Target`, and the settings of a service that uses them. */
export async function startProviders(onEnd: (stop: () => Promise<void>) => void) {
  const options = { record: false };
  const [openai, anthropic, gemini, replicate, cohere] = await Promise.all([
    startMockOpenai(options),
    startMockAnthropic(options),
    startMockGemini(options),
    startMockReplicate(options),
    startMockCohere(),
  ]);
  const providers = { openai, anthropic, gemini, replicate, cohere };
  for (const provider of Object.values(providers)) onEnd(() => provider.close());
  const env = {
    NATIVE_FORMATS_ANY_MODEL: "true",
    OPENAI_API_KEY: "stand-in",
    OPENAI_BASE_URL: openai.url,
    ANTHROPIC_API_KEY: "stand-in",
    ANTHROPIC_BASE_URL: anthropic.url,
    GEMINI_API_KEY: "stand-in",
    GEMINI_BASE_URL: gemini.url,
    REPLICATE_API_TOKEN: "r8-operator",
    REPLICATE_BASE_URL: replicate.url,
    COHERE_API_KEY: "stand-in",
    COHERE_BASE_URL: cohere.url,
  };
  return { providers, env };
}
