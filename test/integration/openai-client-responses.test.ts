import type OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk, mockText, mockUsage } from "../support/mock-openai.ts";
import { withRelayedModel } from "../support/native-formats.ts";
import { chatAnswer, hostedModel, nativeModel, wholeStream } from "../support/responses-events.ts";
import { entryOf, localModel, nanoUsd, providerModel, serviceOfFile } from "../support/service-setup.ts";

// The mock also serves `hostedModel`.
const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const hello = "Hello there";
const catalogId = (model: string) => (model === nativeModel ? providerModel : model);

describe.each([localModel, nativeModel, providerModel, hostedModel])("%s", (model) => {
  test("JSON: a response under the model as asked for, its usage, and the charge for it", async () => {
    const customer = await running.service.account("1");
    const answer = await customer.openai.responses.create({ model, input: hello });
    expect(answer).toMatchObject({
      object: "response",
      model,
      status: "completed",
      store: false,
      error: null,
      incomplete_details: null,
      previous_response_id: null,
      output: [{ type: "message", role: "assistant", status: "completed", content: [{ annotations: [] }] }],
    });
    expect(answer.output_text).toContain("ello there");
    const { input_tokens: input = 0, output_tokens: output = 0, total_tokens } = answer.usage ?? {};
    expect([input > 0, output > 0, total_tokens]).toEqual([true, true, input + output]);
    await running.service.settled();
    const { request, amount_usd } = await entryOf(running.service, answer._request_id);
    const usage = { input, output };
    expect(request).toMatchObject({
      model: catalogId(model),
      endpoint: "/v1/responses",
      status: "succeeded",
      usage,
      estimated: false,
    });
    const prices: Readonly<Record<string, readonly bigint[]>> = {
      [localModel]: [100n, 400n],
      [providerModel]: [400n, 1_600n],
      [hostedModel]: [150n, 600n],
    };
    const [perInput = 0n, perOutput = 0n] = prices[catalogId(model)] ?? [];
    expect(nanoUsd(amount_usd)).toBe(-(BigInt(input) * perInput + BigInt(output) * perOutput));
  });

  test("stream: events in order, numbered from 0; the last one has the JSON response", async () => {
    const customer = await running.service.account("1");
    const stream = await customer.openai.responses.create({ model, input: hello, stream: true });
    const events = await Array.fromAsync(stream);
    const streamed = wholeStream(events);
    const { _request_id, id, created_at, output_text, ...whole } = await customer.openai.responses.create({
      model,
      input: hello,
    });
    const { id: _, created_at: __, ...rest } = streamed;
    const bare = (value: unknown) =>
      JSON.parse(JSON.stringify(value).replaceAll(/"(id|completed_at)":[^,}]+/g, '"id":0'));
    expect(bare(rest)).toEqual(bare(whole));
    expect(id).toMatch(/^resp_/);
    expect(created_at).toBeGreaterThan(1_600_000_000);
    expect(events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("")).toBe(
      output_text,
    );
    expect(JSON.stringify(events)).not.toMatch(/"store":true|mock-model/);
  });

  test("the streaming helper: its events, and the final response", async () => {
    const { openai } = await running.service.account("1");
    const runner = openai.responses.stream({ model, input: hello });
    let streamedText = "";
    const seen: string[] = [];
    runner.on("response.output_text.delta", ({ delta }) => {
      streamedText += delta;
    });
    runner.on("event", ({ type }) => void seen.push(type));
    const answer = await runner.finalResponse();
    expect(answer).toMatchObject({ model, status: "completed", output_text: streamedText });
    expect(streamedText).toContain("ello there");
    expect([seen[0], seen.at(-1)]).toEqual(["response.created", "response.completed"]);
    expect(answer.usage?.output_tokens).toBeGreaterThan(0);
  });

  test("a conversation with earlier output and instructions", async () => {
    const { openai } = await running.service.account("1");
    const first = await openai.responses.create({ model, input: hello, instructions: "Be brief." });
    expect(first.instructions).toBe("Be brief.");
    const second = await openai.responses.create({
      model,
      input: [
        { role: "user", content: hello },
        ...toResponseInputItems(first.output),
        { role: "user", content: "Hello there again" },
      ],
    });
    expect(second.output_text).toContain("ello there");
    expect(second.id).not.toBe(model === localModel || model === hostedModel ? first.id : "");
  });
});

const person = z.object({ name: z.string(), age: z.int(), tags: z.array(z.enum(["red", "blue"])) });
const ada = { name: "Ada", age: 36, tags: ["blue"] };

describe.each([localModel, nativeModel, hostedModel])("structured output of %s", (model) => {
  const request = {
    model,
    input: 'I met "Ada", who is 36 and likes blue.',
    text: { format: zodTextFormat(person, "person") },
  };

  test("parse returns an object of the schema, whole and streamed", async () => {
    const { openai } = await running.service.account("1");
    running.provider.always({ text: JSON.stringify(ada) });
    const answer = await openai.responses.parse(request);
    expect(answer.output_parsed).toEqual(ada);
    expect(answer.text?.format).toMatchObject({ type: "json_schema", name: "person", strict: true });
    const streamed = await openai.responses.stream(request).finalResponse();
    expect(streamed.output_parsed).toEqual(ada);
  });
});

