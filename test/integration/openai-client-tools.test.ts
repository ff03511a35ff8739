import type OpenAI from "openai";
import { zodFunction } from "openai/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { localModel, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();

const functionOf = (name: string) => ({
  type: "function" as const,
  function: {
    name,
    description: `Gives the ${name}`,
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
});
const weather = functionOf("get_weather");
const time = functionOf("get_time");
const asked = (model: string, content: string) => ({ model, messages: [{ role: "user" as const, content }] });

const callOf = (index: number, name: string, city: string) => ({
  id: `call_${index}`,
  type: "function" as const,
  function: { name, arguments: JSON.stringify({ city }) },
});
const toolAnswer = (...calls: object[]) => ({
  body: {
    id: "chatcmpl-x",
    object: "chat.completion",
    created: 1,
    model: "mock",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: null, tool_calls: calls, refusal: null },
        logprobs: null,
        finish_reason: "tool_calls",
      },
    ],
    usage: mockUsage(),
  },
});
const callsOf = (answer: OpenAI.ChatCompletion) =>
  (answer.choices[0]?.message.tool_calls ?? []).map((call) =>
    call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments) as unknown] : [call.type],
  );

describe("local", () => {
  const both = 'get weather and get time in "Oslo" and "Rome"';

  test("calls the functions that the prompt names, in parallel, in JSON and in a stream", async () => {
    const { openai } = await running.service.account("1");
    const request = { ...asked(localModel, both), tools: [weather, time] };
    const answer = await openai.chat.completions.create(request);
    expect(callsOf(answer)).toEqual([
      ["get_weather", { city: "Oslo" }],
      ["get_time", { city: "Rome" }],
    ]);
    expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    expect(callsOf(streamed)).toEqual(callsOf(answer));
    const ids = answer.choices[0]?.message.tool_calls?.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(2);
  });

  test.each([
    ["none", { tool_choice: "none" as const }, []],
    ["auto, nothing named", { messages: [{ role: "user" as const, content: "hi" }] }, []],
    ["required", { tool_choice: "required" as const }, ["get_weather", "get_time"]],
    ["one function", { tool_choice: { type: "function" as const, function: { name: "get_time" } } }, ["get_time"]],
    ["one at a time", { parallel_tool_calls: false }, ["get_weather"]],
  ])("tool_choice: %s", async (_, more, names) => {
    const { openai } = await running.service.account("1");
    const answer = await openai.chat.completions.create({
      ...asked(localModel, both),
      tools: [weather, time],
      ...more,
    });
    expect(callsOf(answer).map(([name]) => name)).toEqual(names);
  });

  test("an unknown function is refused", async () => {
    const { openai } = await running.service.account("1");
    const tool_choice = { type: "function" as const, function: { name: "nothing" } };
    const calling = openai.chat.completions.create({ ...asked(localModel, both), tools: [weather], tool_choice });
    await expect(calling).rejects.toMatchObject({ status: 400, param: "tool_choice", code: "invalid_value" });
  });
});

