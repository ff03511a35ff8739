import { type CallableTool, type Content, type FunctionCall, type GenerateContentResponse, Type } from "@google/genai";
import { describe, expect, test } from "vitest";
import { pairsAt, scriptChatCalls } from "../support/gemini-client-calls.ts";
import {
  asking,
  chatProvider,
  geminiService,
  google,
  local,
  newCaller,
  others,
  responsesProvider,
  type Target,
  targets,
} from "../support/gemini-client-setup.ts";

const served = geminiService();

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

  test("parallel calls, whole and in a stream; each has an id of its own, and the answer ends with STOP", async () => {
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

  test("automatic calling: the client runs the function and asks again", async () => {
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

describe("results of calls", () => {
  const cities = ["Oslo", "Rome"];
  const calls = (ids: readonly string[]): Content => ({
    role: "model",
    parts: cities.map((city, at) => ({
      functionCall: { name: "get_weather", args: { city }, ...(ids[at] && { id: ids[at] }) },
    })),
  });
  const results = (...given: readonly [response: Record<string, unknown>, id?: string][]): Content => ({
    role: "user",
    parts: given.map(([response, id]) => ({
      functionResponse: { name: "get_weather", response, ...(id && { id }) },
    })),
  });
  const rain = { output: "rain" };
  const sun = { sky: "sun", degrees: 30 };
  const conversation = (model: string, ...contents: Content[]) => ({
    model,
    contents: [{ role: "user", parts: [{ text: "weather?" }] }, ...contents],
    config: { tools: both },
  });
  const pairs = [
    ["Oslo", "rain"],
    ["Rome", sun],
  ];

  test.each([google, ...others])("$name: by id, in any order", async (target) => {
    const { client } = await newCaller(served);
    const contents = [calls(["a", "b"]), results([sun, "b"], [rain, "a"])];
    await client.models.generateContent(conversation(target.model, ...contents));
    expect(pairsAt(served, target)).toEqual(pairs);
  });

  test.each(others)("$name: by name and order", async (target) => {
    const { client } = await newCaller(served);
    await client.models.generateContent(conversation(target.model, calls([]), results([rain], [sun])));
    expect(pairsAt(served, target)).toEqual(pairs);
  });

  test("local: reads them", async () => {
    const { client } = await newCaller(served);
    const answer = await client.models.generateContent(conversation(local.model, calls([]), results([rain], [sun])));
    expect(answer.text).toMatch(/get_weather returned: rain\nget_weather returned: .*sun/);
  });

  test.each([local, ...others])("$name: of a call that was not made: refused by name", async ({ model }) => {
    const { client } = await newCaller(served);
    const calling = client.models.generateContent(conversation(model, results([rain, "a"])));
    await expect(calling).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("functionResponse.name"),
    });
  });
});
