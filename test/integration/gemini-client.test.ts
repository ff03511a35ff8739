import type { GenerateContentResponse } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chargeOf,
  chatProvider,
  costOf,
  geminiService,
  local,
  newCaller,
  responsesProvider,
  sent,
  targets,
} from "../support/gemini-client-setup.ts";

const served = geminiService();

const textIn = (chunks: readonly GenerateContentResponse[]) => chunks.map(({ text = "" }) => text).join("");

describe.each(targets)("$name", (target) => {
  const { model, says } = target;

  test("generateContent: an answer under the service's model id, charged by its usage", async () => {
    const { customer, client } = await newCaller(served);
    const answer = await client.models.generateContent(asking(model));
    expect(answer.text).toBe(says);
    expect(answer).toMatchObject({
      candidates: [{ content: { role: "model", parts: [{ text: says }] }, finishReason: "STOP", index: 0 }],
      modelVersion: model,
      responseId: expect.any(String),
    });
    const { promptTokenCount = 0, candidatesTokenCount = 0, totalTokenCount } = answer.usageMetadata ?? {};
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount);
    expect(Math.min(promptTokenCount, candidatesTokenCount)).toBeGreaterThan(0);
    expect(await chargeOf(served.service, customer)).toBe(
      costOf(model, { input: promptTokenCount, output: candidatesTokenCount }),
    );
  });

  test("generateContentStream: its chunks make the whole answer, the last has the reason of the end and the usage", async () => {
    const { client } = await newCaller(served);
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(model)));
    const whole = await client.models.generateContent(asking(model));
    expect(chunks.length).toBeGreaterThan(3);
    expect(textIn(chunks)).toBe(whole.text);
    for (const chunk of chunks) {
      expect(chunk.modelVersion).toBe(model);
      expect(chunk.responseId).toBe(chunks[0]?.responseId);
    }
    const reasons = chunks.flatMap(({ candidates }) => candidates?.[0]?.finishReason ?? []);
    expect([reasons, chunks.at(-1)?.candidates?.[0]?.finishReason]).toEqual([["STOP"], "STOP"]);
    expect(chunks.at(-1)?.usageMetadata).toEqual(whole.usageMetadata);
  });

  test("a chat keeps what was said, in one answer and in a stream", async () => {
    const { client } = await newCaller(served);
    const chat = client.chats.create({ model, config: { systemInstruction: "Be brief." } });
    const first = await chat.sendMessage({ message: "Hello there" });
    expect(first.text).toBe(says);
    const second = await Array.fromAsync(await chat.sendMessageStream({ message: "And now?" }));
    expect(textIn(second)).not.toBe("");
    const history = chat.getHistory(true);
    const joined = (role?: string) => ({
      role,
      text: history
        .filter((content) => content.role === role)
        .flatMap(({ parts = [] }) => parts.map(({ text }) => text))
        .join("|"),
    });
    expect(joined("user").text).toBe("Hello there|And now?");
    expect(joined("model").text.replaceAll("|", "")).toBe(says + textIn(second));
    const third = await chat.sendMessage({ message: "Thanks" });
    const heard = JSON.stringify(sent(served, target)).includes(JSON.stringify(says).slice(1, -1));
    const grown = (third.usageMetadata?.promptTokenCount ?? 0) > 2 * (first.usageMetadata?.totalTokenCount ?? 0);
    // The local model is no server whose requests could be seen.
    expect(target === local ? grown : heard).toBe(true);
  });

  test("maxOutputTokens ends an answer with MAX_TOKENS", async () => {
    const { client } = await newCaller(served);
    if (target === chatProvider)
      served.provider.respond({
        body: { choices: [{ index: 0, message: { role: "assistant", content: "Hel" }, finish_reason: "length" }] },
      });
    if (target === responsesProvider) served.provider.respond({ text: "Hel", incomplete: "max_output_tokens" });
    const answer = await client.models.generateContent({ ...asking(model), config: { maxOutputTokens: 2 } });
    expect(answer.candidates?.[0]?.finishReason).toBe("MAX_TOKENS");
    const field: Readonly<Record<string, unknown>> = {
      "Google's": { generationConfig: { maxOutputTokens: 2 } },
      chat: { max_completion_tokens: 2 },
      responses: { max_output_tokens: 2 },
      messages: { max_tokens: 2 },
    };
    expect(sent(served, target)).toMatchObject(field[target.name] ?? {});
  });
});
