import { expect, test } from "vitest";
import {
  asking,
  chargeOf,
  chatProvider,
  costOf,
  entriesOf,
  geminiService,
  google,
  messagesProvider,
  nativeModel,
  newCaller,
  ownName,
  responsesProvider,
  type Target,
} from "../support/gemini-client-setup.ts";
import { mockUsage } from "../support/mock-openai.ts";
import { nanoUsd } from "../support/service-setup.ts";

const served = geminiService();

const long = "word ".repeat(2_000);
const script: Readonly<Record<string, () => void>> = {
  "Google's": () =>
    served.gemini.always({
      usage: {
        promptTokenCount: 1_000,
        cachedContentTokenCount: 400,
        toolUsePromptTokenCount: 50,
        candidatesTokenCount: 20,
        thoughtsTokenCount: 30,
        totalTokenCount: 1_100,
        promptTokensDetails: [
          { modality: "TEXT", tokenCount: 800 },
          { modality: "AUDIO", tokenCount: 200 },
        ],
        cacheTokensDetails: [
          { modality: "TEXT", tokenCount: 300 },
          { modality: "AUDIO", tokenCount: 100 },
        ],
      },
    }),
  chat: () =>
    served.provider.always({
      usage: { ...mockUsage(), prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 400 } },
    }),
  responses: () =>
    served.provider.always({
      usage: {
        input_tokens: 1_000,
        input_tokens_details: { cached_tokens: 400 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 30 },
        total_tokens: 1_050,
      },
    }),
  messages: () =>
    served.anthropic.always({
      usage: {
        input_tokens: 600,
        cache_read_input_tokens: 400,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        output_tokens: 50,
      },
    }),
};
const { completion_tokens } = mockUsage();
const rows: readonly (readonly [Target, Readonly<Record<string, number>>, object])[] = [
  [
    google,
    { input: 550, cached_input: 400, audio_input: 100, output: 50 },
    { promptTokenCount: 1_000, cachedContentTokenCount: 400, toolUsePromptTokenCount: 50, thoughtsTokenCount: 30 },
  ],
  [
    chatProvider,
    { input: 600, cached_input: 400, output: completion_tokens },
    { promptTokenCount: 1_000, cachedContentTokenCount: 400, candidatesTokenCount: completion_tokens },
  ],
  [
    responsesProvider,
    { input: 600, cached_input: 400, output: 50 },
    { promptTokenCount: 1_000, cachedContentTokenCount: 400, thoughtsTokenCount: 30, candidatesTokenCount: 20 },
  ],
];

test.each(rows.map(([target, usage, shown]) => ({ ...target, usage, shown })))(
  "$name: each kind of token at its price, whole and in a stream",
  async ({ name, model, usage, shown }) => {
    script[name]?.();
    const { client, customer } = await newCaller(served);
    const whole = await client.models.generateContent(asking(model, long));
    expect(whole.usageMetadata).toMatchObject(shown);
    const cost = costOf(model, usage);
    expect(await chargeOf(served.service, customer)).toBe(cost);
    expect(nanoUsd(whole.sdkHttpResponse?.headers?.["x-xm-cost-usd"] ?? "")).toBe(cost);
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(model, long)));
    expect(chunks.at(-1)?.usageMetadata).toEqual(whole.usageMetadata);
    expect(await chargeOf(served.service, customer)).toBe(cost);
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ endpoint: "/v1beta/models:streamGenerateContent", estimated: false, usage });
    expect(nanoUsd(await customer.available())).toBe(10_000_000_000n - 2n * cost);
  },
);

test("messages: what it wrote to a cache too", async () => {
  script["messages"]?.();
  const { client, customer } = await newCaller(served);
  const answer = await client.models.generateContent(asking(messagesProvider.model, long));
  expect(answer.usageMetadata).toMatchObject({ promptTokenCount: 1_300, cachedContentTokenCount: 400 });
  expect(await chargeOf(served.service, customer)).toBe(
    costOf(messagesProvider.model, {
      input: 600,
      cached_input: 400,
      cache_write: 100,
      cache_write_1h: 200,
      output: 50,
    }),
  );
});

test("a provider that tells no usage: an estimate, marked as one", async () => {
  const { client, customer } = await newCaller(served);
  served.gemini.respond({ usage: false, text: "12345678" }, { usage: false, text: "12345678" });
  const cost = costOf(nativeModel, { input: 3, output: 2 });
  await client.models.generateContent(asking(ownName));
  expect(await chargeOf(served.service, customer)).toBe(cost);
  await Array.fromAsync(await client.models.generateContentStream(asking(ownName)));
  const [entry] = await entriesOf(served.service, customer);
  expect(entry?.request).toMatchObject({ estimated: true, usage: { input: 3, output: 2 } });
  expect(await chargeOf(served.service, customer)).toBe(cost);
});
