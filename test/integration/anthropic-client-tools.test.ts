import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  anthropicService,
  asking,
  entriesOf,
  hostedModel,
  models,
  nativeModel,
  newCaller,
  textOf,
} from "../support/anthropic-client-setup.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { chatAnswer } from "../support/responses-events.ts";
import { localModel } from "../support/service-setup.ts";

const running = anthropicService();

const toolOf = (name: string) => ({
  name,
  description: `Gives the ${name}`,
  input_schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] },
});
const tools = [toolOf("get_weather"), toolOf("get_time")];
/** Names both. */
const both = "get_weather and get_time, please";
const chatCall = (index: number, name: string, city: string) => ({
  id: `call_${index}`,
  type: "function",
  function: { name, arguments: JSON.stringify({ city }) },
});
const bothCalls = [chatCall(0, "get_weather", "Oslo"), chatCall(1, "get_time", "Rome")];

const callsOf = ({ content }: Pick<Anthropic.Message, "content">) =>
  content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
const namesOf = (message: Pick<Anthropic.Message, "content">) => callsOf(message).map(({ name }) => name);

describe.each(models)("%s", (model) => {
  test("parallel calls: each with an id, a name and an input, in JSON and in a stream alike", async () => {
    const { client } = await newCaller(running);
    const params = { ...asking(model, both), tools };
    running.provider.respond(chatAnswer({ tool_calls: bothCalls }, "tool_calls"));
    const message = await client.messages.create(params);
    expect(message.stop_reason).toBe("tool_use");
    expect(namesOf(message)).toEqual(["get_weather", "get_time"]);
    const calls = callsOf(message);
    for (const { input } of calls) expect(input).toEqual({ city: expect.any(String) as string });
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);

    running.provider.respond({
      events: [
        mockChunk({ role: "assistant", content: null }),
        ...bothCalls.flatMap(({ function: { arguments: args, name }, ...call }, index) => [
          mockChunk({ tool_calls: [{ index, ...call, function: { name, arguments: "" } }] }),
          mockChunk({ tool_calls: [{ index, function: { arguments: args.slice(0, 4) } }] }),
          mockChunk({ tool_calls: [{ index, function: { arguments: args.slice(4) } }] }),
        ]),
        mockChunk({}, "tool_calls"),
        mockChunk(undefined, null, { usage: mockUsage() }),
      ],
    });
    const pieces: string[] = [];
    const snapshots: unknown[] = [];
    const stream = client.messages.stream(params).on("inputJson", (piece, snapshot) => {
      pieces.push(piece);
      snapshots.push(snapshot);
    });
    const streamed = await stream.finalMessage();
    expect(streamed.stop_reason).toBe("tool_use");
    const bare = (message: Pick<Anthropic.Message, "content">) =>
      callsOf(message).map(({ name, input }) => ({ name, input }));
    expect(bare(streamed)).toEqual(bare(message));
    expect(pieces.join("")).toBe(calls.map(({ input }) => JSON.stringify(input)).join(""));
    expect(snapshots.at(-1)).toEqual(calls.at(-1)?.input);
  });

  test("the tool runner calls the functions and sends their results, until an answer without calls", async () => {
    const { client, customer } = await newCaller(running);
    const asked: string[] = [];
    const weather = betaZodTool({
      name: "get_weather",
      description: "Gives the weather",
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => {
        asked.push(city);
        return `rain in ${city}`;
      },
    });
    for (const stream of [false, true]) {
      const call = chatCall(0, "get_weather", "Oslo");
      running.provider.respond(
        stream
          ? { events: [mockChunk({ tool_calls: [{ index: 0, ...call }] }), mockChunk({}, "tool_calls")] }
          : chatAnswer({ tool_calls: [call] }, "tool_calls"),
        { text: "It rains: rain in Oslo" },
      );
      const runner = client.beta.messages.toolRunner({
        ...asking(model, 'get_weather in "Oslo"'),
        tools: [weather],
        stream,
      });
      const last = (await runner.runUntilDone()) as unknown as Anthropic.Message;
      expect(last.stop_reason).toBe("end_turn");
      expect(textOf(last)).toContain(`rain in ${asked.at(-1)}`);
    }
    expect(asked).toHaveLength(2);
    // It asks for a thread first, and goes on without one.
    for (const { body } of [...running.anthropic.requests, ...running.provider.requests])
      expect(body).not.toHaveProperty("thread");
    expect(await entriesOf(running.service, customer)).toMatchObject(
      Array.from({ length: 4 }, () => ({ request: { endpoint: "/v1/messages", status: "succeeded" } })),
    );
  });
});

