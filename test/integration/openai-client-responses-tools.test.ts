import type OpenAI from "openai";
import { zodResponsesFunction } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { withRelayedModel } from "../support/native-formats.ts";
import { chatAnswer, hostedModel, nativeModel, wholeStream } from "../support/responses-events.ts";
import { localModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const models = [localModel, nativeModel, hostedModel];
const cityOf = z.object({ city: z.string() });
const weather = zodResponsesFunction({ name: "get_weather", description: "The weather", parameters: cityOf });
const time = zodResponsesFunction({ name: "get_time", parameters: cityOf });
const both = 'get weather and get time in "Oslo" and "Rome"';

/** What the provider says, whole or streamed. The local model and the stand-in for Responses call by themselves. */
function script(model: string, stream: boolean, ...names: string[]): void {
  if (model !== hostedModel) return;
  const calls = names.map((name, index) => ({
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: '{"city": "Oslo"}' },
  }));
  if (!stream) return running.provider.respond(chatAnswer({ tool_calls: calls }, "tool_calls"));
  const pieces = calls.flatMap(({ function: { name, arguments: args }, ...call }, index) => [
    mockChunk({ tool_calls: [{ index, ...call, function: { name, arguments: "" } }] }),
    ...[args.slice(0, 5), args.slice(5)].map((part) =>
      mockChunk({ tool_calls: [{ index, function: { arguments: part } }] }),
    ),
  ]);
  running.provider.respond({
    events: [
      mockChunk({ role: "assistant", content: null }),
      ...pieces,
      mockChunk({}, "tool_calls"),
      mockChunk(undefined, null, { usage: mockUsage() }),
    ],
  });
}

async function ask(
  openai: OpenAI,
  stream: boolean,
  request: OpenAI.Responses.ResponseCreateParamsNonStreaming,
): Promise<OpenAI.Responses.Response> {
  if (!stream) return openai.responses.create(request);
  return wholeStream(await Array.fromAsync(await openai.responses.create({ ...request, stream: true })));
}

const callsOf = ({ output }: Pick<OpenAI.Responses.Response, "output">) =>
  output.flatMap((item) => (item.type === "function_call" ? [item] : []));

describe.each(models)("%s", (model) => {
  describe.each([false, true])("stream: %s", (stream) => {
    test("parallel calls, each with an id of its own and arguments of the schema", async () => {
      const { openai } = await running.service.account("1");
      script(model, stream, "get_weather", "get_time");
      const input = `${both} get_weather get_time`;
      const answer = await ask(openai, stream, { model, input, tools: [weather, time] });
      expect(answer.status).toBe("completed");
      const calls = callsOf(answer);
      expect(calls.map(({ name }) => name)).toEqual(["get_weather", "get_time"]);
      for (const call of calls) {
        expect(cityOf.parse(JSON.parse(call.arguments)).city).toMatch(/./);
        expect(call).toMatchObject({ status: "completed", call_id: expect.stringMatching(/^call_/) as string });
        expect(call.id).toMatch(/^fc_/);
      }
      expect(new Set(calls.flatMap(({ id, call_id }) => [id, call_id])).size).toBe(4);
    });

    test("the loop that the client's users write: call, result, answer", async () => {
      const { openai } = await running.service.account("1");
      const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: 'get_weather in "Oslo"' }];
      const request = { model, tools: [weather] };
      script(model, stream, "get_weather");
      const first = await ask(openai, stream, { ...request, input });
      const calls = callsOf(first);
      expect(calls).toHaveLength(1);
      input.push(...toResponseInputItems(first.output));
      for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: '{"sky":"rain"}' });
      if (model === hostedModel) running.provider.respond({ text: 'get_weather returned: {"sky":"rain"}' });
      const second = await ask(openai, stream, { ...request, input });
      expect(callsOf(second)).toEqual([]);
      expect(second.output_text ?? JSON.stringify(second.output)).toMatch(/Hello|returned/);
      const [id, args] = [calls[0]?.call_id, calls[0]?.arguments];
      const crossed = [
        { role: "user", content: 'get_weather in "Oslo"' },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id, type: "function", function: { name: "get_weather", arguments: args } }],
        },
        { role: "tool", tool_call_id: id, content: '{"sky":"rain"}' },
      ];
      const { input: given, messages } = running.provider.requests[1]?.body ?? {};
      const expected = { [nativeModel]: JSON.parse(JSON.stringify(input)) as unknown, [hostedModel]: crossed }[model];
      expect(given ?? messages).toEqual(expected);
    });
  });

  test("parse and the helper read the arguments", async () => {
    const { openai } = await running.service.account("1");
    const request = { model, input: 'get_weather in "Oslo"', tools: [weather] };
    script(model, false, "get_weather");
    const parsed = await openai.responses.parse(request);
    script(model, true, "get_weather");
    const streamed = await openai.responses.stream(request).finalResponse();
    for (const { output } of [parsed, streamed])
      expect(output).toMatchObject([{ type: "function_call", parsed_arguments: { city: expect.any(String) } }]);
  });

  test.each([
    ["none", "none" as const, 0],
    ["required", "required" as const, 1],
    ["one function", { type: "function" as const, name: "get_time" }, 1],
  ])("tool_choice: %s", async (name, tool_choice, count) => {
    const { openai } = await running.service.account("1");
    if (count > 0) script(model, false, "get_time");
    const answer = await openai.responses.create({ model, input: "get_time", tools: [weather, time], tool_choice });
    expect(callsOf(answer).map((call) => call.name)).toEqual(Array.from({ length: count }, () => "get_time"));
    const sent = running.provider.requests[0]?.body["tool_choice"];
    const crossed = name === "one function" ? { type: "function", function: { name: "get_time" } } : tool_choice;
    expect(sent).toEqual({ [localModel]: undefined, [nativeModel]: tool_choice, [hostedModel]: crossed }[model]);
  });
});

