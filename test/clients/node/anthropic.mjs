import assert from "node:assert/strict";
import test from "node:test";
import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { z } from "zod";

const { SERVICE_URL, SERVICE_KEY } = process.env;
const anthropic = new Anthropic({ apiKey: SERVICE_KEY, baseURL: SERVICE_URL, maxRetries: 0 });
const models = ["local/chat", "anthropic/claude-sonnet-5", "claude-sonnet-5"];
const asking = (model, content = "Good morning") => ({
  model,
  max_tokens: 500,
  messages: [{ role: "user", content }],
});
const textOf = ({ content }) => content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");

for (const model of models)
  test(`messages, whole and streamed: ${model}`, async () => {
    const whole = await anthropic.messages.create({ ...asking(model), system: "Be brief." });
    assert.equal(whole.stop_reason, "end_turn");
    assert.match(textOf(whole), /Good morning/);
    const stream = anthropic.messages.stream({ ...asking(model), system: "Be brief." });
    const streamed = await stream.finalMessage();
    assert.equal(textOf(streamed), textOf(whole));
    assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
    assert.equal(streamed.usage.input_tokens, whole.usage.input_tokens);
  });

test("messages: message_start says the input's tokens", async () => {
  for await (const event of await anthropic.messages.create({ ...asking("local/chat"), stream: true }))
    if (event.type === "message_start") assert.ok(event.message.usage.input_tokens > 0);
});

for (const model of ["local/chat", "claude-sonnet-5"])
  test(`messages: tools until the answer: ${model}`, async () => {
    const cities = [];
    const tool = betaZodTool({
      name: "look_up",
      description: "The weather of a city",
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => {
        cities.push(city);
        return "rain";
      },
    });
    for (const stream of [false, true]) {
      const runner = anthropic.beta.messages.toolRunner({ ...asking(model, 'look_up "Oslo"'), tools: [tool], stream });
      assert.match(textOf(await runner.runUntilDone()), /rain/);
    }
    assert.equal(cities.length, 2);
  });

test("messages: thinking and a cached prompt", async () => {
  const answer = await anthropic.messages.create({
    ...asking("claude-sonnet-5"),
    thinking: { type: "adaptive" },
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  });
  assert.equal(answer.content[0].type, "thinking");
});

test("messages: an hour of caching is a hint for a model without it", async () => {
  const system = [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }];
  assert.match(textOf(await anthropic.messages.create({ ...asking("local/chat"), system })), /Good morning/);
});

test("messages: an image", async () => {
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==";
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
  const answer = await anthropic.messages.create(asking("local/chat", [image, { type: "text", text: "What is it?" }]));
  assert.match(textOf(answer), /I see/);
});

test("messages: a ping before the first word", async () => {
  const stream = anthropic.messages.stream(asking("local/chat", "slow:1800"));
  assert.match(await stream.finalText(), /slow/);
});

for (const model of models)
  test(`count_tokens: ${model}`, async () => {
    const { max_tokens: _, ...counted } = asking(model);
    assert.ok((await anthropic.messages.countTokens(counted)).input_tokens > 0);
  });

test("models: a list, and one", async () => {
  const ids = [];
  for await (const { id } of anthropic.models.list({ limit: 5 })) ids.push(id);
  assert.ok(ids.includes("local/chat"));
  assert.equal((await anthropic.models.retrieve("claude-sonnet-5")).type, "model");
});

test("errors are the client's own", async () => {
  await assert.rejects(anthropic.messages.create(asking("claude-none")), NotFoundError);
  await assert.rejects(anthropic.messages.create({ ...asking("local/chat"), max_tokens: 0 }), BadRequestError);
  const other = anthropic.withOptions({ apiKey: "live_wrong" });
  await assert.rejects(other.messages.create(asking("local/chat")), AuthenticationError);
});
