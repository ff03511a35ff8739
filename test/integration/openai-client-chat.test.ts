import { zodResponseFormat } from "openai/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk, mockText, mockUsage } from "../support/mock-openai.ts";
import {
  asking,
  catalogWith,
  entryOf,
  localModel,
  models,
  providerModel,
  serviceOfFile,
} from "../support/service-setup.ts";

const running = serviceOfFile();
const lenient = serviceOfFile({ CATALOG_FILE: catalogWith({ openai: { quirks: { extra_fields: ["top_k"] } } }) });
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const messageOf = (content: string) => ({ role: "assistant", content, refusal: null });
const bodyWith = (choices: readonly object[]) => ({
  body: { id: "chatcmpl-x", object: "chat.completion", created: 1, model: "mock", choices, usage: mockUsage() },
});

describe.each(models)("%s", (model) => {
  test("JSON: a completion under the service's model id, with usage", async () => {
    const { openai } = await running.service.account("1");
    const answer = await openai.chat.completions.create(asking(model));
    expect(answer).toMatchObject({ object: "chat.completion", model });
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0]).toMatchObject({ index: 0, finish_reason: "stop", message: { role: "assistant" } });
    expect(answer.choices[0]?.message.content).toContain("ello there");
    const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = answer.usage ?? {};
    expect(total).toBe((prompt ?? 0) + (completion ?? 0));
    expect(answer._request_id).toMatch(/^req_/);
    expect((await entryOf(running.service, answer._request_id)).request).toMatchObject({
      model,
      status: "succeeded",
      usage: { input: prompt, output: completion },
      estimated: false,
    });
  });

  test("stream: role first, created and finish_reason on every chunk, usage last", async () => {
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
    const whole = await openai.chat.completions.create(asking(model));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      whole.choices[0]?.message.content,
    );
    expect(last?.usage).toEqual(whole.usage);
  });

  test("the streaming helper: its events, the final completion, the usage", async () => {
    const { openai } = await running.service.account("1");
    const runner = openai.chat.completions.stream({ ...asking(model), stream_options: { include_usage: true } });
    const seen = { content: "", connect: 0, chunks: 0, end: 0 };
    runner
      .on("connect", () => seen.connect++)
      .on("chunk", () => seen.chunks++)
      .on("content", (delta) => {
        seen.content += delta;
      })
      .on("end", () => seen.end++);
    const completion = await runner.finalChatCompletion();
    expect(completion.choices[0]?.message).toMatchObject({ role: "assistant", content: seen.content });
    expect(await runner.finalContent()).toBe(seen.content);
    // The helper sums the fields that it knows.
    expect(completion.usage).toMatchObject(await runner.totalUsage());
    expect(completion.usage?.completion_tokens).toBeGreaterThan(0);
    expect(seen).toMatchObject({ connect: 1, end: 1 });
    expect(seen.chunks).toBeGreaterThan(3);
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

const person = z.object({ name: z.string(), age: z.int(), tags: z.array(z.enum(["red", "blue"])) });
const ada = { name: "Ada", age: 36, tags: ["blue"] as ("red" | "blue")[] };

describe("structured output", () => {
  const format = zodResponseFormat(person, "person");

  test("local: parse gives an object of the schema", async () => {
    const { openai } = await running.service.account("1");
    const request = { ...asking(localModel, 'I met "Ada", who is 36 and likes blue.'), response_format: format };
    const answer = await openai.chat.completions.parse(request);
    expect(answer.choices[0]?.message.parsed).toEqual(ada);
    const runner = openai.chat.completions.stream(request);
    const streamed = await runner.finalChatCompletion();
    expect(streamed.choices[0]?.message.parsed).toEqual(ada);
  });

  test("provider: the schema reaches it, its answer comes back parsed", async () => {
    const { openai } = await running.service.account("1");
    running.provider.always({ text: JSON.stringify(ada) });
    const request = { ...asking(providerModel), response_format: format };
    const answer = await openai.chat.completions.parse(request);
    expect(answer.choices[0]?.message.parsed).toEqual(ada);
    expect(running.provider.requests[0]?.body["response_format"]).toEqual(JSON.parse(JSON.stringify(format)));
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]?.message.parsed).toEqual(ada);
  });

  test("a refusal of the provider is passed on, in JSON and in a stream", async () => {
    const { openai } = await running.service.account("1");
    const refusal = "I cannot help with that.";
    running.provider.respond(
      bodyWith([
        { index: 0, message: { role: "assistant", content: null, refusal }, logprobs: null, finish_reason: "stop" },
      ]),
      { events: [mockChunk({ role: "assistant", refusal: "" }), mockChunk({ refusal }), mockChunk({}, "stop")] },
    );
    const request = { ...asking(providerModel), response_format: format };
    const answer = await openai.chat.completions.parse(request);
    expect(answer.choices[0]?.message).toMatchObject({ refusal, parsed: null });
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]?.message.refusal).toBe(refusal);
  });

  test.each(models)("%s: JSON mode answers an object", async (model) => {
    const { openai } = await running.service.account("1");
    if (model === providerModel) running.provider.always({ text: '{"ok": true}' });
    const request = { ...asking(model), response_format: { type: "json_object" as const } };
    const answer = await openai.chat.completions.create(request);
    expect(JSON.parse(answer.choices[0]?.message.content ?? "")).toBeTypeOf("object");
    expect(running.provider.requests.map(({ body }) => body["response_format"])).toEqual(
      model === providerModel ? [request.response_format] : [],
    );
  });
});

