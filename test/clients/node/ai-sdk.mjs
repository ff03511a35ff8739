import assert from "node:assert/strict";
import test from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  embed,
  embedMany,
  generateImage,
  generateSpeech,
  generateText,
  isStepCount,
  Output,
  streamText,
  tool,
  transcribe,
} from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const { SERVICE_URL, SERVICE_KEY: apiKey } = process.env;
const openai = createOpenAI({ apiKey, baseURL: `${SERVICE_URL}/v1` });
const anthropic = createAnthropic({ apiKey, baseURL: `${SERVICE_URL}/v1` });
const google = createGoogle({ apiKey, baseURL: `${SERVICE_URL}/v1beta` });
const compatible = createOpenAICompatible({
  name: "service",
  apiKey,
  baseURL: `${SERVICE_URL}/v1`,
  includeUsage: true,
  supportsStructuredOutputs: true,
});

const local = {
  "openai responses": openai.responses("local/chat"),
  "openai chat": openai.chat("local/chat"),
  anthropic: anthropic("local/chat"),
  google: google("local/chat"),
  "openai-compatible": compatible("local/chat"),
};
const standIns = {
  "openai responses, native": openai.responses("gpt-5.5"),
  "openai chat, native": openai.chat("openai/gpt-4.1-mini"),
  "anthropic, native": anthropic("claude-sonnet-5"),
  "google, native": google("gemini-2.5-flash"),
  "google, converted to Claude": google("anthropic/claude-sonnet-5"),
};
const options = { maxRetries: 0 };

for (const [name, model] of Object.entries({ ...local, ...standIns }))
  test(`${name}: text and stream`, async () => {
    const request = { ...options, model, instructions: "Be brief.", prompt: "Good morning" };
    const whole = await generateText(request);
    assert.equal(whole.finishReason, "stop");
    assert.ok(whole.usage.inputTokens > 0 && whole.usage.outputTokens > 0);
    const stream = streamText(request);
    let text = "";
    for await (const part of stream.textStream) text += part;
    assert.equal(text, whole.text);
    assert.equal((await stream.usage).totalTokens, whole.usage.totalTokens);
  });

const schema = z.object({ city: z.string(), degrees: z.number() });
const lookUp = (cities) =>
  tool({
    description: "The weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      cities.push(city);
      return { weather: "rain" };
    },
  });

for (const [name, model] of Object.entries(local)) {
  test(`${name}: an object, whole and streamed`, async () => {
    const request = { ...options, model, prompt: '"Oslo" has 7 degrees', output: Output.object({ schema }) };
    assert.deepEqual((await generateText(request)).output, { city: "Oslo", degrees: 7 });
    assert.deepEqual(await streamText(request).output, { city: "Oslo", degrees: 7 });
  });
  test(`${name}: a ping before the first word`, async () => {
    let error;
    const stream = streamText({
      ...options,
      model,
      prompt: "slow:1800",
      onError: (event) => {
        error = event.error;
      },
    });
    const text = await stream.text;
    assert.equal(error, undefined);
    assert.match(text, /slow/);
  });
}

async function checkTools(model, more = {}) {
  const cities = [];
  const request = {
    ...options,
    ...more,
    model,
    prompt: 'look_up "Oslo"',
    tools: { look_up: lookUp(cities) },
    stopWhen: isStepCount(3),
  };
  const whole = await generateText(request);
  assert.equal(whole.steps.length, 2);
  assert.ok(whole.text.length > 0);
  assert.equal(await streamText(request).text, whole.text);
  assert.equal(cities.length, 2);
}

const { "anthropic, native": claude, "google, native": gemini, "openai responses, native": gpt } = standIns;
for (const [name, model] of Object.entries({ ...local, "anthropic, native": claude, "google, native": gemini }))
  test(`${name}: tools until the answer`, () => checkTools(model));

test("openai responses, native: tools until the answer, without storing", () =>
  checkTools(gpt, { providerOptions: { openai: { store: false } } }));