describe("end of a response", () => {
  test.each([localModel, nativeModel, hostedModel])("%s: at the output cap it is incomplete", async (model) => {
    const { openai } = await running.service.account("1");
    const cut = { incomplete: "max_output_tokens" as const, text: "Hello" };
    running.provider.respond(
      ...(model === hostedModel
        ? [
            chatAnswer({ content: "Hello" }, "length"),
            { events: [mockChunk({ role: "assistant", content: "Hello" }), mockChunk({}, "length")] },
          ]
        : [cut, cut]),
    );
    const request = { model, input: "tokens:100", max_output_tokens: 16 };
    const ending = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, max_output_tokens: 16 };
    expect(await openai.responses.create(request)).toMatchObject(ending);
    const events = await Array.fromAsync(await openai.responses.create({ ...request, stream: true }));
    expect(events.at(-1)?.type).toBe("response.incomplete");
    expect(wholeStream(events)).toMatchObject(ending);
    const sent = running.provider.requests.map(({ body }) => body["max_output_tokens"] ?? body["max_tokens"]);
    expect(sent).toEqual(model === localModel ? [] : [16, 16]);
  });

  test.each([nativeModel, hostedModel])("%s: a refusal, whole and streamed", async (model) => {
    const { openai } = await running.service.account("1");
    const refusal = "I cannot help with that.";
    const output = [
      { type: "message", role: "assistant", status: "completed", content: [{ type: "refusal", refusal }] },
    ];
    running.provider.respond(
      ...(model === hostedModel
        ? [
            chatAnswer({ refusal }),
            {
              events: [
                mockChunk({ role: "assistant", refusal: "I cannot " }),
                mockChunk({ refusal: "help with that." }),
                mockChunk({}, "stop"),
              ],
            },
          ]
        : [{ output }, { output }]),
    );
    const request = { model, input: hello, text: { format: zodTextFormat(person, "person") } };
    const answer = await openai.responses.parse(request);
    expect(answer).toMatchObject({ output: [{ content: [{ type: "refusal", refusal }] }], output_parsed: null });
    const response = wholeStream(await Array.fromAsync(await openai.responses.create({ ...request, stream: true })));
    expect(response.output).toMatchObject([{ content: [{ type: "refusal", refusal }] }]);
  });

  test("hosted: without usage from the provider an estimate is charged, marked as one in the ledger", async () => {
    const { openai } = await running.service.account("1");
    running.provider.respond({ usage: false });
    const { data: stream, request_id } = await openai.responses
      .create({ model: hostedModel, input: hello, stream: true })
      .withResponse();
    const { usage } = wholeStream(await Array.fromAsync(stream));
    await running.service.settled();
    const entry = await entryOf(running.service, request_id);
    expect(entry.request).toMatchObject({ estimated: true, usage: { output: Math.ceil(mockText.length / 4) } });
    expect(usage).toMatchObject({
      output_tokens: Math.ceil(mockText.length / 4),
      total_tokens: 3 + Math.ceil(mockText.length / 4),
    });
  });

  test("hosted: cached and reasoning tokens are converted, and charged at their prices", async () => {
    const { openai } = await running.service.account("1");
    const usage = {
      ...mockUsage(),
      prompt_tokens: 1_000,
      completion_tokens: 500,
      total_tokens: 1_500,
      prompt_tokens_details: { cached_tokens: 600 },
      completion_tokens_details: { reasoning_tokens: 300 },
    };
    running.provider.always({ usage });
    const expected = {
      input_tokens: 1_000,
      input_tokens_details: { cached_tokens: 600 },
      output_tokens: 500,
      output_tokens_details: { reasoning_tokens: 300 },
      total_tokens: 1_500,
    };
    const answer = await openai.responses.create({ model: hostedModel, input: hello });
    expect(answer.usage).toMatchObject(expected);
    const { data: stream, request_id } = await openai.responses
      .create({ model: hostedModel, input: hello, stream: true })
      .withResponse();
    expect(wholeStream(await Array.fromAsync(stream)).usage).toMatchObject(expected);
    await running.service.settled();
    for (const id of [answer._request_id, request_id]) {
      const entry = await entryOf(running.service, id);
      expect(nanoUsd(entry.amount_usd)).toBe(-(400n * 150n + 600n * 75n + 500n * 600n));
    }
  });
});

const models = [localModel, nativeModel, hostedModel];
const cityOf = z.object({ city: z.string() });
const weather = zodResponsesFunction({ name: "get_weather", description: "The weather", parameters: cityOf });
const time = zodResponsesFunction({ name: "get_time", parameters: cityOf });
const both = 'get weather and get time in "Oslo" and "Rome"';

/** Scripts calls of the hosted model; the other models call tools unscripted. */
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

