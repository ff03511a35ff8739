import { type GenerateContentResponse, HarmBlockThreshold, HarmCategory } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chatProvider,
  geminiService,
  google,
  local,
  messagesProvider,
  newCaller,
  others,
  ownName,
  responsesProvider,
  sent,
} from "../support/gemini-client-setup.ts";

const served = geminiService();

const { HARM_CATEGORY_HARASSMENT: harassment } = HarmCategory;
const safetySettings = [{ category: harassment, threshold: HarmBlockThreshold.BLOCK_NONE }];

const ignoredBy = ({ sdkHttpResponse }: GenerateContentResponse) => sdkHttpResponse?.headers?.["x-ignored-params"];

describe("what is asked for reaches each provider in its own words", () => {
  const request = {
    contents: [
      { role: "user", parts: [{ text: "Hello" }, { text: "there" }] },
      { role: "model", parts: [{ text: "Hi." }] },
      { role: "user", parts: [{ text: "And now?" }] },
    ],
    config: {
      systemInstruction: "Be brief.",
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stopSequences: ["END", "STOP"],
      seed: 7,
      maxOutputTokens: 100,
    },
  };

  test("Google's: untouched", async () => {
    const { client } = await newCaller(served);
    const answer = await client.models.generateContent({ model: ownName, ...request });
    const { systemInstruction, ...generationConfig } = request.config;
    expect(sent(served, google)).toEqual({
      contents: request.contents,
      systemInstruction: { role: "user", parts: [{ text: systemInstruction }] },
      generationConfig,
      store: false,
    });
    expect(ignoredBy(answer)).toBeUndefined();
  });

  const user = (...texts: string[]) => ({
    role: "user",
    content: texts.length === 1 ? texts[0] : texts.map((text) => ({ type: "text", text })),
  });

  test("chat", async () => {
    const { client } = await newCaller(served);
    const answer = await client.models.generateContent({ model: chatProvider.model, ...request });
    expect(sent(served, chatProvider)).toEqual({
      model: "gpt-4.1-mini",
      messages: [
        { role: "system", content: "Be brief." },
        user("Hello", "there"),
        { role: "assistant", content: "Hi." },
        user("And now?"),
      ],
      temperature: 0.5,
      top_p: 0.9,
      stop: ["END", "STOP"],
      seed: 7,
      max_completion_tokens: 100,
      store: false,
    });
    expect(ignoredBy(answer)).toBe("generationConfig.topK");
  });

  test("responses: without what it cannot do", async () => {
    const { client } = await newCaller(served);
    const { stopSequences: _, ...config } = request.config;
    const answer = await client.models.generateContent({ model: responsesProvider.model, ...request, config });
    expect(sent(served, responsesProvider)).toMatchObject({
      model: "gpt-5.5",
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 100,
      store: false,
    });
    expect(ignoredBy(answer)).toBe("generationConfig.topK, generationConfig.seed");
    const refused = client.models.generateContent({ model: responsesProvider.model, ...request });
    await expect(refused).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("generationConfig.stopSequences"),
    });
  });

  test("messages: sampling only where the model takes it", async () => {
    const { client } = await newCaller(served);
    const answer = await client.models.generateContent({ model: messagesProvider.model, ...request });
    expect(sent(served, messagesProvider)).toEqual({
      model: "claude-sonnet-5",
      system: expect.anything(),
      messages: expect.anything(),
      stop_sequences: ["END", "STOP"],
      max_tokens: 100,
    });
    expect(JSON.stringify(sent(served, messagesProvider)["system"])).toContain("Be brief.");
    expect(ignoredBy(answer)?.split(", ")).toEqual(
      expect.arrayContaining(["generationConfig.topK", "generationConfig.seed"]),
    );
  });
});

describe("hints that do not cross are named", () => {
  test.each([local, ...others])("$name", async (target) => {
    const { client } = await newCaller(served);
    const config = { safetySettings, topK: 3, mediaResolution: "MEDIA_RESOLUTION_LOW", labels: {} } as object;
    const answer = await client.models.generateContent({ ...asking(target.model), config });
    const ignored = answer.sdkHttpResponse?.headers?.["x-ignored-params"]?.split(", ");
    const expected = ["safetySettings", "generationConfig.topK", "generationConfig.mediaResolution"];
    expect(ignored).toEqual(expect.arrayContaining(expected));
    expect(JSON.stringify(sent(served, target))).not.toMatch(/HARM_CATEGORY|MEDIA_RESOLUTION/);
    const chunks = await Array.fromAsync(
      await client.models.generateContentStream({ ...asking(target.model), config }),
    );
    expect(chunks[0]?.sdkHttpResponse?.headers?.["x-ignored-params"]?.split(", ")).toEqual(ignored);
  });
});

describe("candidateCount", () => {
  test.each([local, google, chatProvider])("$name: as many candidates, whole and in a stream", async ({ model }) => {
    const { client } = await newCaller(served);
    const request = { ...asking(model), config: { candidateCount: 3 } };
    const whole = await client.models.generateContent(request);
    const said = whole.candidates?.map(({ index, content }) => [index, content?.parts?.[0]?.text]);
    expect(said?.map(([index]) => index)).toEqual([0, 1, 2]);
    const texts = new Map<number, string>();
    for await (const { candidates } of await client.models.generateContentStream(request))
      for (const { index = 0, content } of candidates ?? [])
        texts.set(index, (texts.get(index) ?? "") + (content?.parts ?? []).map(({ text = "" }) => text).join(""));
    expect([...texts]).toEqual(said);
  });

  test.each([responsesProvider, messagesProvider])("$name cannot: refused by name, no charge", async ({ model }) => {
    const { client, customer } = await newCaller(served);
    await expect(
      client.models.generateContent({ ...asking(model), config: { candidateCount: 2 } }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining("generationConfig.candidateCount") });
    await served.service.settled();
    expect(await customer.available()).toBe("10.00");
  });
});
