import { Type } from "@google/genai";
import { describe, expect, test } from "vitest";
import { geminiService, google, newCaller, others, sent } from "../support/gemini-client-setup.ts";

const served = geminiService();

const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};

describe("thought signatures", () => {
  const conversation = (model: string) => ({
    model,
    contents: [
      { role: "user", parts: [{ text: "weather?" }] },
      {
        role: "model",
        parts: [
          { text: "Hm.", thought: true },
          { text: "Let me see.", thoughtSignature: "dGV4dA==" },
          { functionCall: { id: "a", name: "get_weather", args: { city: "Oslo" } }, thoughtSignature: "Y2FsbA==" },
        ],
      },
      { role: "user", parts: [{ functionResponse: { id: "a", name: "get_weather", response: { output: "rain" } } }] },
    ],
    config: { tools: [{ functionDeclarations: [weather] }] },
  });

  test("come from the provider, and go back to it unchanged", async () => {
    const { client } = await newCaller(served);
    const chat = client.chats.create({ model: google.model, config: { tools: [{ functionDeclarations: [weather] }] } });
    const first = await chat.sendMessage({ message: "get_weather" });
    const part = first.candidates?.[0]?.content?.parts?.[0];
    expect(part).toMatchObject({ thoughtSignature: "c2lnbmF0dXJl", functionCall: { name: "get_weather" } });
    await chat.sendMessage({
      message: [
        { functionResponse: { id: part?.functionCall?.id ?? "", name: "get_weather", response: { output: "rain" } } },
      ],
    });
    const [, model] = sent(served, google)["contents"] as { parts: object[] }[];
    expect(model?.parts).toEqual([part]);
    const { contents } = conversation(google.model);
    await client.models.generateContent(conversation(google.model));
    expect(sent(served, google)["contents"]).toEqual(contents);
  });

  test.each(others)("are left out for $name, and so are thoughts", async (target) => {
    const { client } = await newCaller(served);
    await client.models.generateContent(conversation(target.model));
    const body = JSON.stringify(sent(served, target));
    expect(body).toContain("Let me see.");
    expect(body).not.toMatch(/dGV4dA|Y2FsbA|signature|extra_content|Hm\./);
  });
});