describe.each(models)("tools of %s", (model) => {
  describe.each([false, true])("stream: %s", (stream) => {
    test("parallel calls have distinct ids and arguments of the schema", async () => {
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

    test("call, result, answer", async () => {
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
  ])("tool_choice: %s", async (_, tool_choice, count) => {
    const { openai } = await running.service.account("1");
    if (count > 0) script(model, false, "get_time");
    const answer = await openai.responses.create({ model, input: "get_time", tools: [weather, time], tool_choice });
    expect(callsOf(answer).map((call) => call.name)).toEqual(Array.from({ length: count }, () => "get_time"));
  });
});

test("tools that the provider runs are refused before any request", async () => {
  const { openai } = await running.service.account("1");
  const calling = openai.responses.create({ model: nativeModel, input: "x", tools: [{ type: "web_search" }] });
  await expect(calling).rejects.toMatchObject({ status: 400, code: "invalid_value", param: "tools[0].type" });
  expect(running.provider.requests).toEqual([]);
});

describe("hosted: ignored hints are named in x-ignored-params", () => {
  test.each([false, true])("stream: %s", async (stream) => {
    const { openai } = await running.service.account("1");
    const hints = {
      metadata: { a: "b" },
      truncation: "auto" as const,
      service_tier: "auto" as const,
      reasoning: { effort: "low" as const, summary: "auto" as const },
      include: ["reasoning.encrypted_content" as const],
      store: true,
    };
    const identifiers = { user: "u", prompt_cache_key: "k" };
    const request = { model: hostedModel, input: "Hello", ...hints, ...identifiers, safety_identifier: "s" };
    const { response } = await openai.responses.create({ ...request, stream }).withResponse();
    const ignored = response.headers.get("x-ignored-params")?.split(", ").toSorted();
    const names = ["metadata", "reasoning.summary", "safety_identifier", "service_tier", "truncation"];
    expect(ignored).toEqual(names);
    expect(running.provider.requests[0]?.body).toEqual({
      model: hostedModel,
      messages: [{ role: "user", content: "Hello" }],
      reasoning_effort: "low",
      ...Object.fromEntries(Object.keys(identifiers).map((field) => [field, expect.any(String) as string])),
      ...(stream && { stream: true, stream_options: { include_usage: true } }),
    });
    // The response still has them.
    expect(await openai.responses.create(request)).toMatchObject({ metadata: { a: "b" }, user: "u" });
  });
});

test("local: describes images by their bytes, and names links", async () => {
  const { openai } = await running.service.account("1");
  const pixel =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const image = (image_url: string) => ({ type: "input_image" as const, image_url, detail: "low" as const });
  const content = [image(pixel), image("https://example.com/cat.png")];
  const answer = await openai.responses.create({ model: localModel, input: [{ role: "user", content }] });
  expect(answer.output_text).toMatch(/PNG image of 1 x 1 pixels.*\n.*https:\/\/example\.com\/cat\.png/);
});

test("hosted: an answer larger than a frame arrives whole, and so does a body too large for the job", async () => {
  const { openai } = await running.service.account("1");
  // Four bytes and two UTF-16 units each: a part must not end in the middle of one.
  const text = `x${"😀".repeat(100_000)}`;
  running.provider.always({ text });
  const input = `y${"ü".repeat(50_000)}`;
  const answer = await openai.responses.create({ model: hostedModel, input });
  expect(answer.output_text === text).toBe(true);
  expect(
    JSON.stringify(running.provider.requests[0]?.body["messages"]) ===
      JSON.stringify([{ role: "user", content: input }]),
  ).toBe(true);
  const events = await Array.fromAsync(await openai.responses.create({ model: hostedModel, input, stream: true }));
  const [item] = wholeStream(events).output;
  expect(item?.type === "message" && item.content[0]?.type === "output_text" && item.content[0].text === text).toBe(
    true,
  );
});

test("inputTokens: the whole request is counted, exactly for plain text, and nothing is charged", async () => {
  const customer = await running.service.account("0");
  const count = async (body: OpenAI.Responses.InputTokenCountParams) => {
    const { data, response } = await customer.openai.responses.inputTokens.count(body).withResponse();
    expect(response.headers.get("x-xm-token-count")).toBe("estimate");
    expect(data.object).toBe("response.input_tokens");
    return data.input_tokens;
  };
  for (const model of [localModel, nativeModel, providerModel]) {
    // Two tokens, and seven of the template.
    expect(await count({ model, input: hello })).toBe(9);
    const parameters = { type: "object", properties: { city: { type: "string" } } };
    const tools = [{ type: "function" as const, name: "get_weather", parameters, strict: false }];
    expect(await count({ model, input: hello, instructions: "Be brief.", tools })).toBeGreaterThan(25);
  }
  expect(running.provider.requests).toEqual([]);
  await running.service.settled();
  expect(await customer.available()).toBe("0.00");
  const stream = await customer.post("/v1/responses/input_tokens", { model: localModel, input: hello, stream: true });
  expect(await stream.json()).toEqual({ object: "response.input_tokens", input_tokens: 9 });
});