describe("tool_choice", () => {
  const choices: readonly (readonly [string, Anthropic.ToolChoice, said: string, names: readonly string[]])[] = [
    ["auto", { type: "auto" }, both, ["get_weather", "get_time"]],
    ["auto, nothing named", { type: "auto" }, "hi", []],
    ["any", { type: "any" }, "hi", ["get_weather"]],
    ["tool", { type: "tool", name: "get_time" }, "hi", ["get_time"]],
    ["none", { type: "none" }, both, []],
    ["one at a time", { type: "auto", disable_parallel_tool_use: true }, both, ["get_weather"]],
  ];

  test.each(choices)("local: %s", async (_, tool_choice, said, names) => {
    const { client } = await newCaller(running);
    const message = await client.messages.create({ ...asking(localModel, said), tools, tool_choice });
    expect(namesOf(message)).toEqual(names);
    expect(message.stop_reason).toBe(names.length > 0 ? "tool_use" : "end_turn");
  });

  test.each(choices)("its own provider gets it as it is: %s", async (_, tool_choice, said) => {
    const { client } = await newCaller(running);
    await client.messages.create({ ...asking(nativeModel, said), tools, tool_choice });
    expect(running.anthropic.requests[0]?.body).toMatchObject({ tools, tool_choice });
  });

  test.each([
    [{ type: "auto" as const }, { tool_choice: "auto" }],
    [
      { type: "any" as const, disable_parallel_tool_use: true },
      { tool_choice: "required", parallel_tool_calls: false },
    ],
    [
      { type: "tool" as const, name: "get_time" },
      { tool_choice: { type: "function", function: { name: "get_time" } } },
    ],
    [{ type: "none" as const }, { tool_choice: "none" }],
  ])("hosted elsewhere: %j crosses", async (tool_choice, crossed) => {
    const { client } = await newCaller(running);
    await client.messages.create({
      ...asking(hostedModel),
      tools: [{ ...tools[0], strict: true }],
      tool_choice,
    } as never);
    const { name, description, input_schema: parameters } = toolOf("get_weather");
    expect(running.provider.requests[0]?.body).toMatchObject({
      tools: [{ type: "function", function: { name, description, parameters, strict: true } }],
      ...crossed,
    });
  });

  test("a tool that is not there is refused by its field", async () => {
    const { client } = await newCaller(running);
    const tool_choice = { type: "tool" as const, name: "nothing" };
    const calling = client.messages.create({ ...asking(localModel), tools, tool_choice });
    await expect(calling).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    await expect(calling).rejects.toThrow(/nothing/);
  });
});

describe("results of tools", () => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const source = { type: "base64" as const, media_type: "image/png" as const, data: png };
  const messages: Anthropic.MessageParam[] = [
    { role: "user", content: "weather and time?" },
    {
      role: "assistant",
      content: [
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo" } },
        { type: "tool_use", id: "toolu_2", name: "get_time", input: { city: "Rome" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          content: [
            { type: "text", text: "rain" },
            { type: "image", source },
          ],
        },
        { type: "tool_result", tool_use_id: "toolu_2", is_error: true, content: "no clock" },
        { type: "text", text: "Well?" },
      ],
    },
  ];

  test("with pictures and errors, reach its own provider untouched", async () => {
    const { client } = await newCaller(running);
    await client.messages.create({ ...asking(nativeModel), tools, messages });
    expect(running.anthropic.requests[0]?.body["messages"]).toEqual(messages);
  });

  test("hosted elsewhere: each is a message of its own, the picture follows them, an error says that it is one", async () => {
    const { client } = await newCaller(running);
    await client.messages.create({ ...asking(hostedModel), tools, messages });
    const sent = running.provider.requests[0]?.body["messages"] as readonly Record<string, unknown>[];
    expect(sent.map(({ role, tool_call_id }) => [role, tool_call_id])).toEqual([
      ["user", undefined],
      ["assistant", undefined],
      ["tool", "toolu_1"],
      ["tool", "toolu_2"],
      ["user", undefined],
    ]);
    expect(sent[1]?.["tool_calls"]).toEqual([
      { id: "toolu_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
      { id: "toolu_2", type: "function", function: { name: "get_time", arguments: '{"city":"Rome"}' } },
    ]);
    expect(JSON.stringify(sent[2])).toContain("rain");
    expect(JSON.stringify(sent[3])).toMatch(/no clock/);
    expect(JSON.stringify(sent[3])).toMatch(/error/i);
    expect(JSON.stringify(sent)).toContain(`data:image/png;base64,${png}`);
    expect(JSON.stringify(sent.at(-1))).toContain("Well?");
  });

  test("local: reads them", async () => {
    const { client } = await newCaller(running);
    const content = [{ type: "tool_result" as const, tool_use_id: "toolu_1", content: "rain" }];
    const conversation = [
      ...messages.slice(0, 1),
      {
        role: "assistant" as const,
        content: [{ type: "tool_use" as const, id: "toolu_1", name: "get_weather", input: {} }],
      },
    ];
    const message = await client.messages.create({
      ...asking(localModel),
      tools,
      messages: [...conversation, { role: "user", content }],
    });
    expect(textOf(message)).toContain("get_weather returned: rain");
  });
});
