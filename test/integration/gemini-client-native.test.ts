// cspell:ignore Agenerate fchat
import { FunctionCallingConfigMode, HarmBlockThreshold, HarmCategory, Type } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  chatProvider,
  costOf,
  formatsService,
  geminiName,
  geminiProvider,
  local,
  messagesProvider,
  sent,
} from "../support/formats-service.ts";
import { asking, clientOf, newCaller } from "../support/gemini-client-setup.ts";
import { uploaded, wavOf } from "../support/generation-setup.ts";
import { entriesOf, entryOf, nanoUsd } from "../support/service-setup.ts";

const served = formatsService();

describe("paths and keys", () => {
  test.each([
    geminiName,
    geminiProvider.model,
    local.model,
    chatProvider.model,
    messagesProvider.model,
    `models/${local.model}`,
  ])("apiVersion v1 and v1beta: %s", async (model) => {
    for (const apiVersion of ["v1", "v1beta"]) {
      const { client } = await newCaller(served, "10", { apiVersion });
      const answer = await client.models.generateContent(asking(model));
      expect(answer.text).toBeTruthy();
    }
  });

  const body = { contents: [{ parts: [{ text: "Hello there" }] }] };

  test.each([
    "/v1beta/local/chat:generateContent",
    "/v1beta/models/local/chat:generateContent",
    "/v1beta/models/local%2Fchat:generateContent",
    "/v1beta/local%2fchat:generateContent",
    "/v1/models/local/chat:generateContent",
    "/v1/local%2Fchat:generateContent",
    "/v1beta/models/local/chat%3AgenerateContent",
    `/v1beta/${geminiName}:generateContent`,
    `/v1beta/models/google%2F${geminiName}:generateContent`,
  ])("%s, with the key in each of its places", async (path) => {
    const customer = await served.service.account("1");
    const { key } = customer;
    const send = (query: string, headers: Record<string, string>) =>
      fetch(`${served.service.baseUrl}${path}${query}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const answers = await Promise.all([
      send("", { "x-goog-api-key": key }),
      send(`?key=${key}`, {}),
      send("", { authorization: `Bearer ${key}` }),
      send("?alt=json&%24alt=json", { "x-goog-api-key": key }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (const answer of answers)
      expect(await answer.json()).toMatchObject({
        candidates: [{ content: { parts: [{ text: expect.any(String) }] } }],
      });
  });

  test.each(["alt=sse", "$alt=sse"])("a stream with %s has server-sent events", async (query) => {
    const customer = await served.service.account("1");
    const answer = await customer.post(`/v1beta/models/${geminiName}:streamGenerateContent?${query}`, body);
    expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(await answer.text()).toMatch(/^data: /);
  });

  test("a bare name is Google's alone", async () => {
    const { customer } = await newCaller(served);
    const calling = clientOf(served.service, customer).models.generateContent(asking("gpt-4.1-mini"));
    await expect(calling).rejects.toMatchObject({ status: 404 });
  });
});

const { HARM_CATEGORY_HARASSMENT: harassment } = HarmCategory;
const safetySettings = [{ category: harassment, threshold: HarmBlockThreshold.BLOCK_NONE }];

describe("requests and responses of the provider's own format", () => {
  test("the client's parameters reach the provider unchanged", async () => {
    const { client } = await newCaller(served);
    const contents = [
      { role: "user", parts: [{ text: "Hello" }, { text: "there" }] },
      { role: "model", parts: [{ text: "Hi." }] },
      { role: "user", parts: [{ text: "And now?" }] },
    ];
    const generationConfig = {
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stopSequences: ["END", "STOP"],
      seed: 7,
      maxOutputTokens: 100,
    };
    const toolFields = {
      tools: [{ functionDeclarations: [{ name: "f", description: "Does.", parameters: { type: Type.OBJECT } }] }],
      toolConfig: {
        functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["f"] },
      },
    };
    const config = { systemInstruction: "Be brief.", ...generationConfig, ...toolFields };
    const answer = await client.models.generateContent({ model: geminiName, contents, config });
    expect(sent(served, geminiProvider)).toEqual({
      contents,
      systemInstruction: { role: "user", parts: [{ text: "Be brief." }] },
      generationConfig,
      ...toolFields,
      store: false,
    });
    expect(answer.sdkHttpResponse?.headers?.["x-ignored-params"]).toBeUndefined();
  });

  test("every field of a request passes through, known or not, but store is false", async () => {
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
    const response = await customer.post(`/v1beta/models/${geminiName}:generateContent`, body);
    // The mock refuses fields that the provider's documentation does not have.
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('Unknown name \\"labels\\"'),
    ]);
    expect(sent(served, geminiProvider)).toEqual({ ...body, store: false });
  });

  test.each([geminiName, geminiProvider.model])(
    "a response and each event of a stream pass through with the model as asked for: %s",
    async (model) => {
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
        responseId: "r",
        x_new: { a: 1 },
      };
      served.gemini.respond({ body: answer }, { events: [{ ...answer, usageMetadata: undefined }, answer] });
      const expected = { ...answer, modelVersion: model };
      const { usageMetadata: _, ...first } = expected;
      const customer = await served.service.account("1");
      const send = (verb: string) =>
        customer.post(`/v1beta/models/${model}:${verb}`, { contents: [{ parts: [{ text: "Hi" }] }] });
      expect(await (await send("generateContent")).json()).toEqual(expected);
      expect(await (await send("streamGenerateContent?alt=sse")).text()).toBe(
        [first, expected].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""),
      );
    },
  );

  test.each([
    ["blocked", { blockReason: "SAFETY" }],
    ["prohibited", { blockReason: "PROHIBITED_CONTENT" }],
  ])("a prompt that is %s: promptFeedback, no candidate, the prompt is charged", async (_, script) => {
    const { client, customer } = await newCaller(served);
    served.gemini.respond(script, script);
    const answer = await client.models.generateContent(asking(geminiName));
    expect(answer.promptFeedback).toEqual(script);
    expect(answer.candidates).toBeUndefined();
    const prompt = answer.usageMetadata?.promptTokenCount ?? 0;
    const [entry] = await entriesOf(served.service, customer);
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(geminiProvider.model, { input: prompt }));
    const chunks = await Array.fromAsync(await client.models.generateContentStream(asking(geminiName)));
    expect(chunks.map(({ promptFeedback }) => promptFeedback)).toEqual([script]);
  });
});

test("thought signatures come from the provider, and go back to it unchanged", async () => {
  const { client } = await newCaller(served);
  const name = "get_weather";
  const parameters = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] };
  const config = { tools: [{ functionDeclarations: [{ name, description: "The weather of a city", parameters }] }] };
  const chat = client.chats.create({ model: geminiProvider.model, config });
  const first = await chat.sendMessage({ message: name });
  const part = first.candidates?.[0]?.content?.parts?.[0];
  expect(part).toMatchObject({ thoughtSignature: "c2lnbmF0dXJl", functionCall: { name } });
  const response = { output: "rain" };
  await chat.sendMessage({ message: [{ functionResponse: { id: part?.functionCall?.id ?? "", name, response } }] });
  const [, model] = sent(served, geminiProvider)["contents"] as { parts: object[] }[];
  expect(model?.parts).toEqual([part]);
  const contents = [
    { role: "user", parts: [{ text: "weather?" }] },
    {
      role: "model",
      parts: [
        { text: "Hm.", thought: true },
        { text: "Let me see.", thoughtSignature: "c2lnbmF0dXJl" },
        { functionCall: { id: "a", name, args: { city: "Oslo" } }, thoughtSignature: "c2lnbmF0dXJl" },
      ],
    },
    { role: "user", parts: [{ functionResponse: { id: "a", name, response } }] },
  ];
  await client.models.generateContent({ model: geminiProvider.model, contents, config });
  expect(sent(served, geminiProvider)["contents"]).toEqual(contents);
});

test("sound passes through by its bytes, by a link and as an upload", async () => {
  const { client, customer } = await newCaller(served);
  const inline = (data: string) => ({ inlineData: { mimeType: "audio/wav", data } });
  const link = { fileData: { mimeType: "audio/mp3", fileUri: "https://example.com/a.mp3" } };
  const sound = inline(wavOf(1).toString("base64"));
  const upload = inline(await uploaded(served.service, customer, wavOf(1)));
  await client.models.generateContent({
    model: geminiName,
    contents: [{ role: "user", parts: [sound, link, upload] }],
  });
  expect(sent(served, geminiProvider)["contents"]).toEqual([{ role: "user", parts: [sound, link, sound] }]);
});

const embeddingModel = "google/gemini-embedding-001";
const embeddingPriceNanoUsd = 150n;

test("embeddings: the provider's count is charged, else an estimate, marked as one", async () => {
  const customer = await served.service.account("1");
  const embeddings = [{ values: [1, 0] }, { values: [0, 1] }];
  const call = async (usageMetadata?: object) => {
    served.gemini.respond({ body: { embeddings, ...(usageMetadata && { usageMetadata }) } });
    const { data, request_id } = await customer.openai.embeddings
      .create({ model: embeddingModel, input: ["red apple", "blue sea"] })
      .withResponse();
    await served.service.settled();
    const { request, amount_usd } = await entryOf(served.service, request_id);
    expect(request.usage["input"]).toBe(data.usage.prompt_tokens);
    expect(nanoUsd(amount_usd)).toBe(-embeddingPriceNanoUsd * BigInt(data.usage.prompt_tokens));
    return { tokens: data.usage.prompt_tokens, estimated: request.estimated };
  };
  expect(await call({ promptTokenCount: 4 })).toEqual({ tokens: 4, estimated: false });
  const estimate = await call();
  expect(estimate.estimated).toBe(true);
  expect(estimate.tokens).toBeGreaterThan(0);
});
