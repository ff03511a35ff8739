import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { describe, expect, test } from "vitest";
import { nativeModel, reasoningModel, wholeStream } from "../support/responses-events.ts";
import { providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();
const path = "/v1/responses";
/** Chat is converted for it. */
const responsesOnlyModel = "openai/gpt-5.4";
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** They are sent upstream as an HMAC with the account, so that tenants share no cache. */
const identifiers = { user: "u1", safety_identifier: "s1", prompt_cache_key: "k1" };
const isolated = Object.fromEntries(
  Object.keys(identifiers).map((field) => [field, expect.stringMatching(/^[\w-]{43}$/) as string]),
);

/** A request with known and unknown fields. */
const everything = {
  input: [
    { role: "developer", content: "Be brief." },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "What is this? ü" },
        { type: "input_image", image_url: pixel, detail: "low" },
        { type: "input_image", image_url: "https://example.com/cat.png" },
        { type: "input_file", filename: "a.txt", file_data: "data:text/plain;base64,aGk=" },
      ],
    },
    {
      type: "function_call",
      id: "fc_1",
      call_id: "call_1",
      name: "look",
      arguments: '{"at":"it"}',
      status: "completed",
    },
    { type: "function_call_output", call_id: "call_1", output: [{ type: "input_text", text: "A cat." }] },
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      phase: "final_answer",
      content: [{ type: "output_text", text: "A cat.", annotations: [], logprobs: [] }],
    },
    { role: "user", content: "Sure?" },
  ],
  instructions: "Say what you see.",
  include: ["message.output_text.logprobs"],
  top_logprobs: 3,
  text: { format: { type: "text" }, verbosity: "low" },
  tools: [
    {
      type: "function",
      name: "look",
      description: "Looks",
      strict: true,
      parameters: { type: "object", properties: {}, required: [], additionalProperties: false },
    },
    { type: "custom", name: "shout", format: { type: "text" } },
  ],
  tool_choice: { type: "function", name: "look" },
  parallel_tool_calls: false,
  max_tool_calls: 2,
  temperature: 0.3,
  top_p: 0.9,
  truncation: "auto",
  metadata: { a: "b" },
  ...identifiers,
  service_tier: "auto",
  x_new: { deep: [1, null, "ü"] },
};

describe("requests to the provider", () => {
  test.each([nativeModel, providerModel])("%s: the body passes through but for model, cap and store", async (model) => {
    const customer = await running.service.account("1");
    const response = await customer.post(path, { model, ...everything, max_output_tokens: 77, store: true });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ignored-params")).toBeNull();
    const [request, ...others] = running.provider.requests;
    expect(others).toEqual([]);
    expect(request).toMatchObject({ method: "POST", path });
    expect(request?.body).toEqual({
      model: nativeModel,
      ...everything,
      ...isolated,
      max_output_tokens: 77,
      store: false,
    });
    expect(request?.headers.authorization).toBe("Bearer sk-operator");
    expect(((await response.json()) as { model: string }).model).toBe(model);
  });

  test("the options of a stream pass through", async () => {
    const customer = await running.service.account("1");
    const stream = { stream: true, stream_options: { include_obfuscation: false } };
    const response = await customer.post(path, { model: nativeModel, ...everything, ...stream });
    expect(await response.text()).toContain("response.completed");
    const cap = { max_output_tokens: 32_768 };
    expect(running.provider.requests[0]?.body).toEqual({
      model: nativeModel,
      ...everything,
      ...isolated,
      ...stream,
      ...cap,
      store: false,
    });
  });

  test("neither the caller's key nor its addresses are sent", async () => {
    const customer = await running.service.account("1");
    await customer.openai.responses.create({ model: nativeModel, input: "hi" });
    const { headers } = running.provider.requests[0] ?? {};
    expect(JSON.stringify(headers)).not.toContain(customer.key);
    for (const name of ["x-forwarded-for", "x-stainless-lang", "openai-organization"])
      expect(headers).not.toHaveProperty(name);
  });

  test("the cap is limited by the model and by the balance", async () => {
    const customer = await running.service.account("1");
    await customer.post(path, { model: nativeModel, input: "hi", max_output_tokens: 1_000_000 });
    const insufficient = await running.service.account("0.002");
    await insufficient.post(path, { model: nativeModel, input: "hi" });
    const [own, covered] = running.provider.requests.map(({ body }) => Number(body["max_output_tokens"]));
    expect(own).toBe(32_768);
    expect(covered).toBeGreaterThan(500);
    expect(covered).toBeLessThan(1_250);
  });
});