test("hosted: definitions cross whole, results with images and errors too", async () => {
  const { openai } = await running.service.account("1");
  await openai.responses.create({
    model: hostedModel,
    tools: [weather],
    parallel_tool_calls: false,
    input: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: "weather?" },
      { type: "function_call", call_id: "call_1", name: "get_weather", arguments: "{}" },
      { type: "function_call", call_id: "call_2", name: "get_weather", arguments: '{"city":"Oslo"}' },
      { type: "function_call_output", call_id: "call_1", output: "error: no city" },
      { type: "function_call_output", call_id: "call_2", output: [{ type: "input_text", text: "rain" }] },
    ],
  });
  const body = running.provider.requests[0]?.body ?? {};
  const { type, name, description, parameters, strict } = JSON.parse(JSON.stringify(weather)) as Record<
    string,
    unknown
  >;
  expect(body["tools"]).toEqual([{ type, function: { name, description, parameters, strict } }]);
  expect(body["parallel_tool_calls"]).toBe(false);
  const called = (id: string, args: string) => ({
    id,
    type: "function",
    function: { name: "get_weather", arguments: args },
  });
  expect(body["messages"]).toEqual([
    { role: expect.stringMatching(/system|developer/) as string, content: "Be brief." },
    { role: "user", content: "weather?" },
    expect.objectContaining({
      role: "assistant",
      tool_calls: [called("call_1", "{}"), called("call_2", '{"city":"Oslo"}')],
    }),
    { role: "tool", tool_call_id: "call_1", content: "error: no city" },
    { role: "tool", tool_call_id: "call_2", content: "rain" },
  ]);
});

test.each([
  [{ type: "web_search" }, "tools[0].type"],
  [{ type: "code_interpreter", container: { type: "auto" } }, "tools[0].container"],
  [{ type: "image_generation" }, "tools[0].type"],
  [{ type: "mcp", server_label: "x", server_url: "https://example.com" }, "tools[0].type"],
  [{ type: "computer_use_preview", display_width: 1, display_height: 1, environment: "browser" }, "tools[0].type"],
])("a tool that the provider runs has no price: %j", async (tool, param) => {
  const { openai } = await running.service.account("1");
  const calling = openai.responses.create({ model: nativeModel, input: "x", tools: [tool as never] });
  await expect(calling).rejects.toMatchObject({ status: 400, code: "invalid_value", param });
  expect(running.provider.requests).toEqual([]);
});