describe("vision", () => {
  const parts = [
    { type: "text" as const, text: "What is this?" },
    { type: "image_url" as const, image_url: { url: pixel, detail: "low" as const } },
    { type: "image_url" as const, image_url: { url: "https://example.com/cat.png" } },
  ];

  test("local: describes data addresses, names the others", async () => {
    const { openai } = await running.service.account("1");
    const answer = await openai.chat.completions.create({
      model: localModel,
      messages: [{ role: "user", content: parts }],
    });
    expect(answer.choices[0]?.message.content).toMatch(
      /PNG image of 1 x 1 pixels.*\n.*https:\/\/example\.com\/cat\.png/,
    );
  });

  test("provider: the parts arrive unchanged", async () => {
    const { openai } = await running.service.account("1");
    await openai.chat.completions.create({ model: providerModel, messages: [{ role: "user", content: parts }] });
    expect(running.provider.requests[0]?.body["messages"]).toEqual([{ role: "user", content: parts }]);
  });
});

describe("sampling", () => {
  test("local: stop cuts before it, a seed picks the words, the cap ends with length", async () => {
    const { openai } = await running.service.account("1");
    const say = async (more: object) => {
      const answer = await openai.chat.completions.create({ ...asking(localModel, "one two three"), ...more });
      return { text: answer.choices[0]?.message.content, finish: answer.choices[0]?.finish_reason };
    };
    expect((await say({ stop: "two" })).text).toMatch(/one $/);
    expect((await say({ stop: ["never", "two"] })).text).toMatch(/one $/);
    expect(await say({ seed: 7 })).toEqual(await say({ seed: 7 }));
    expect(await say({ seed: 7 })).not.toEqual(await say({ seed: 8 }));
    expect((await say({ max_tokens: 2 })).finish).toBe("length");
    expect((await say({ max_completion_tokens: 2 })).finish).toBe("length");
  });

  test("provider: stop, seed, n and penalties reach it", async () => {
    const { openai } = await running.service.account("1");
    const given = {
      stop: ["a", "b"],
      seed: 42,
      n: 2,
      temperature: 0.3,
      top_p: 0.9,
      presence_penalty: 1,
      frequency_penalty: -1,
    };
    await openai.chat.completions.create({ ...asking(providerModel), ...given });
    expect(running.provider.requests[0]?.body).toMatchObject(given);
  });

  test("provider: logprobs come back, in JSON and in a stream", async () => {
    const { openai } = await running.service.account("1");
    const logprobs = { content: [{ token: "Hi", logprob: -0.1, bytes: [72, 105], top_logprobs: [] }], refusal: null };
    running.provider.respond(bodyWith([{ index: 0, message: messageOf("Hi"), logprobs, finish_reason: "stop" }]), {
      events: [
        mockChunk(undefined, null, {
          choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, logprobs, finish_reason: null }],
        }),
        mockChunk({}, "stop"),
      ],
    });
    const request = { ...asking(providerModel), logprobs: true, top_logprobs: 3 };
    const answer = await openai.chat.completions.create(request);
    expect(answer.choices[0]?.logprobs).toEqual(logprobs);
    expect(running.provider.requests[0]?.body).toMatchObject({ logprobs: true, top_logprobs: 3 });
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]?.logprobs).toEqual(logprobs);
  });
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

  test("the provider's model id, the cap in its field, and store: false", async () => {
    const customer = await running.service.account("1");
    const response = await customer.post("/v1/chat/completions", {
      ...asking(providerModel),
      max_tokens: 77,
      store: true,
    });
    expect(response.status).toBe(200);
    const [request] = running.provider.requests;
    expect(request?.body).toEqual({
      ...asking("gpt-4.1-mini"),
      max_completion_tokens: 77,
      store: false,
    });
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

  test("fields that are null count as absent", async () => {
    const customer = await running.service.account("1");
    const nothing = { max_tokens: null, stream: null, stop: null, n: null, tools: null, response_format: null };
    const response = await customer.post("/v1/chat/completions", { ...asking(providerModel), ...nothing });
    expect(((await response.json()) as { choices: unknown }).choices).toMatchObject([
      { message: { content: mockText } },
    ]);
  });
});

test("an incomplete answer is completed: id, created, index, role, finish_reason, usage", async () => {
  const { openai } = await running.service.account("1");
  running.provider.respond({ body: { choices: [{ message: { content: "Hi" } }] } });
  const { _request_id, ...answer } = await openai.chat.completions.create(asking(providerModel));
  expect(answer).toEqual({
    id: `chatcmpl-${_request_id}`,
    object: "chat.completion",
    created: expect.any(Number),
    model: providerModel,
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: null }],
    usage: {
      prompt_tokens: expect.any(Number),
      completion_tokens: 1,
      total_tokens: expect.any(Number),
      cost_usd: expect.stringMatching(/^0[.]0+[1-9]/),
    },
  });
});

test("an answer larger than a frame arrives whole", async () => {
  const { openai } = await running.service.account("1");
  // Four bytes and two UTF-16 units each: a part must not end in the middle of one.
  const text = `x${"😀".repeat(300_000)}`;
  running.provider.always({ text });
  const answer = await openai.chat.completions.create(asking(providerModel));
  expect(answer.choices[0]?.message.content === text).toBe(true);
  const streamed = await openai.chat.completions.stream(asking(providerModel)).finalContent();
  expect(streamed === text).toBe(true);
});
