import assert from "node:assert/strict";
import test from "node:test";
import OpenAI, { AuthenticationError, BadRequestError, NotFoundError, toFile } from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const { SERVICE_URL, SERVICE_KEY } = process.env;
const openai = new OpenAI({ apiKey: SERVICE_KEY, baseURL: `${SERVICE_URL}/v1`, maxRetries: 0 });
const says = (content) => [{ role: "user", content }];
const City = z.object({ city: z.string(), degrees: z.number() });
const chatModels = ["local/chat", "openai/gpt-4.1-mini", "openai/gpt-5.5", "anthropic/claude-sonnet-5"];
const responsesModels = ["local/chat", "openai/gpt-5.5", "gpt-5.5"];

for (const model of [...chatModels, "google/gemini-2.5-flash"])
  test(`chat, whole and streamed: ${model}`, async () => {
    const whole = await openai.chat.completions.create({ model, messages: says("Good morning") });
    assert.equal(whole.choices[0].finish_reason, "stop");
    assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
    const stream = openai.chat.completions.stream({ model, messages: says("Good morning") });
    assert.equal(await stream.finalContent(), whole.choices[0].message.content);
    assert.equal((await stream.totalUsage()).total_tokens, whole.usage.total_tokens);
  });

test("chat: tools until the answer", async () => {
  const cities = [];
  const tool = zodFunction({
    name: "look_up",
    parameters: z.object({ city: z.string() }),
    function: ({ city }) => {
      cities.push(city);
      return "rain";
    },
  });
  for (const stream of [false, true]) {
    const runner = openai.chat.completions.runTools({
      model: "local/chat",
      messages: says('look up "Oslo"'),
      tools: [tool],
      stream,
    });
    assert.match(await runner.finalContent(), /look_up returned: rain/);
  }
  assert.deepEqual(cities, ["Oslo", "Oslo"]);
});

test("chat: an object by its schema", async () => {
  const answer = await openai.chat.completions.parse({
    model: "local/chat",
    messages: says('"Oslo" has 7 degrees'),
    response_format: zodResponseFormat(City, "weather"),
  });
  assert.deepEqual(answer.choices[0].message.parsed, { city: "Oslo", degrees: 7 });
});

test("chat: a ping before the first word", async () => {
  const stream = await openai.chat.completions.create({
    model: "local/chat",
    messages: says("slow:1800"),
    stream: true,
  });
  let text = "";
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
  assert.match(text, /slow/);
});

for (const model of responsesModels)
  test(`responses, whole and streamed: ${model}`, async () => {
    const whole = await openai.responses.create({ model, input: "Good morning" });
    assert.equal(whole.status, "completed");
    assert.ok(whole.output_text.length > 0);
    const stream = openai.responses.stream({ model, input: "Good morning" });
    const streamed = await stream.finalResponse();
    assert.equal(streamed.output_text, whole.output_text);
    assert.deepEqual(streamed.usage, whole.usage);
  });

test("responses: an object by its schema", async () => {
  const answer = await openai.responses.parse({
    model: "local/chat",
    input: '"Oslo" has 7 degrees',
    text: { format: zodTextFormat(City, "weather") },
  });
  assert.deepEqual(answer.output_parsed, { city: "Oslo", degrees: 7 });
});

for (const model of ["local/chat", "openai/gpt-5.5"])
  test(`responses: a tool's result goes back with the whole output: ${model}`, async () => {
    const tools = [
      {
        type: "function",
        name: "look_up",
        strict: true,
        parameters: {
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
          additionalProperties: false,
        },
      },
    ];
    const input = [{ role: "user", content: 'look_up "Oslo"' }];
    const first = await openai.responses.create({ model, input, tools });
    const call = first.output.find(({ type }) => type === "function_call");
    assert.equal(call.name, "look_up");
    const result = { type: "function_call_output", call_id: call.call_id, output: "rain" };
    const second = await openai.responses.create({ model, input: [...input, ...first.output, result], tools });
    assert.ok(second.output_text.length > 0);
  });