describe("reasoning", () => {
  const state = "ZW5jcnlwdGVk";

  test.each([false, true])(
    "output that is sent back has its state, though nothing is stored, stream: %s",
    async (stream) => {
      const { openai } = await running.service.account("1");
      const input = [{ role: "user" as const, content: "Hello there" }];
      const request = { model: reasoningModel, include: ["message.input_image.image_url" as const] };
      const first = stream
        ? wholeStream(await Array.fromAsync(await openai.responses.create({ ...request, input, stream: true })))
        : await openai.responses.create({ ...request, input });
      const [thought] = first.output;
      expect(thought).toMatchObject({ type: "reasoning", id: "rs_mock_0", encrypted_content: state });
      const turns = [...input, ...toResponseInputItems(first.output), { role: "user" as const, content: "And now?" }];
      expect((await openai.responses.create({ model: reasoningModel, input: turns })).status).toBe("completed");
      const [asked, again] = running.provider.requests.map(({ body }) => body);
      expect(asked?.["include"]).toEqual([...request.include, "reasoning.encrypted_content"]);
      expect(again).toMatchObject({ store: false, include: ["reasoning.encrypted_content"] });
      expect(again?.["input"]).toEqual(JSON.parse(JSON.stringify(turns)));
    },
  );

  test("a chat caller of the model gets the state as well", async () => {
    const customer = await running.service.account("1");
    const messages = [{ role: "user", content: "Hello there" }];
    const ask = async (more: readonly unknown[] = []) => {
      const answer = await customer.post("/v1/chat/completions", {
        model: responsesOnlyModel,
        messages: [...messages, ...more],
      });
      return ((await answer.json()) as { choices: { message: { reasoning_details?: unknown } }[] }).choices[0]?.message;
    };
    const message = await ask();
    expect(message?.reasoning_details).toMatchObject([{ type: "reasoning.summary" }, { data: state }]);
    await ask([message, { role: "user", content: "And now?" }]);
    const [asked, again] = running.provider.requests.map(({ body }) => body);
    expect(asked).toMatchObject({ include: ["reasoning.encrypted_content"], store: false });
    expect(again?.["input"]).toMatchObject([{}, { type: "reasoning", encrypted_content: state }, {}, {}]);
  });

  test("a reasoning item without state is removed and named: the provider refuses it", async () => {
    const customer = await running.service.account("1");
    const input = [
      { role: "user", content: "Hello" },
      { type: "reasoning", id: "rs_1", summary: [] },
      { role: "user", content: "And now?" },
    ];
    const answer = await customer.post(path, { model: reasoningModel, input });
    expect([answer.status, answer.headers.get("x-ignored-params")]).toEqual([200, "input.reasoning"]);
    expect(running.provider.requests[0]?.body["input"]).toEqual([input[0], input[2]]);
  });

  test("fields that models without reasoning refuse are passed on, and are the caller's error", async () => {
    const { openai } = await running.service.account("1");
    const asking = openai.responses.create({
      model: nativeModel,
      input: "hi",
      include: ["reasoning.encrypted_content"],
    });
    await expect(asking).rejects.toMatchObject({ status: 400, param: "include" });
  });
});

test.each([nativeModel, providerModel])(
  "events pass through, known or not, but for the cost and the model: %s",
  async (model) => {
    const customer = await running.service.account("1");
    const response = {
      id: "resp_1",
      object: "response",
      model: "gpt-4.1-mini-2025",
      output: [],
      status: "in_progress",
    };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const events = (model: string, cost = {}) => [
      { type: "response.created", sequence_number: 0, response: { ...response, model } },
      { type: "response.news.delta", sequence_number: 1, model: "as it is", delta: "ü", obfuscation: "x7" },
      {
        type: "response.completed",
        sequence_number: 2,
        response: { ...response, model, status: "completed", usage: { ...usage, ...cost } },
      },
    ];
    running.provider.respond({ events: events("gpt-4.1-mini-2025") });
    const answer = await customer.post(path, { model, input: "x", stream: true });
    const written = events(model, { cost_usd: "0.000002" }).map(
      (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    );
    expect(await answer.text()).toBe(written.join(""));
  },
);
