import { expect, test } from "vitest";
import { conversation, models, strictUpstreams } from "../support/strict-upstreams-setup.ts";

const { running, ask } = strictUpstreams();

test("Grok's reasoning is billed though its count of the answer leaves it out, cached and long prompts at their prices", async () => {
  const usage = (prompt: number, cached: number) => ({
    prompt_tokens: prompt,
    completion_tokens: 1,
    total_tokens: prompt + 229,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: 228 },
  });
  const choices = [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }];
  running.servers["xai"]?.respond(
    { body: { choices, usage: usage(12, 2) } },
    { body: { choices, usage: usage(199_999, 0) } },
    { body: { choices, usage: usage(200_000, 0) } },
  );
  const messages = [{ role: "user", content: "word ".repeat(50_000) }];
  const entries = [];
  for (const _ of [1, 2, 3]) entries.push((await ask(models.xai, { messages })).entry);
  expect(entries[0]?.request).toMatchObject({ usage: { input: 10, cached_input: 2, output: 229 } });
  // 10 x $2 + 2 x $0.50 + 229 x $6 per million; from 200,000 tokens on everything costs twice as much.
  expect(entries.map((entry) => entry?.amount_usd)).toEqual(["-0.001395", "-0.401372", "-0.802748"]);
});

test("a whole answer that the server only streams is put together, with its tool calls and its usage", async () => {
  const call = (index: number, more: object) => ({
    choices: [{ index: 0, delta: { tool_calls: [{ index, ...more }] } }],
  });
  running.servers["fireworks"]?.respond({
    events: [
      { choices: [{ index: 1, delta: { function_call: { name: "f", arguments: "{" } } }] },
      { choices: [{ index: 1, delta: { function_call: { arguments: "}" } }, finish_reason: "function_call" }] },
      {
        id: "c1",
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta: { role: "assistant", reasoning_content: "H" } }],
      },
      { choices: [{ index: 0, delta: { reasoning_content: "m." } }] },
      { choices: [{ index: 0, delta: { content: "I " } }] },
      { choices: [{ index: 0, delta: { content: "add." } }] },
      call(0, { id: "call_a", type: "function", function: { name: "add", arguments: '{"a"' } }),
      call(0, { function: { arguments: ":1}" } }),
      call(1, { id: "call_b", type: "function", function: { name: "add", arguments: "{}" } }),
      { choices: [{ index: 0, delta: { tool_calls: [null] } }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
      { choices: [], usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 } },
    ],
  });
  const { status, text, entry } = await ask(models.fireworks, conversation());
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({
    object: "chat.completion",
    choices: [
      {
        message: {
          role: "assistant",
          content: "I add.",
          reasoning_content: "Hm.",
          tool_calls: [
            { id: "call_a", type: "function", function: { name: "add", arguments: '{"a":1}' } },
            { id: "call_b", type: "function", function: { name: "add", arguments: "{}" } },
          ],
        },
        finish_reason: "tool_calls",
      },
      { index: 1, message: { function_call: { name: "f", arguments: "{}" } }, finish_reason: "function_call" },
    ],
    usage: { prompt_tokens: 7, completion_tokens: 5 },
  });
  expect(entry?.request.usage).toMatchObject({ input: 7, output: 5 });
});

test("content in parts and ends of other names arrive as OpenAI has them, whole and streamed", async () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
    { type: "text", text: "Four." },
  ];
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  running.servers["mistral"]?.respond(
    {
      body: { choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "model_length" }], usage },
    },
    { events: [{ choices: [{ index: 0, delta: { content }, finish_reason: "model_length" }], usage }] },
  );
  const whole = JSON.parse((await ask(models.mistral, conversation())).text) as { choices: unknown[] };
  const end = { finish_reason: "length", native_finish_reason: "model_length" };
  expect(whole.choices[0]).toMatchObject({ message: { content: "Four.", reasoning_content: "Hm." }, ...end });
  const { text } = await ask(models.mistral, { ...conversation(), stream: true });
  const [frame = ""] = text.split("\n\n");
  const chunk = JSON.parse(frame.slice(6)) as { choices: unknown[] };
  expect(chunk.choices[0]).toMatchObject({ delta: { content: "Four.", reasoning_content: "Hm." }, ...end });
});

test.each([
  ["mistral", { body: { choices: [{ index: 0, message: {}, finish_reason: "error" }] } }, 502],
  ["minimax", { status: 200, body: { type: "error", error: { message: "invalid", http_code: "400" } } }, 400],
  ["minimax", { body: { base_resp: { status_code: 2013, status_msg: "invalid params" } } }, 400],
  ["minimax", { body: { base_resp: { status_code: 1008, status_msg: "insufficient balance" } } }, 502],
  ["moonshot", { status: 429, body: { error: { type: "exceeded_current_quota_error", message: "empty" } } }, 502],
] as const)("%s: an error in its own shape is what it means", async (upstream, answer, status) => {
  running.servers[upstream]?.respond(answer);
  const customer = await running.service.account("1");
  const { model, ...rest } = { model: models[upstream], ...conversation() };
  const response = await customer.post("/v1/chat/completions", { model, ...rest });
  expect(response.status).toBe(status);
  await running.service.settled();
  expect(await customer.available()).toBe("1.00");
});

test("a failure that comes as an end, and an empty account that comes as 429, move on to the next upstream", async () => {
  const end = { index: 0, message: {}, finish_reason: "network_error" };
  const empty = { error: { code: "1113", message: "Insufficient balance" } };
  running.servers["zai"]?.respond({ body: { choices: [end] } }, { status: 429, body: empty });
  for (const _ of [1, 2]) {
    const { status, entry } = await ask(models.zai, conversation());
    expect([status, entry?.request]).toMatchObject([200, { upstream: "together", attempts: { length: 2 } }]);
  }
});