// The client's default refers to a reasoning model's items by their ids.
test("openai responses, native: tools until the answer, by reference", () => checkTools(gpt));

test("openai responses, native: three turns, by reference", async () => {
  const messages = [];
  for (const content of ["Good morning", "And now?", "The end"]) {
    messages.push({ role: "user", content });
    const { text, response } = await generateText({ ...options, model: gpt, messages });
    assert.ok(text.length > 0);
    messages.push(...response.messages);
  }
});

test("an image as input, in each format", async () => {
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==";
  const content = [
    { type: "text", text: "What is it?" },
    { type: "file", mediaType: "image/png", data: Buffer.from(data, "base64") },
  ];
  for (const model of Object.values(local))
    assert.match((await generateText({ ...options, model, messages: [{ role: "user", content }] })).text, /I see/);
});

for (const [name, provider] of [
  ["openai", openai],
  ["openai-compatible", compatible],
]) {
  test(`${name}: embeddings`, async () => {
    const model = provider.embeddingModel("local/embeddings");
    const { embedding, usage } = await embed({ ...options, model, value: "one" });
    const { embeddings } = await embedMany({ ...options, model, values: ["one", "two"] });
    assert.deepEqual(embeddings[0], embedding);
    assert.ok(usage.tokens > 0);
  });
  test(`${name}: images`, async () => {
    const { images } = await generateImage({
      ...options,
      model: provider.imageModel("local/image"),
      prompt: "a fjord",
      size: "256x256",
      n: 2,
    });
    assert.deepEqual(
      images.map(({ mediaType }) => mediaType),
      ["image/png", "image/png"],
    );
  });
}

test("openai: more embeddings than a call accepts are refused with a remedy", async () => {
  const model = openai.embeddingModel("local/embeddings");
  const values = Array.from({ length: 300 }, (_, number) => `text ${number}`);
  await assert.rejects(embedMany({ ...options, model, values }), /at most 256 inputs.*batch size/);
});

test("openai: images from an image, in base64 as its image models answer", async () => {
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==";
  const { image } = await generateImage({
    ...options,
    model: openai.imageModel("local/image"),
    prompt: { text: "at night", images: [Buffer.from(data, "base64")] },
  });
  assert.equal(image.mediaType, "image/png");
});

test("google: embeddings", async () => {
  const model = google.embeddingModel("local/embeddings");
  const { embedding } = await embed({ ...options, model, value: "one" });
  const { embeddings } = await embedMany({ ...options, model, values: ["one", "two"] });
  assert.deepEqual(embeddings[0], embedding);
});

test("openai: speech", async () => {
  const request = { ...options, model: openai.speech("local/speech"), text: "Good morning" };
  for (const more of [{}, { speed: 1.5, instructions: "Speak softly." }]) {
    const { audio } = await generateSpeech({ ...request, ...more });
    assert.match(audio.mediaType, /^audio\//);
  }
});

test("openai: transcription", async () => {
  const head = Buffer.from("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=", "base64");
  const silence = Buffer.concat([head, Buffer.alloc(16_000)]);
  const request = { ...options, model: openai.transcription("local/transcription"), audio: silence };
  for (const openai of [{}, { temperature: 0.2, timestampGranularities: ["word"] }]) {
    const { text } = await transcribe({ ...request, providerOptions: { openai } });
    assert.equal(typeof text, "string");
  }
});

test("errors are the client's own, with our message, in each format", async () => {
  const models = [
    openai.responses("local/none"),
    openai.chat("local/none"),
    anthropic("local/none"),
    google("local/none"),
    compatible("local/none"),
  ];
  for (const model of models)
    await assert.rejects(generateText({ ...options, model, prompt: "Hello" }), (error) => {
      assert.ok(APICallError.isInstance(error));
      assert.equal(error.statusCode, 404);
      assert.match(error.message, /local\/none/);
      return true;
    });
});
