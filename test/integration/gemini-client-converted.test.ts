import {
  type CallableTool,
  type FunctionCall,
  FunctionCallingConfigMode,
  type GenerateContentResponse,
  HarmBlockThreshold,
  HarmCategory,
  type Part,
  Type,
} from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chargeOf,
  chatProvider,
  costOf,
  deepseekModel,
  geminiService,
  google,
  local,
  messagesProvider,
  newCaller,
  others,
  responsesProvider,
  scriptChatCalls,
  sent,
  type Target,
  targets,
} from "../support/gemini-client-setup.ts";
import { pngOf, uploaded, wavOf } from "../support/generation-setup.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";

const served = geminiService();
const safetySettings = [{ category: HarmCategory.HARM_CATEGORY_HARASSMENT, threshold: HarmBlockThreshold.BLOCK_NONE }];

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
    const { promptTokenCount: input = 0, candidatesTokenCount = 0, totalTokenCount } = answer.usageMetadata ?? {};
    const output = candidatesTokenCount + (answer.usageMetadata?.thoughtsTokenCount ?? 0);
    expect(totalTokenCount).toBe(input + output);
    expect(Math.min(input, candidatesTokenCount)).toBeGreaterThan(0);
    expect(await chargeOf(served.service, customer)).toBe(costOf(model, { input, output }));
  });

  test("generateContentStream: the chunks make up the whole answer; the last has finish reason and usage", async () => {
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

  test("a chat sends its history, whole and in a stream", async () => {
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
    // Requests to the local model are not observable.
    expect(target === local ? grown : heard).toBe(true);
  });

  test("maxOutputTokens ends an answer with MAX_TOKENS", async () => {
    const { client } = await newCaller(served);
    // The minimum that the interface accepts.
    const cap = target === responsesProvider ? 16 : 2;
    if (target === chatProvider)
      served.provider.respond({
        body: { choices: [{ index: 0, message: { role: "assistant", content: "Hel" }, finish_reason: "length" }] },
      });
    if (target === responsesProvider) served.provider.respond({ text: "Hel", incomplete: "max_output_tokens" });
    const answer = await client.models.generateContent({ ...asking(model), config: { maxOutputTokens: cap } });
    expect(answer.candidates?.[0]?.finishReason).toBe("MAX_TOKENS");
    const field: Readonly<Record<string, unknown>> = {
      "Google's": { generationConfig: { maxOutputTokens: cap } },
      chat: { max_completion_tokens: cap },
      responses: { max_output_tokens: cap },
      messages: { max_tokens: cap },
    };
    expect(sent(served, target)).toMatchObject(field[target.name] ?? {});
  });
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
    expect((await client.models.generateContent({ model: google.model, contents })).text).toBe("You said: Well?");
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
  test.each([local, google, chatProvider])("$name: as many candidates, whole and in a stream", async ({ model }) => {
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

describe("structured output", () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer" } },
    required: ["name", "age"],
  };
  const capitals = {
    type: "OBJECT",
    properties: { name: { type: "STRING" }, age: { type: "INTEGER" } },
    required: ["name", "age"],
  };
  const ada = { name: "Ada", age: 36 };

  describe.each(targets)("$name", (target) => {
    test.each([
      ["responseSchema", { responseSchema: capitals }],
      ["responseJsonSchema", { responseJsonSchema: schema }],
    ])("%s: the answer fits", async (_, field) => {
      const { client } = await newCaller(served);
      if (target === chatProvider) served.provider.always({ text: JSON.stringify(ada) });
      const config = { responseMimeType: "application/json", ...field } as object;
      const request = { model: target.model, contents: 'I met "Ada", who is 36.', config };
      const answer = await client.models.generateContent(request);
      const parsed = JSON.parse(answer.text ?? "") as object;
      expect(parsed).toEqual({ name: expect.any(String), age: expect.any(Number) });
      const chunks = await Array.fromAsync(await client.models.generateContentStream(request));
      expect(JSON.parse(textIn(chunks))).toEqual(parsed);
    });
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

  test.each([google, ...others])("$name: thoughts are in the answer only with includeThoughts", async (target) => {
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
  });
});

const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const time = { name: "get_time", parametersJsonSchema: schema };
const both = [{ functionDeclarations: [weather, time] }];
const bothNamed = 'get_weather and get_time of "Oslo" and "Oslo"';

const callsOf = (calls: readonly FunctionCall[] = []) => calls.map(({ name, args }) => [name, args]);
const callsIn = (chunks: readonly GenerateContentResponse[]) =>
  chunks.flatMap(({ functionCalls = [] }) => functionCalls);
const cityOf = (target: Target) => (target === local || target === chatProvider ? "Oslo" : "mock");

describe.each(targets)("$name", (target) => {
  const { model } = target;

  test("parallel calls, whole and in a stream, have distinct ids and end with STOP", async () => {
    const { client } = await newCaller(served);
    if (target === chatProvider) scriptChatCalls(served, ["get_weather", "get_time"]);
    const request = { ...asking(model, bothNamed), config: { tools: both } };
    const whole = await client.models.generateContent(request);
    const args = { city: cityOf(target) };
    expect(callsOf(whole.functionCalls)).toEqual([
      ["get_weather", args],
      ["get_time", args],
    ]);
    expect(new Set(whole.functionCalls?.map(({ id }) => id)).size).toBe(2);
    expect(whole.functionCalls?.every(({ id }) => typeof id === "string" && id !== "")).toBe(true);
    expect(whole.candidates?.[0]?.finishReason).toBe("STOP");
    if (target === chatProvider) scriptChatCalls(served, ["get_weather", "get_time"], { stream: true });
    const chunks = await Array.fromAsync(await client.models.generateContentStream(request));
    expect(callsOf(callsIn(chunks))).toEqual(callsOf(whole.functionCalls));
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe("STOP");
  });

  test("automatic calling: the client runs the function and sends its result", async () => {
    const { client } = await newCaller(served);
    if (target === chatProvider) scriptChatCalls(served, ["get_weather"]);
    const ran: unknown[] = [];
    const tool: CallableTool = {
      tool: () => Promise.resolve({ functionDeclarations: [weather] }),
      callTool: (calls) => {
        ran.push(...calls.map(({ args }) => args));
        return Promise.resolve(
          calls.map(({ id, name }) => ({
            functionResponse: { ...(id && { id }), ...(name && { name }), response: { output: "rain" } },
          })),
        );
      },
    };
    const answer = await client.models.generateContent({
      ...asking(model, 'get_weather of "Oslo"'),
      config: { tools: [tool] },
    });
    expect(ran).toEqual([{ city: cityOf(target) }]);
    expect(answer.text).toMatch(target === chatProvider || target === responsesProvider ? /Hello/ : /rain/);
    expect(answer.automaticFunctionCallingHistory?.map(({ role }) => role)).toEqual(["user", "model", "user"]);
  });
});

test("local: reads results by name and order", async () => {
  const { client } = await newCaller(served);
  const call = (city: string) => ({ functionCall: { name: "get_weather", args: { city } } });
  const result = (response: Record<string, unknown>) => ({ functionResponse: { name: "get_weather", response } });
  const contents = [
    { role: "user", parts: [{ text: "weather?" }] },
    { role: "model", parts: [call("Oslo"), call("Rome")] },
    { role: "user", parts: [result({ output: "rain" }), result({ sky: "sun", degrees: 30 })] },
  ];
  const answer = await client.models.generateContent({ model: local.model, contents, config: { tools: both } });
  expect(answer.text).toMatch(/get_weather returned: rain\nget_weather returned: .*sun/);
});

test("local: calls the function that it must call", async () => {
  const { client } = await newCaller(served);
  const { ANY, AUTO, NONE } = FunctionCallingConfigMode;
  const modes = [{ mode: AUTO }, { mode: NONE }, { mode: ANY }, { mode: ANY, allowedFunctionNames: ["get_time"] }];
  const called = await Promise.all(
    modes.map(async (functionCallingConfig) => {
      const config = { tools: both, toolConfig: { functionCallingConfig } };
      const { functionCalls } = await client.models.generateContent({ ...asking(local.model), config });
      return functionCalls?.map(({ name }) => name) ?? [];
    }),
  );
  expect(called).toEqual([[], [], ["get_weather"], ["get_time"]]);
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

test.each([responsesProvider, messagesProvider])("$name: a stream of one forced call", async ({ model }) => {
  const { client } = await newCaller(served);
  const chunks = await Array.fromAsync(
    await client.models.generateContentStream({
      ...asking(model),
      config: {
        tools: both,
        toolConfig: {
          functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["get_time"] },
        },
      },
    }),
  );
  expect(callsOf(callsIn(chunks))).toEqual([["get_time", { city: "mock" }]]);
});

const base64 = (bytes: Buffer) => bytes.toString("base64");
const image = base64(pngOf(30, 20));
const pdf = base64(Buffer.from("%PDF-1.4 mock"));
const wav = base64(wavOf(1));
const inline = (mimeType: string, data: string): Part => ({ inlineData: { mimeType, data } });
const linked = (mimeType: string, fileUri: string): Part => ({ fileData: { mimeType, fileUri } });
const imageLink = "https://example.com/cat.png";
const pdfLink = "https://example.com/paper.pdf";

const request = (model: string, ...parts: readonly Part[]) => ({
  model,
  contents: [{ role: "user", parts: [{ text: "What is this?" }, ...parts] }],
});

/** The parts of the user's message after the question, as the provider received them. */
function partsAt(target: Target): unknown {
  const body = sent(served, target) as Record<string, { content?: unknown[]; parts?: unknown[] }[]>;
  const [message] = body["contents"] ?? body["messages"] ?? body["input"] ?? [];
  return (message?.parts ?? message?.content ?? []).slice(1);
}

const imageFields: Readonly<Record<string, object>> = {
  "Google's": inline("image/png", image),
  chat: { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } },
  responses: { type: "input_image", image_url: `data:image/png;base64,${image}` },
  messages: { type: "image", source: { type: "base64", media_type: "image/png", data: image } },
};

test.each([google, ...others])("$name: uploads reach the provider as their bytes, in either field", async (target) => {
  const { client, customer } = await newCaller(served);
  const id = await uploaded(served.service, customer, pngOf(30, 20));
  for (const part of [inline("image/png", id), linked("image/png", id)]) {
    await client.models.generateContent(request(target.model, part));
    expect(partsAt(target)).toMatchObject([imageFields[target.name]]);
    expect(JSON.stringify(sent(served, target))).not.toContain(id);
  }
});

test("local describes images, by their bytes and as uploads, and names links", async () => {
  const { client, customer } = await newCaller(served);
  const id = await uploaded(served.service, customer, pngOf(5, 4));
  const parts = [inline("image/png", image), linked("image/png", imageLink), linked("image/png", id)];
  const { text } = await client.models.generateContent(request(local.model, ...parts));
  expect(text).toMatch(/PNG image of 30 x 20 pixels(.|\n)*https:\/\/example\.com\/cat\.png(.|\n)*PNG image of 5 x 4/);
});

describe("unsupported content is refused by the caller's name for it, and costs nothing", () => {
  const at = (field: string) => `contents[0].parts[1].${field}`;
  const textOnly: Target = { name: "a model of text", model: deepseekModel, says: "" };
  const rows: readonly (readonly [readonly Target[], Part, string])[] = [
    [[textOnly, ...others], inline("audio/wav", wav), at("inlineData")],
    [[textOnly], inline("application/pdf", pdf), at("inlineData")],
    [[textOnly], linked("application/pdf", pdfLink), at("fileData")],
    [
      targets,
      linked("image/png", "https://generativelanguage.googleapis.com/v1beta/files/abc"),
      at("fileData.fileUri"),
    ],
    [targets, linked("image/png", "gs://bucket/object"), at("fileData.fileUri")],
    [targets, { executableCode: { code: "1", id: "x" } } as Part, at("executableCode")],
  ];
  const cases = rows.flatMap(([refusing, part, field]) =>
    refusing.map(({ name, model }) => ({ name, model, part, field, shown: JSON.stringify(part).slice(0, 60) })),
  );

  test.each(cases)("$name: $shown", async ({ model, part, field }) => {
    const { client, customer } = await newCaller(served);
    await expect(client.models.generateContent(request(model, part))).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(field),
    });
    await served.service.settled();
    expect(await customer.available()).toBe("10.00");
    expect([served.gemini, served.provider, served.anthropic].flatMap(({ requests }) => requests)).toEqual([]);
  });
});

describe("refusals", () => {
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
