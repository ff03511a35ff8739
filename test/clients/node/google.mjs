import assert from "node:assert/strict";
import test from "node:test";
import { ApiError, FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai";

const { SERVICE_URL, SERVICE_KEY } = process.env;
const google = new GoogleGenAI({ apiKey: SERVICE_KEY, httpOptions: { baseUrl: SERVICE_URL } });
const models = ["local/chat", "google/gemini-2.5-flash", "gemini-2.5-flash", "openai/gpt-5.5"];

async function streamed(request) {
  const chunks = [];
  for await (const chunk of await google.models.generateContentStream(request)) chunks.push(chunk);
  return { text: chunks.map(({ text = "" }) => text).join(""), usage: chunks.at(-1)?.usageMetadata };
}

for (const model of models)
  test(`generateContent, whole and streamed: ${model}`, async () => {
    const request = { model, contents: "Good morning", config: { systemInstruction: "Be brief.", temperature: 0 } };
    const whole = await google.models.generateContent(request);
    assert.equal(whole.candidates[0].finishReason, "STOP");
    const { text, usage } = await streamed(request);
    assert.equal(text, whole.text);
    assert.equal(usage.totalTokenCount, whole.usageMetadata.totalTokenCount);
  });

test("a stream with pings before its first word", async () => {
  assert.match((await streamed({ model: "local/chat", contents: "slow:1800" })).text, /slow/);
});

const declaration = {
  name: "look_up",
  description: "The weather of a city",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};

for (const model of ["local/chat", "gemini-2.5-flash"])
  test(`a function's result goes back: ${model}`, async () => {
    const config = { tools: [{ functionDeclarations: [declaration] }] };
    const chat = google.chats.create({ model, config });
    const first = await chat.sendMessage({ message: 'look_up "Oslo"' });
    const [call] = first.functionCalls;
    assert.equal(call.name, "look_up");
    const result = { functionResponse: { id: call.id, name: call.name, response: { output: "rain" } } };
    assert.match((await chat.sendMessage({ message: [result] })).text, /rain/);
  });

test("a forced function", async () => {
  const answer = await google.models.generateContent({
    model: "local/chat",
    contents: 'The weather in "Oslo"?',
    config: {
      tools: [{ functionDeclarations: [declaration] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["look_up"] } },
    },
  });
  assert.deepEqual(answer.functionCalls[0].args, { city: "Oslo" });
});

test("an object by its schema", async () => {
  const { text } = await google.models.generateContent({
    model: "local/chat",
    contents: '"Oslo" has 7 degrees',
    config: {
      responseMimeType: "application/json",
      responseSchema: {
        type: Type.OBJECT,
        properties: { city: { type: Type.STRING }, degrees: { type: Type.NUMBER } },
        required: ["city", "degrees"],
      },
    },
  });
  assert.deepEqual(JSON.parse(text), { city: "Oslo", degrees: 7 });
});

test("an image", async () => {
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==";
  const contents = [{ inlineData: { mimeType: "image/png", data } }, { text: "What is it?" }];
  assert.match((await google.models.generateContent({ model: "local/chat", contents })).text, /I see/);
});

for (const model of models.slice(0, 3))
  test(`countTokens: ${model}`, async () => {
    assert.ok((await google.models.countTokens({ model, contents: "Good morning" })).totalTokens > 0);
  });

test("models: a list, and one", async () => {
  const names = [];
  for await (const { name } of await google.models.list({ config: { pageSize: 5 } })) names.push(name);
  assert.ok(names.includes("models/local/chat"));
  assert.equal((await google.models.get({ model: "local/chat" })).name, "models/local/chat");
});

test("errors are the client's own", async () => {
  const failing = (model, key = SERVICE_KEY) =>
    new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: SERVICE_URL } }).models.generateContent({
      model,
      contents: "Hello",
    });
  for (const [call, status] of [
    [() => failing("gemini-none"), 404],
    [() => failing("local/chat", "live_wrong"), 401],
  ])
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.status, status);
      return true;
    });
});
