import { FinishReason, HarmBlockThreshold, HarmCategory } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chargeOf,
  costOf,
  geminiService,
  google,
  nativeModel,
  newCaller,
  others,
  ownName,
  sent,
} from "../support/gemini-client-setup.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";

const served = geminiService();
const { HARM_CATEGORY_HARASSMENT: harassment } = HarmCategory;
const safetySettings = [{ category: harassment, threshold: HarmBlockThreshold.BLOCK_NONE }];

describe("Google's own answer passes untouched", () => {
  test("all fields of the request, known here or not, but for what is kept at the provider", async () => {
    const customer = await served.service.account("10");
    const body = {
      contents: [{ role: "user", parts: [{ text: "Hello ü", partMetadata: { a: 1 } }] }],
      systemInstruction: { parts: [{ text: "Be brief." }] },
      safetySettings,
      labels: { team: "a" },
      generationConfig: {
        maxOutputTokens: 50,
        presencePenalty: 0.5,
        frequencyPenalty: -0.5,
        mediaResolution: "MEDIA_RESOLUTION_LOW",
        thinkingConfig: { includeThoughts: true, thinkingBudget: 64 },
        x_new: { deep: [1, null, "ü"] },
      },
      store: true,
    };
    const response = await customer.post(`/v1beta/models/${ownName}:generateContent`, body);
    // The stand-in knows what the provider's documentation names; more passes too, and is the provider's to refuse.
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('Unknown name \\"labels\\"'),
    ]);
    expect(sent(served, google)).toEqual({ ...body, store: false });
  });

  test("the answer, but for our model id; and each event of a stream", async () => {
    const candidate = {
      content: { role: "model", parts: [{ text: "Hi", thoughtSignature: "c2ln", x_part: 1 }] },
      finishReason: "STOP",
      index: 0,
      safetyRatings: [{ category: harassment, probability: "LOW" }],
      citationMetadata: { citations: [{ uri: "https://example.com" }] },
      avgLogprobs: -0.5,
    };
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 };
    const answer = {
      candidates: [candidate],
      usageMetadata,
      modelVersion: "own",
      responseId: "theirs",
      x_new: { a: 1 },
    };
    served.gemini.respond({ body: answer }, { events: [{ ...answer, usageMetadata: undefined }, answer] });
    const expected = { ...answer, modelVersion: nativeModel };
    const { usageMetadata: _, ...first } = expected;
    const customer = await served.service.account("1");
    const send = (verb: string) =>
      customer.post(`/v1beta/models/${ownName}:${verb}`, { contents: [{ parts: [{ text: "Hi" }] }] });
    expect(await (await send("generateContent")).json()).toEqual(expected);
    expect(await (await send("streamGenerateContent?alt=sse")).text()).toBe(
      [first, expected].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""),
    );
  });

  test("an answer that the provider could go on from is told without the means: the client takes what it has", async () => {
    const { client } = await newCaller(served);
    const candidate = {
      content: { role: "model", parts: [{ text: "So far" }] },
      finishReason: "CONTINUATION",
      index: 0,
    };
    const answer = { candidates: [{ ...candidate, continuationToken: "dG9rZW4=" }], responseId: "r" };
    const checkpoint = { candidates: [{ ...candidate, finishReason: undefined, continuationToken: "dG9rZW4=" }] };
    served.gemini.respond({ body: answer }, { events: [checkpoint, answer] });
    const whole = await client.models.generateContent(asking(ownName));
    expect(whole.candidates).toEqual([candidate]);
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(ownName)));
    expect(chunks.map(({ text }) => text)).toEqual(["So far", "So far"]);
    expect(served.gemini.requests).toHaveLength(2);
  });

  test.each([
    ["blocked", { blockReason: "SAFETY" }],
    ["blocked for what nobody may say", { blockReason: "PROHIBITED_CONTENT" }],
  ])("a prompt that is %s: promptFeedback, no candidate, the prompt is charged", async (_, script) => {
    const { client, customer } = await newCaller(served);
    served.gemini.respond(script, script);
    const answer = await client.models.generateContent(asking(ownName));
    expect(answer.promptFeedback).toEqual(script);
    expect(answer.candidates).toBeUndefined();
    const prompt = answer.usageMetadata?.promptTokenCount ?? 0;
    expect(await chargeOf(served.service, customer)).toBe(costOf(nativeModel, { input: prompt }));
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(ownName)));
    expect(chunks.map(({ promptFeedback }) => promptFeedback)).toEqual([script]);
  });

  test.each([
    FinishReason.SAFETY,
    FinishReason.RECITATION,
    FinishReason.MALFORMED_FUNCTION_CALL,
    FinishReason.MAX_TOKENS,
  ])("an end by %s", async (finishReason) => {
    const { client } = await newCaller(served);
    served.gemini.always({ finishReason, text: "so far" });
    const answer = await client.models.generateContent(asking(ownName));
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(ownName)));
    expect([answer, chunks.at(-1)].map((each) => each?.candidates?.[0]?.finishReason)).toEqual([
      finishReason,
      finishReason,
    ]);
  });
});

describe("ends of other providers", () => {
  const refusal = "I cannot help with that.";
  const scripts: Readonly<Record<string, () => void>> = {
    chat: () => {
      const message = { role: "assistant", content: null, refusal };
      served.provider.respond(
        { body: { choices: [{ index: 0, message, finish_reason: "stop" }], usage: mockUsage() } },
        {
          events: [
            mockChunk({ role: "assistant", refusal: "" }),
            mockChunk({ refusal }),
            mockChunk({}, "stop"),
            mockChunk(undefined, null, { usage: mockUsage() }),
          ],
        },
      );
    },
    responses: () => {
      const content = [{ type: "refusal", refusal }];
      served.provider.always({ output: [{ type: "message", role: "assistant", status: "completed", content }] });
    },
    messages: () => served.anthropic.always({ text: refusal, stopReason: "refusal" }),
  };

  test.each(others)("a refusal of $name ends with SAFETY", async ({ name, model }) => {
    const { client } = await newCaller(served);
    scripts[name]?.();
    const answer = await client.models.generateContent(asking(model));
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(model)));
    expect([answer, chunks.at(-1)].map((each) => each?.candidates?.[0]?.finishReason)).toEqual(["SAFETY", "SAFETY"]);
    expect([answer.text, chunks.map(({ text = "" }) => text).join("")]).toEqual([refusal, refusal]);
  });
});