describe("provider", () => {
  test("tools and tool_choice reach it unchanged; parallel calls come back", async () => {
    const { openai } = await running.service.account("1");
    running.provider.respond(toolAnswer(callOf(0, "get_weather", "Oslo"), callOf(1, "get_time", "Rome")));
    const given = {
      tools: [{ ...weather, function: { ...weather.function, strict: true } }, time],
      tool_choice: { type: "function" as const, function: { name: "get_time" } },
      parallel_tool_calls: true,
    };
    const answer = await openai.chat.completions.create({ ...asked(providerModel, "hi"), ...given });
    expect(callsOf(answer)).toEqual([
      ["get_weather", { city: "Oslo" }],
      ["get_time", { city: "Rome" }],
    ]);
    expect(running.provider.requests[0]?.body).toMatchObject(given);
  });

  test("a conversation with tool results reaches it unchanged", async () => {
    const customer = await running.service.account("1");
    const messages = [
      { role: "developer", content: "be brief" },
      { role: "user", content: "weather?", name: "ann" },
      { role: "assistant", content: null, tool_calls: [callOf(0, "get_weather", "Oslo")] },
      { role: "tool", tool_call_id: "call_0", content: [{ type: "text", text: "rain" }] },
      { role: "assistant", content: "Rain." },
      { role: "user", content: "thanks" },
    ];
    const response = await customer.post("/v1/chat/completions", { model: providerModel, messages, tools: [weather] });
    expect(response.status).toBe(200);
    expect(running.provider.requests[0]?.body["messages"]).toEqual(messages);
  });

  test("the client's helper assembles a stream of parallel calls in pieces", async () => {
    const { openai } = await running.service.account("1");
    const delta = (index: number, more: object) => mockChunk({ tool_calls: [{ index, ...more }] });
    running.provider.respond({
      events: [
        mockChunk({ role: "assistant", content: null }),
        delta(0, { id: "call_0", type: "function", function: { name: "get_weather", arguments: "" } }),
        delta(0, { function: { arguments: '{"city":' } }),
        delta(0, { function: { arguments: '"Oslo"}' } }),
        delta(1, { id: "call_1", type: "function", function: { name: "get_time", arguments: '{"city":"Rome"}' } }),
        mockChunk({}, "tool_calls"),
        mockChunk(undefined, null, { usage: mockUsage() }),
      ],
    });
    const runner = openai.chat.completions.stream({ ...asked(providerModel, "hi"), tools: [weather, time] });
    const done: string[] = [];
    runner.on("tool_calls.function.arguments.done", ({ name }) => done.push(name));
    const answer = await runner.finalChatCompletion();
    expect(callsOf(answer)).toEqual([
      ["get_weather", { city: "Oslo" }],
      ["get_time", { city: "Rome" }],
    ]);
    expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
    expect(done).toEqual(["get_weather", "get_time"]);
  });

  test("an incomplete stream is completed: role, id, type, index, created, finish_reason", async () => {
    const { openai } = await running.service.account("1");
    const bare = (delta: object, more: object = {}) => ({ choices: [{ delta, ...more }] });
    running.provider.respond({
      events: [
        bare({ tool_calls: [{ function: { name: "get_weather", arguments: '{"city":' } }] }),
        bare({ tool_calls: [{ function: { arguments: '"Oslo"}' } }] }),
        bare({}, { finish_reason: "tool_calls" }),
      ],
    });
    const answer = await openai.chat.completions
      .stream({ ...asked(providerModel, "hi"), tools: [weather] })
      .finalChatCompletion();
    expect(callsOf(answer)).toEqual([["get_weather", { city: "Oslo" }]]);
    expect(answer.choices[0]?.message).toMatchObject({ role: "assistant" });
    expect(answer.choices[0]?.message.tool_calls?.[0]?.id).toMatch(/^call_/);
    expect(answer).toMatchObject({ id: expect.stringMatching(/^chatcmpl-/), model: providerModel });
  });
});

/** The official tool runner: calls functions and sends their results until an answer has no calls. */
async function runLoop(openai: OpenAI, model: string, stream: boolean) {
  const asked: string[] = [];
  const tool = zodFunction({
    name: "get_weather",
    parameters: z.object({ city: z.string() }),
    function: ({ city }) => {
      asked.push(city);
      return { city, sky: "rain" };
    },
  });
  const messages = [{ role: "user" as const, content: 'get weather in "Oslo"' }];
  const runner = stream
    ? openai.chat.completions.runTools({ model, messages, tools: [tool], stream: true })
    : openai.chat.completions.runTools({ model, messages, tools: [tool] });
  return {
    said: await runner.finalContent(),
    asked,
    rounds: runner.allChatCompletions().length,
    usage: await runner.totalUsage(),
  };
}

describe.each([false, true])("the tool runner, stream: %s", (stream) => {
  test("local: calls the function and quotes its result", async () => {
    const { openai } = await running.service.account("1");
    const { said, asked, rounds, usage } = await runLoop(openai, localModel, stream);
    expect(asked).toEqual(["Oslo"]);
    expect(said).toContain('get_weather returned: {"city":"Oslo","sky":"rain"}');
    expect(rounds).toBe(2);
    expect(usage.total_tokens).toBeGreaterThan(0);
  });

  test("provider: the result of the call is in its second request", async () => {
    const { openai } = await running.service.account("1");
    const call = callOf(0, "get_weather", "Oslo");
    running.provider.respond(
      stream
        ? {
            events: [
              mockChunk({ role: "assistant", tool_calls: [{ index: 0, ...call }] }),
              mockChunk({}, "tool_calls"),
            ],
          }
        : toolAnswer(call),
      { text: "It rains." },
    );
    const { said, asked } = await runLoop(openai, providerModel, stream);
    expect({ said, asked }).toEqual({ said: "It rains.", asked: ["Oslo"] });
    expect(running.provider.requests[1]?.body["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_0", content: '{"city":"Oslo","sky":"rain"}' },
    ]);
  });
});
