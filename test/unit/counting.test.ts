import { expect, test } from "vitest";
import { alone, framing, never, said, shareCounting, startCounting } from "../support/counting-setup.ts";

const counting = shareCounting();
const estimate = (request: Record<string, unknown>) => counting.estimate(request, never);

/** The example of OpenAI's cookbook, "How to count tokens with tiktoken": the API counts 124 for gpt-4o. */
const jargon = [
  ["system", "", "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."],
  ["system", "example_user", "New synergies will help drive top-line growth."],
  ["system", "example_assistant", "Things working well together will increase revenue."],
  [
    "system",
    "example_user",
    "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
  ],
  ["system", "example_assistant", "Let's talk later when we're less busy about how to do better."],
  ["user", "", "This late pivot means we don't have time to boil the ocean for the client deliverable."],
].map(([role, name, content]) => ({ role, content, ...(name && { name }) }));

/** The same page's example with a tool: the API counts 101 for gpt-4o. */
const weather = {
  messages: [
    { role: "system", content: "You are a helpful assistant that can answer to questions about the weather." },
    { role: "user", content: "What's the weather like in San Francisco?" },
  ],
  tools: [
    {
      type: "function",
      function: {
        name: "get_current_weather",
        description: "Get the current weather in a given location",
        parameters: {
          type: "object",
          properties: {
            location: { type: "string", description: "The city and state, e.g. San Francisco, CA" },
            unit: {
              type: "string",
              description: "The unit of temperature to return",
              enum: ["celsius", "fahrenheit"],
            },
          },
          required: ["location"],
        },
      },
    },
  ],
};

test("plain messages count as their provider counts them", async () => {
  expect(await estimate({ messages: jargon })).toBe(124);
});

test("a tool counts within 15 % of what its provider counts", async () => {
  const tokens = await estimate(weather);
  expect(tokens).toBeGreaterThanOrEqual(101);
  expect(tokens).toBeLessThan(101 * 1.15);
});

/** The counts of OpenAI's own tokenizer (the package tiktoken 1.0.22). */
test("code and other scripts are tokenized", async () => {
  expect(await estimate(said("hello world"))).toBe(alone + 2);
  expect(await estimate(said("人工智能是计算机科学的一个分支"))).toBe(alone + 10);
  expect(await estimate(said("for (let i = 0; i < 10; i++) {}"))).toBe(alone + 16);
});

test("text that looks like a control token counts as text", async () => {
  expect(await estimate(said("text <|endoftext|> more"))).toBe(alone + 9);
});

test("the parts of a message count as its text does", async () => {
  const content = [
    { type: "text", text: "hello world" },
    { type: "text", text: "hello world" },
  ];
  expect(await estimate(said(content))).toBe(alone + 4);
});

test("a call counts by its name and arguments, its result by its text, reasoning not at all", async () => {
  const call = { id: "call_1", type: "function", function: { name: "look", arguments: '{"at":"sky"}' } };
  const messages = [
    { role: "user", content: "hello world" },
    { role: "assistant", content: null, tool_calls: [call], reasoning_details: [{ text: "long thoughts" }] },
    { role: "tool", tool_call_id: "call_1", content: "hello world" },
  ];
  const plain = 3 * framing.message + framing.answer + 4;
  const tokens = await estimate({ messages });
  expect(tokens - plain).toBe(4 + 1 + 5);
});

test("the schema of the answer counts", async () => {
  const schema = { type: "object", properties: { name: { type: "string" } } };
  const format = { type: "json_schema", json_schema: { name: "x", schema } };
  const [without, written] = await Promise.all([estimate(said("hi")), estimate(said(JSON.stringify(schema)))]);
  expect(await estimate({ ...said("hi"), response_format: format })).toBe(without + written - alone);
});

test("a request without text is counted without a thread", async () => {
  const { counting, threads } = startCounting();
  expect(await counting.estimate({ messages: [{ role: "user", content: "" }] }, never)).toBe(alone);
  expect(threads).toHaveLength(0);
});

test.each([[{}], [{ messages: null, tools: 7 }], [{ messages: [null, 3, { content: [null, 7] }], tools: [null] }]])(
  "a request in the wrong shape does no harm: %j",
  async (request) => {
    expect(await estimate(request)).toBeGreaterThan(0);
  },
);

test("JSON nested too deep is refused, and names its field", async () => {
  const deep: unknown = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
  const request = { ...said("hi"), tools: [{ type: "function", function: { parameters: deep } }] };
  await expect(estimate(request)).rejects.toMatchObject({ message: expect.stringContaining("tools") });
});
