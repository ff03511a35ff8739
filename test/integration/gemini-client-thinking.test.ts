import { ThinkingLevel } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  geminiService,
  google,
  messagesProvider,
  newCaller,
  others,
  sent,
} from "../support/gemini-client-setup.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";

const served = geminiService();

describe("thinking", () => {
  const thought = "Let me think about it.";
  const scripts: Readonly<Record<string, () => void>> = {
    chat: () => {
      const message = { role: "assistant", content: "Hi.", reasoning_content: thought };
      served.provider.respond(
        { body: { choices: [{ index: 0, message, finish_reason: "stop" }], usage: mockUsage() } },
        {
          events: [
            mockChunk({ role: "assistant", content: "" }),
            mockChunk({ reasoning_content: thought }),
            mockChunk({ content: "Hi." }),
            mockChunk({}, "stop"),
            mockChunk(undefined, null, { usage: mockUsage() }),
          ],
        },
      );
    },
  };
  const asked: Readonly<Record<string, object>> = {
    "Google's": { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 8_192 } } },
    chat: { reasoning_effort: "medium" },
    responses: { reasoning: { effort: "medium" } },
    messages: { thinking: { type: "adaptive" }, output_config: { effort: "medium" } },
  };

  test.each([google, ...others])("$name: asked for in its words; shown only to who asks to see it", async (target) => {
    const { client } = await newCaller(served);
    const ask = async (includeThoughts: boolean) => {
      const request = {
        ...asking(target.model),
        config: { thinkingConfig: { includeThoughts, thinkingBudget: 8_192 } },
      };
      scripts[target.name]?.();
      const whole = await client.models.generateContent(request);
      const chunks = await Array.fromAsync(await client.models.generateContentStream(request));
      return [[whole], chunks].map((answers) => {
        const parts = answers.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
        const joined = (thoughts: boolean) =>
          parts.map((part) => ((part.thought ?? false) === thoughts ? (part.text ?? "") : "")).join("");
        return { thought: joined(true), text: joined(false) };
      });
    };
    const shown = await ask(true);
    expect(shown[0]).toEqual({ thought, text: expect.stringMatching(/H/) });
    expect(shown[1]).toEqual(shown[0]);
    expect(sent(served, target)).toMatchObject(asked[target.name] ?? {});
    const hidden = await ask(false);
    expect(hidden).toEqual(shown.map(({ text }) => ({ thought: "", text })));
  });

  test("a level is an effort", async () => {
    const { client } = await newCaller(served);
    const config = { thinkingConfig: { thinkingLevel: ThinkingLevel.LOW } };
    for (const target of others) await client.models.generateContent({ ...asking(target.model), config });
    expect(sent(served, messagesProvider)).toMatchObject({ output_config: { effort: "low" } });
    expect(served.provider.requests.map(({ body }) => body["reasoning_effort"] ?? body["reasoning"])).toEqual([
      "low",
      { effort: "low" },
    ]);
  });
});
