import { zodResponseFormat } from "openai/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk } from "../support/mock-openai.ts";
import { chatAnswer } from "../support/responses-events.ts";
import { asking, catalogWith, models, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();
const lenient = serviceOfFile({ CATALOG_FILE: catalogWith({ openai: { quirks: { extra_fields: ["top_k"] } } }) });
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const messageOf = (refusal: string) => ({ role: "assistant", content: null, refusal });

describe.each(models)("%s", (model) => {
  test("a stream: role first, created and finish_reason on every chunk, usage last", async () => {
    const { openai } = await running.service.account("1");
    const chunks = await Array.fromAsync(await openai.chat.completions.create({ ...asking(model), stream: true }));
    const last = chunks.pop();
    expect(last).toMatchObject({ choices: [], model, usage: { prompt_tokens: expect.any(Number) } });
    expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({ object: "chat.completion.chunk", model, id: last?.id });
      expect(chunk.created).toBeGreaterThan(1_600_000_000);
      expect(chunk.choices[0]).toHaveProperty("finish_reason");
      expect(chunk.usage).toBeUndefined();
    }
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
  });

  test("n: as many choices, in JSON and in a stream", async () => {
    const { openai } = await running.service.account("1");
    const whole = await openai.chat.completions.create({ ...asking(model), n: 3 });
    expect(whole.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    const streamed = await openai.chat.completions.stream({ ...asking(model), n: 3 }).finalChatCompletion();
    expect(streamed.choices.map(({ message }) => message.content)).toEqual(
      whole.choices.map(({ message }) => message.content),
    );
  });
});

test("the provider's refusal and log probabilities come back, in JSON and in a stream", async () => {
  const { openai } = await running.service.account("1");
  const refusal = "I cannot help with that.";
  const logprobs = { content: [{ token: "Hi", logprob: -0.1, bytes: [72, 105], top_logprobs: [] }], refusal: null };
  const choice = { index: 0, logprobs };
  running.provider.respond(
    chatAnswer({}, "stop", { choices: [{ ...choice, message: messageOf(refusal), finish_reason: "stop" }] }),
    {
      events: [
        mockChunk(undefined, null, { choices: [{ ...choice, delta: messageOf(refusal), finish_reason: null }] }),
        mockChunk({}, "stop"),
      ],
    },
  );
  const request = { ...asking(providerModel), response_format: zodResponseFormat(z.object({}), "nothing") };
  const answer = await openai.chat.completions.parse(request);
  expect(answer.choices[0]).toMatchObject({ logprobs, message: { refusal, parsed: null } });
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  expect(streamed.choices[0]).toMatchObject({ logprobs, message: { refusal } });
});

describe("the provider's request", () => {
  test.each([false, true])("a strict upstream gets no field that it does not know, stream: %s", async (stream) => {
    const customer = await running.service.account("1");
    const extras = { x_new: { deep: [1, null, "ü"] }, top_k: 3, thinking: { type: "enabled" } };
    const body = { ...asking(providerModel), ...extras, temperature: 0.5, seed: 7, verbosity: "low", stream };
    running.provider.always({ refuses: Object.keys(extras) });
    const response = await customer.post("/v1/chat/completions", body);
    expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, "x_new, top_k, thinking"]);
    await response.text();
    expect(running.provider.requests[0]?.body).toMatchObject({ temperature: 0.5, seed: 7, verbosity: "low" });
    const plain = await customer.post("/v1/chat/completions", { ...asking(providerModel), seed: 7 });
    expect([plain.status, plain.headers.get("x-ignored-params")]).toEqual([200, null]);
  });

  test("a field passes where the catalog says so", async () => {
    const customer = await lenient.service.account("1");
    const response = await customer.post("/v1/chat/completions", { ...asking(providerModel), top_k: 3 });
    expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, null]);
    expect(lenient.provider.requests[0]?.body).toMatchObject({ top_k: 3 });
  });

  test("parameters, tools and a conversation arrive unchanged, with the provider's model id, cap and store: false", async () => {
    const customer = await running.service.account("1");
    const call = { id: "call_0", type: "function", function: { name: "look", arguments: "{}" } };
    const given = {
      messages: [
        { role: "developer", content: "be brief" },
        {
          role: "user",
          name: "ann",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: pixel, detail: "low" } },
            { type: "image_url", image_url: { url: "https://example.com/cat.png" } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_0", content: [{ type: "text", text: "rain" }] },
        { role: "user", content: "thanks" },
      ],
      tools: [{ type: "function", function: { name: "look", parameters: { type: "object" }, strict: true } }],
      tool_choice: { type: "function", function: { name: "look" } },
      parallel_tool_calls: true,
      response_format: { type: "json_schema", json_schema: { name: "s", schema: { type: "object" } } },
      stop: ["a", "b"],
      seed: 42,
      n: 2,
      temperature: 0.3,
      top_p: 0.9,
      presence_penalty: 1,
      frequency_penalty: -1,
      logprobs: true,
      top_logprobs: 3,
    };
    const body = { model: providerModel, ...given, max_tokens: 77, store: true };
    expect((await customer.post("/v1/chat/completions", body)).status).toBe(200);
    const [request] = running.provider.requests;
    expect(request?.body).toEqual({ model: "gpt-4.1-mini", ...given, max_completion_tokens: 77, store: false });
    expect(request?.headers.authorization).toBe("Bearer sk-operator");
  });

  test("ids by which a provider shares caches and judges users are the account's own: tenants cannot meet", async () => {
    const customers = [await running.service.account("1"), await running.service.account("1")];
    const ids = { prompt_cache_key: "shared", safety_identifier: "shared", user: "shared" };
    for (const customer of customers) {
      await customer.post("/v1/chat/completions", { ...asking(providerModel), ...ids });
      await customer.post("/v1/responses", { model: providerModel, input: "Hi", ...ids });
      await customer.post("/v1/embeddings", { model: "openai/text-embedding-3-small", input: "Hi", user: "shared" });
    }
    const sent = running.provider.requests.map(({ body }) =>
      Object.keys(ids).flatMap((field) => (field in body ? [body[field]] : [])),
    );
    expect(sent.map((each) => each.length)).toEqual([3, 3, 1, 3, 3, 1]);
    const [first, second] = [new Set(sent.slice(0, 3).flat()), new Set(sent.slice(3).flat())];
    expect([first.size, second.size, first.isDisjointFrom(second)]).toEqual([1, 1, true]);
    expect([...first][0]).toMatch(/^[\w-]{43}$/);
  });

  test("a stream asks for usage, whatever the caller's options", async () => {
    const customer = await running.service.account("1");
    const response = await customer.post("/v1/chat/completions", {
      ...asking(providerModel),
      stream: true,
      stream_options: { include_usage: false, include_obfuscation: false },
      store: true,
    });
    expect(await response.text()).toMatch(/"choices":\[\],"usage":\{"prompt_tokens":9.*\n\ndata: \[DONE\]\n\n$/);
    expect(running.provider.requests[0]?.body).toEqual({
      ...asking("gpt-4.1-mini"),
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      max_completion_tokens: 32_768,
      store: false,
    });
  });

  test("the lower of two caps counts; a cap above the model's is lowered to it", async () => {
    const customer = await running.service.account("1");
    await customer.post("/v1/chat/completions", {
      ...asking(providerModel),
      max_tokens: 50,
      max_completion_tokens: 40,
    });
    await customer.post("/v1/chat/completions", { ...asking(providerModel), max_completion_tokens: 1_000_000 });
    expect(running.provider.requests.map(({ body }) => body["max_completion_tokens"])).toEqual([40, 32_768]);
    expect(running.provider.requests.map(({ body }) => body["max_tokens"])).toEqual([undefined, undefined]);
  });
});