const everyProvider = [...chatModels, "google/gemini-2.5-flash"];
const isOpen = ({ status }) => status === "queued" || status === "in_progress";
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

for (const model of everyProvider)
  test(`responses in the background: ${model}`, async () => {
    let polled = await openai.responses.create({ model, input: "Good morning", background: true });
    assert.equal(polled.status, "queued");
    for (; isOpen(polled); polled = await openai.responses.retrieve(polled.id)) await pause();
    assert.equal(polled.status, "completed");
    assert.ok(polled.output_text.length > 0);

    const events = [];
    for await (const event of await openai.responses.create({
      model,
      input: "Good morning",
      background: true,
      stream: true,
    }))
      events.push(event);
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, n) => n),
    );
    const { response } = events.at(-1);
    assert.equal(response.status, "completed");
    const again = [];
    for await (const event of await openai.responses.retrieve(response.id, { stream: true, starting_after: 3 }))
      again.push(event);
    assert.deepEqual(again, events.slice(4));
    const resumed = await openai.responses.stream({ response_id: response.id, starting_after: 0 }).finalResponse();
    assert.equal(resumed.output_text, polled.output_text);
    const next = await openai.responses.create({ model, input: "And now?", previous_response_id: response.id });
    assert.equal(next.previous_response_id, response.id);
  });

test("responses in the background: cancelled, twice", async () => {
  const { id } = await openai.responses.create({ model: "local/chat", input: "slow:20000", background: true });
  const cancelled = await openai.responses.cancel(id);
  assert.equal(cancelled.status, "cancelled");
  assert.deepEqual(await openai.responses.cancel(id), cancelled);
  await openai.responses.delete(id);
  await assert.rejects(openai.responses.retrieve(id), { status: 404 });
});

test("responses: a ping before the first word", async () => {
  const stream = openai.responses.stream({ model: "local/chat", input: "slow:1800" });
  assert.match((await stream.finalResponse()).output_text, /slow/);
});

test("embeddings", async () => {
  const { data, usage } = await openai.embeddings.create({ model: "local/embeddings", input: ["one", "two"] });
  assert.deepEqual(
    data.map(({ embedding }) => embedding.length > 100),
    [true, true],
  );
  assert.ok(usage.total_tokens > 0);
});

test("images", async () => {
  const image = { model: "local/image", prompt: "a fjord", size: "256x256" };
  const { data } = await openai.images.generate({ ...image, response_format: "b64_json" });
  assert.deepEqual([...Buffer.from(data[0].b64_json, "base64").subarray(1, 4)], [...Buffer.from("PNG")]);
  const [{ url }] = (await openai.images.generate({ ...image, response_format: "url" })).data;
  assert.ok(url.startsWith("http"));
});

test("files: uploaded, read, listed and deleted", async () => {
  const content = '{"custom_id":"1"}\n';
  const sent = await toFile(Buffer.from(content), "requests.jsonl");
  const file = await openai.files.create({ file: sent, purpose: "batch" });
  assert.equal(await (await openai.files.content(file.id)).text(), content);
  const ids = [];
  for await (const { id } of openai.files.list({ limit: 1, order: "asc" })) ids.push(id);
  assert.ok(ids.includes(file.id));
  assert.deepEqual(await openai.files.delete(file.id), { id: file.id, object: "file", deleted: true });
});

test("models: a list, and one", async () => {
  const ids = [];
  for await (const { id } of openai.models.list()) ids.push(id);
  assert.ok(ids.includes("local/chat"));
  assert.equal((await openai.models.retrieve("local/chat")).id, "local/chat");
});

test("errors are the client's own", async () => {
  const ask = (client, body) => client.chat.completions.create({ messages: says("Hello"), ...body });
  await assert.rejects(ask(openai, { model: "local/none" }), NotFoundError);
  await assert.rejects(ask(openai, { model: "local/chat", temperature: "hot" }), (error) => {
    assert.ok(error instanceof BadRequestError);
    assert.equal(error.param, "temperature");
    return true;
  });
  await assert.rejects(ask(openai.withOptions({ apiKey: "live_wrong" }), { model: "local/chat" }), AuthenticationError);
});
