import { type FunctionCall, FunctionCallingConfigMode, type GenerateContentResponse, Type } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  geminiService,
  google,
  local,
  messagesProvider,
  newCaller,
  others,
  responsesProvider,
  sent,
  targets,
} from "../support/gemini-client-setup.ts";

const served = geminiService();
const { ANY, AUTO, NONE } = FunctionCallingConfigMode;

const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const time = { name: "get_time", parametersJsonSchema: schema };
const both = [{ functionDeclarations: [weather, time] }];
const callsOf = (calls: readonly FunctionCall[] = []) => calls.map(({ name, args }) => [name, args]);
const callsIn = (chunks: readonly GenerateContentResponse[]) =>
  chunks.flatMap(({ functionCalls = [] }) => functionCalls);
describe("declarations and modes reach the provider in its own words", () => {
  const modes = [
    [AUTO, undefined],
    [NONE, undefined],
    [ANY, undefined],
    [ANY, ["get_time"]],
    [ANY, ["get_time", "get_weather"]],
  ] as const;
  type Row = readonly [mode: FunctionCallingConfigMode, only: readonly string[] | undefined];
  const asked = (model: string, [mode, only]: Row) => ({
    ...asking(model, "Hello there"),
    config: {
      tools: [...both],
      toolConfig: { functionCallingConfig: { mode, ...(only && { allowedFunctionNames: [...only] }) } },
    },
  });
  const named = "get_time";
  const words: Readonly<Record<string, readonly unknown[]>> = {
    chat: ["auto", "none", "required", { type: "function", function: { name: named } }, "required"],
    responses: ["auto", "none", "required", { type: "function", name: named }, "required"],
    messages: [undefined, { type: "none" }, { type: "any" }, { type: "tool", name: named }, { type: "any" }],
  };
  const toolsOf: Readonly<Record<string, readonly object[]>> = {
    chat: [
      { type: "function", function: { name: "get_weather", description: weather.description, parameters: schema } },
      { type: "function", function: { name: named, parameters: schema } },
    ],
    responses: [
      { type: "function", name: "get_weather", description: weather.description, parameters: schema },
      { type: "function", name: named, parameters: schema },
    ],
    messages: [
      { name: "get_weather", description: weather.description, input_schema: schema },
      { name: named, input_schema: schema },
    ],
  };

  test.each(others)("$name", async (target) => {
    const { client } = await newCaller(served);
    for (const [at, row] of modes.entries()) {
      await client.models.generateContent(asked(target.model, row));
      const { tools, tool_choice } = sent(served, target);
      expect(tools).toMatchObject(toolsOf[target.name] ?? []);
      expect(tool_choice).toEqual(words[target.name]?.[at]);
    }
  });

  test("Google's: untouched", async () => {
    const { client } = await newCaller(served);
    for (const row of modes) {
      const request = asked(google.model, row);
      await client.models.generateContent(request);
      expect(sent(served, google)).toMatchObject(request.config);
    }
  });

  test("local: calls what it must, what it may, and nothing", async () => {
    const { client } = await newCaller(served);
    const called = await Promise.all(
      modes.map(async (row) => {
        const { functionCalls } = await client.models.generateContent(asked(local.model, row));
        return functionCalls?.map(({ name }) => name) ?? [];
      }),
    );
    expect(called).toEqual([[], [], ["get_weather"], ["get_time"], ["get_weather"]]);
  });

  test("only some functions are allowed: the others are not there for a provider that cannot be told so", async () => {
    const { client } = await newCaller(served);
    const third = { name: "get_news", parametersJsonSchema: schema };
    for (const target of others) {
      const request = asked(target.model, [ANY, ["get_time", "get_news"]]);
      await client.models.generateContent({
        ...request,
        config: { ...request.config, tools: [{ functionDeclarations: [weather, time, third] }] },
      });
      expect(JSON.stringify(sent(served, target))).not.toContain("get_weather");
    }
  });

  test("a call is demanded and there is no function: refused by name", async () => {
    const { client } = await newCaller(served);
    for (const { model } of [local, ...others]) {
      const config = { toolConfig: { functionCallingConfig: { mode: ANY } } };
      await expect(client.models.generateContent({ ...asking(model), config })).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("toolConfig.functionCallingConfig.mode"),
      });
    }
  });

  test("tools that the provider runs are refused by name everywhere", async () => {
    const { client, customer } = await newCaller(served);
    for (const { model } of targets)
      for (const [field, tool] of [
        ["googleSearch", { googleSearch: {} }],
        ["codeExecution", { codeExecution: {} }],
        ["urlContext", { urlContext: {} }],
      ] as const)
        await expect(
          client.models.generateContent({ ...asking(model), config: { tools: [tool] } }),
        ).rejects.toMatchObject({ status: 400, message: expect.stringContaining(`tools[0].${field}`) });
    await served.service.settled();
    expect(await customer.available()).toBe("10.00");
  });
});

test.each([responsesProvider, messagesProvider])("$name: a stream of one forced call", async ({ model }) => {
  const { client } = await newCaller(served);
  const chunks = await Array.fromAsync(
    await client.models.generateContentStream({
      ...asking(model),
      config: {
        tools: both,
        toolConfig: { functionCallingConfig: { mode: ANY, allowedFunctionNames: ["get_time"] } },
      },
    }),
  );
  expect(callsOf(callsIn(chunks))).toEqual([["get_time", { city: "mock" }]]);
});
