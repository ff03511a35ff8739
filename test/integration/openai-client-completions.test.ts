import { expect, test } from "vitest";
import { chatProvider, formatsService, local, sent } from "../support/formats-service.ts";
import { expectUntouched, nanoUsd, refusal, refusalOf } from "../support/service-setup.ts";

const served = formatsService();
const prompt = "Hello there";

test("JSON and a stream are of text_completions under the service's model id", async () => {
  const { openai } = await served.service.account("1");
  const body = { model: local.model, prompt: [prompt], max_tokens: 64 };
  const { id, created, usage, _request_id, ...rest } = await openai.completions.create(body);
  expect(rest).toEqual({
    object: "text_completion",
    model: local.model,
    choices: [{ text: local.says, index: 0, logprobs: null, finish_reason: "stop" }],
  });
  expect([id, created]).toEqual([expect.stringMatching(/^cmpl-/), expect.any(Number)]);
  const chunks = await Array.fromAsync(await openai.completions.create({ ...body, stream: true }));
  expect(new Set(chunks.map(({ object, model }) => `${object} ${model}`))).toEqual(
    new Set([`text_completion ${local.model}`]),
  );
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  const last = chunks.pop();
  expect([last?.choices, last?.usage?.total_tokens]).toEqual([[], usage?.total_tokens]);
  expect(chunks.map(({ choices }) => choices[0]?.finish_reason).filter(Boolean)).toEqual(["stop"]);
});

test("the provider gets a chat call, without the fields of completions", async () => {
  const { openai } = await served.service.account("1");
  const options = { temperature: 0.5, stop: ["END"], max_tokens: 50, n: 2 };
  const own = { best_of: 1, echo: false, logprobs: null, suffix: null };
  await openai.completions.create({ model: chatProvider.model, prompt, ...options, ...own });
  const { max_tokens, ...same } = options;
  const { model: _, ...body } = sent(served, chatProvider);
  expect(body).toEqual({
    messages: [{ role: "user", content: prompt }],
    ...same,
    max_completion_tokens: max_tokens,
    store: false,
  });
});

test("n choices, stop and the cap, as in chat", async () => {
  const { openai } = await served.service.account("1");
  const answer = await openai.completions.create({ model: local.model, prompt, n: 2, stop: "there" });
  expect(answer.choices.map(({ text, index }) => [index, text])).toEqual([
    [0, 'You said: "Hello '],
    [1, 'I read: "Hello '],
  ]);
  const stream = await openai.completions.create({ model: local.model, prompt, n: 2, stop: "there", stream: true });
  const texts = ["", ""];
  for await (const { choices } of stream) for (const { index, text } of choices) texts[index] += text;
  expect(texts).toEqual(answer.choices.map(({ text }) => text));
  const cut = await openai.completions.create({ model: local.model, prompt: "tokens:30", max_tokens: 3 });
  expect(cut.choices).toMatchObject([{ text: "token token token", finish_reason: "length" }]);
});

test.each<[field: string, fields: object]>([
  ["prompt", { prompt: undefined }],
  ["prompt", { prompt: "" }],
  ["prompt", { prompt: ["a", "b"] }],
  ["prompt", { prompt: [1, 2] }],
  ["prompt[0]", { prompt: [[1, 2]] }],
  ["suffix", { suffix: "end" }],
  ["echo", { echo: true }],
  ["best_of", { best_of: 2 }],
  ["logprobs", { logprobs: 0 }],
  ["tools", { tools: [{ type: "function", function: { name: "f" } }] }],
  ["messages", { messages: [{ role: "user", content: "a" }] }],
  ["max_tokens", { max_tokens: 0 }],
])("%s is refused by its name: %j", async (param, fields) => {
  const customer = await served.service.account("1");
  const response = await customer.post("/v1/completions", { model: local.model, prompt, ...fields });
  expect(await refusalOf(response)).toEqual(
    refusal({ status: 400, type: "invalid_request_error", code: "invalid_value", param }),
  );
  await expectUntouched(served.service, customer, "1.00");
});

test("a stream that breaks ends with the error, and the delivered part is charged", async () => {
  const customer = await served.service.account("1");
  const body = { model: local.model, prompt: "stream-error:4", stream: true };
  const text = await (await customer.post("/v1/completions", body)).text();
  expect(text).toMatch(/^data: \{"id":"cmpl-[^\n]+\n\ndata: /);
  expect(text).toContain('"code":"upstream_error"');
  await served.service.settled();
  expect(nanoUsd(await customer.available())).toBeLessThan(nanoUsd("1.00"));
});
