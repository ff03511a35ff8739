import { zodTextFormat } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk, mockText, mockUsage } from "../support/mock-openai.ts";
import { withRelayedModel } from "../support/native-formats.ts";
import { chatAnswer, hostedModel, nativeModel, wholeStream } from "../support/responses-events.ts";
import { entryOf, localModel, nanoUsd, providerModel, serviceOfFile } from "../support/service-setup.ts";

// The stand-in also has the place of the provider that hosts `hostedModel`.
const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const hello = "Hello there";
const oursOf = (model: string) => (model === nativeModel ? providerModel : model);

describe.each([localModel, nativeModel, providerModel, hostedModel])("%s", (model) => {
  test("JSON: a response under the service's model id, its usage, and the charge for it", async () => {
    const customer = await running.service.account("1");
    const answer = await customer.openai.responses.create({ model, input: hello });
    expect(answer).toMatchObject({
      object: "response",
      model: oursOf(model),
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
      model: oursOf(model),
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
    const [perInput = 0n, perOutput = 0n] = prices[oursOf(model)] ?? [];
    expect(nanoUsd(amount_usd)).toBe(-(BigInt(input) * perInput + BigInt(output) * perOutput));
  });

  test("stream: every event in its order, numbered from 0; the last one has what JSON says", async () => {
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
    expect(JSON.stringify(events)).not.toMatch(/"store":true|mock-model|"model":"gpt/);
  });

  test("the streaming helper: its events, and the final response", async () => {
    const { openai } = await running.service.account("1");
    const runner = openai.responses.stream({ model, input: hello });
    let said = "";
    const seen: string[] = [];
    runner.on("response.output_text.delta", ({ delta }) => {
      said += delta;
    });
    runner.on("event", ({ type }) => void seen.push(type));
    const answer = await runner.finalResponse();
    expect(answer).toMatchObject({ model: oursOf(model), status: "completed", output_text: said });
    expect(said).toContain("ello there");
    expect([seen[0], seen.at(-1)]).toEqual(["response.created", "response.completed"]);
    expect(answer.usage?.output_tokens).toBeGreaterThan(0);
  });

  test("a conversation of its own answers, with instructions", async () => {
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

  test("parse gives an object of the schema, whole and streamed", async () => {
    const { openai } = await running.service.account("1");
    running.provider.always({ text: JSON.stringify(ada) });
    const answer = await openai.responses.parse(request);
    expect(answer.output_parsed).toEqual(ada);
    expect(answer.text?.format).toMatchObject({ type: "json_schema", name: "person", strict: true });
    const streamed = await openai.responses.stream(request).finalResponse();
    expect(streamed.output_parsed).toEqual(ada);
    const { schema } = JSON.parse(JSON.stringify(request.text.format)) as { schema: unknown };
    const sent = running.provider.requests.map(({ body }) => body["text"] ?? body["response_format"]);
    const format = { type: "json_schema", name: "person", strict: true, schema };
    const { type, ...rest } = format;
    const expected = { [localModel]: [], [nativeModel]: { format }, [hostedModel]: { type, json_schema: rest } }[model];
    expect(sent).toEqual(model === localModel ? [] : [expected, expected]);
  });

  test("JSON mode answers an object", async () => {
    const { openai } = await running.service.account("1");
    running.provider.always({ text: '{"ok": true}' });
    const answer = await openai.responses.create({
      model,
      input: "Answer in JSON.",
      text: { format: { type: "json_object" } },
    });
    expect(JSON.parse(answer.output_text)).toBeTypeOf("object");
  });
});

describe("how an answer ends", () => {
  test.each([localModel, nativeModel, hostedModel])("%s: at its cap it is incomplete", async (model) => {
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

  test("hosted: withheld by a filter", async () => {
    const { openai } = await running.service.account("1");
    running.provider.respond(chatAnswer({ content: "I" }, "content_filter"));
    const answer = await openai.responses.create({ model: hostedModel, input: hello });
    expect(answer).toMatchObject({ status: "incomplete", incomplete_details: { reason: "content_filter" } });
  });

  test.each([nativeModel, hostedModel])("%s: a refusal is one, whole and streamed", async (model) => {
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

  test("hosted: a stream without usage is estimated, and says so in the ledger alone", async () => {
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

  test("hosted: cached and reasoning tokens cross, and are charged at their price", async () => {
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
    const told = {
      input_tokens: 1_000,
      input_tokens_details: { cached_tokens: 600 },
      output_tokens: 500,
      output_tokens_details: { reasoning_tokens: 300 },
      total_tokens: 1_500,
    };
    const answer = await openai.responses.create({ model: hostedModel, input: hello });
    expect(answer.usage).toMatchObject(told);
    const { data: stream, request_id } = await openai.responses
      .create({ model: hostedModel, input: hello, stream: true })
      .withResponse();
    expect(wholeStream(await Array.fromAsync(stream)).usage).toMatchObject(told);
    await running.service.settled();
    for (const id of [answer._request_id, request_id]) {
      const entry = await entryOf(running.service, id);
      expect(nanoUsd(entry.amount_usd)).toBe(-(400n * 150n + 600n * 75n + 500n * 600n));
    }
  });
});
