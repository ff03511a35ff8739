import { type GenerateContentResponse, HarmBlockThreshold, HarmCategory, type Part } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  chatProvider,
  deepseekModel,
  formatsService,
  geminiProvider,
  local,
  messagesProvider,
  others,
  responsesProvider,
  sent,
  targets,
} from "../support/formats-service.ts";
import { asking, newCaller } from "../support/gemini-client-setup.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";

const served = formatsService();
const safetySettings = [{ category: HarmCategory.HARM_CATEGORY_HARASSMENT, threshold: HarmBlockThreshold.BLOCK_NONE }];

const textIn = (chunks: readonly GenerateContentResponse[]) => chunks.map(({ text = "" }) => text).join("");

test.each(targets)("$name: a chat sends its history, whole and in a stream", async (target) => {
  const { model, says } = target;
  const { client } = await newCaller(served);
  const chat = client.chats.create({ model, config: { systemInstruction: "Be brief." } });
  const first = await chat.sendMessage({ message: "Hello there" });
  expect(first.text).toBe(says);
  const second = await Array.fromAsync(await chat.sendMessageStream({ message: "And now?" }));
  expect(textIn(second)).not.toBe("");
  const history = chat.getHistory(true);
  const joined = (role: string) =>
    history
      .filter((content) => content.role === role)
      .flatMap(({ parts = [] }) => parts.map(({ text }) => text))
      .join("");
  expect([joined("user"), joined("model")]).toEqual(["Hello thereAnd now?", says + textIn(second)]);
  const third = await chat.sendMessage({ message: "Thanks" });
  const heard = JSON.stringify(sent(served, target)).includes(JSON.stringify(says).slice(1, -1));
  const grown = (third.usageMetadata?.promptTokenCount ?? 0) > 2 * (first.usageMetadata?.totalTokenCount ?? 0);
  // Requests to the local model are not observable.
  expect(target === local ? grown : heard).toBe(true);
});

test.each([false, true])(
  "a model that demands its reasoning back gets it from the client's history, in a stream %s",
  async (stream) => {
    const { client } = await newCaller(served);
    const tools = [{ functionDeclarations: [{ name: "get_weather" }] }];
    const chat = client.chats.create({ model: deepseekModel, config: { tools } });
    const ask = async (message: Part[] | string) => {
      if (!stream) return [await chat.sendMessage({ message })];
      return Array.fromAsync(await chat.sendMessageStream({ message }));
    };
    const reasoning_content = "I need the weather.";
    const tool_calls = [
      { index: 0, id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } },
    ];
    const message = { role: "assistant", content: null, reasoning_content, tool_calls };
    const body = { choices: [{ index: 0, message, finish_reason: "tool_calls" }], usage: mockUsage() };
    const events = [
      mockChunk({ role: "assistant", reasoning_content: "I need " }),
      mockChunk({ reasoning_content: "the weather." }),
      mockChunk({ tool_calls }, "tool_calls"),
      mockChunk(undefined, null, { usage: mockUsage() }),
    ];
    served.provider.respond(stream ? { events } : { body });
    const called = await ask("How is the weather?");
    const [{ id, name = "" } = {}] = called.flatMap(({ functionCalls = [] }) => functionCalls);
    served.provider.always({ demandsReasoning: true });
    expect(textIn(await ask([{ functionResponse: { ...(id && { id }), name, response: { output: "Rain" } } }]))).toBe(
      chatProvider.says,
    );
    await ask("And tomorrow?");
    expect(sent(served, chatProvider)["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", reasoning_content, tool_calls: [{ function: { name: "get_weather" } }] },
      { role: "tool", content: "Rain" },
      { role: "assistant", content: chatProvider.says },
      { role: "user" },
    ]);
    // Google's own models get the conversation without that state.
    const contents = [...chat.getHistory(), { role: "user", parts: [{ text: "Well?" }] }];
    expect((await client.models.generateContent({ model: geminiProvider.model, contents })).text).toBe(
      "You said: Well?",
    );
  },
);

describe("ignored hints are named in x-ignored-params", () => {
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
  test.each([local, geminiProvider, chatProvider])(
    "$name: as many candidates, whole and in a stream",
    async ({ model }) => {
      const { client } = await newCaller(served);
      const request = { ...asking(model), config: { candidateCount: 3 } };
      const whole = await client.models.generateContent(request);
      const wholeTexts = whole.candidates?.map(({ index, content }) => [index, content?.parts?.[0]?.text]);
      expect(wholeTexts?.map(([index]) => index)).toEqual([0, 1, 2]);
      const texts = new Map<number, string>();
      for await (const { candidates } of await client.models.generateContentStream(request))
        for (const { index = 0, content } of candidates ?? [])
          texts.set(index, (texts.get(index) ?? "") + (content?.parts ?? []).map(({ text = "" }) => text).join(""));
      expect([...texts]).toEqual(wholeTexts);
    },
  );

  test.each([responsesProvider, messagesProvider])("$name cannot: refused by name, no charge", async ({ model }) => {
    const { client, customer } = await newCaller(served);
    await expect(
      client.models.generateContent({ ...asking(model), config: { candidateCount: 2 } }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining("generationConfig.candidateCount") });
    await served.service.settled();
    expect(await customer.available()).toBe("10.00");
  });
});

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

  test.each([geminiProvider, ...others])(
    "$name: thoughts are in the answer only with includeThoughts",
    async (target) => {
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
      const hidden = await ask(false);
      expect(hidden).toEqual(shown.map(({ text }) => ({ thought: "", text })));
    },
  );
});

test("tools that the provider runs are refused by name for every model", async () => {
  const { client, customer } = await newCaller(served);
  for (const { model } of targets)
    for (const field of ["googleSearch", "codeExecution", "urlContext"])
      await expect(
        client.models.generateContent({ ...asking(model), config: { tools: [{ [field]: {} }] } }),
      ).rejects.toMatchObject({ status: 400, message: expect.stringContaining(`tools[0].${field}`) });
  await served.service.settled();
  expect(await customer.available()).toBe("10.00");
});
