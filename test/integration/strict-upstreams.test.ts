import { describe, expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { type MockOpenai, mockText, startMockOpenai } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { type Client, startService } from "../support/service.ts";
import { entriesOf } from "../support/service-setup.ts";
import { strictServers } from "../support/strict-servers.ts";

interface Running {
  readonly service: Client;
  readonly servers: Readonly<Record<string, MockOpenai>>;
}

/** The shipped catalog, with each upstream replaced by its strict mock. */
const running = ofFile<Running>(
  async (onEnd) => {
    const servers: Record<string, MockOpenai> = {};
    const env: Record<string, string> = { NATIVE_FORMATS_ANY_MODEL: "on" };
    for (const [id, refusal] of Object.entries(strictServers)) {
      const server = await startMockOpenai({ refusal, reportsUsage: id === "mistral" });
      onEnd(() => server.close());
      servers[id] = server;
      env[`${id.toUpperCase()}_API_KEY`] = "sk-operator";
      env[`${id.toUpperCase()}_BASE_URL`] = server.url;
    }
    return { servers, service: await startService(await testStores(), { env, onEnd }) };
  },
  ({ servers }) => {
    for (const server of Object.values(servers)) server.reset();
  },
);

/** A model of each upstream that is tried there first. */
const models = {
  openai: "openai/gpt-4o",
  deepseek: "deepseek/deepseek-v4-pro",
  mistral: "mistralai/codestral-2508",
  moonshot: "moonshotai/kimi-k2.6",
  zai: "zai/glm-5.2",
  minimax: "minimax/minimax-m3",
  together: "qwen/qwen3.5-9b",
  fireworks: "qwen/qwen3.8-max",
  groq: "openai/gpt-oss-120b",
  novita: "meta/llama-4-scout",
  xai: "xai/grok-4.7",
} as const satisfies Record<keyof typeof strictServers, string>;
/** Novita's models call no tools. */
const upstreams = Object.entries(models).filter(([upstream]) => upstream !== "novita");

/** An answer as official clients send it back, with the reasoning in this service's form. */
const answered = {
  role: "assistant",
  content: null,
  refusal: null,
  annotations: [],
  reasoning_content: "Two and two.",
  tool_calls: [{ id: "call_0123456789abcdef", type: "function", function: { name: "add", arguments: "{}" } }],
};

const conversation = (assistant: object = answered) => ({
  messages: [
    { role: "developer", content: "Be brief." },
    { role: "user", content: "What is 2 + 2?", name: "ada" },
    assistant,
    { role: "tool", tool_call_id: "call_0123456789abcdef", content: "4" },
    { role: "user", content: "And 3 + 3?" },
    { role: "assistant", content: "", refusal: null, reasoning_content: "Hm." },
    { role: "developer", content: "Be kind." },
    { role: "user", content: "Well?" },
  ],
  tools: [{ type: "function", function: { name: "add" } }],
});

const hints = {
  user: "u1",
  seed: 1,
  store: true,
  metadata: { a: "b" },
  prompt_cache_key: "k",
  safety_identifier: "s",
  temperature: 0.3,
  presence_penalty: 0,
};

async function ask(model: string, more: object) {
  const customer = await running.service.account("100");
  const response = await customer.post("/v1/chat/completions", { model, ...more });
  const text = await response.text();
  const [entry] = response.ok ? await entriesOf(running.service, customer) : [];
  return { status: response.status, text, ignored: response.headers.get("x-ignored-params") ?? "", entry };
}

const sentTo = (upstream: string) => running.servers[upstream]?.requests.map(({ body }) => body) ?? [];

test("every OpenAI-compatible upstream of the catalog with text models has a strict mock", () => {
  const { list, upstreams: known } = loadCatalog(undefined);
  const text = list()
    .filter(({ type }) => type === "text")
    .flatMap((model) => model.upstreams);
  const compatible = text.filter(({ upstream }) => known.get(upstream)?.provider === "openai");
  expect(Object.keys(strictServers).toSorted()).toEqual(
    [...new Set(compatible.map(({ upstream }) => upstream))].toSorted(),
  );
});

test.each(upstreams)(
  "%s takes a whole conversation at the first attempt, whole and streamed",
  async (upstream, model) => {
    for (const stream of [false, true]) {
      const { status, text, entry } = await ask(model, { ...conversation(), ...hints, stream });
      expect([status, status === 200 ? "" : text]).toEqual([200, ""]);
      const said = stream
        ? [...text.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part).join("")
        : (JSON.parse(text) as { choices: { message: { content: string } }[] }).choices[0]?.message.content;
      expect(said).toBe(mockText);
      expect(entry?.request).toMatchObject({ upstream, attempts: { length: 1 }, estimated: false });
    }
  },
);

test.each(upstreams)("%s takes a conversation that another model began, without reasoning", async (_, model) => {
  const { reasoning_content: __, ...dropped } = answered;
  for (const assistant of [dropped, { ...dropped, reasoning_details: [detailOfClaude] }]) {
    const { status, text } = await ask(model, conversation(assistant));
    expect([status, status === 200 ? "" : text]).toEqual([200, ""]);
  }
});

const detailOfClaude = {
  type: "reasoning.text",
  text: "Two and two.",
  signature: "c2ln",
  format: "anthropic-claude-v1",
  index: 0,
};

test.each([
  ["deepseek", { reasoning_content: "Two and two." }],
  ["moonshot", { reasoning_content: "Two and two." }],
  ["zai", { reasoning_content: "Two and two." }],
  ["minimax", { reasoning_details: [{ type: "reasoning.text", text: "Two and two." }] }],
  ["together", { reasoning: "Two and two." }],
  ["fireworks", { reasoning_content: "Two and two." }],
  ["groq", { reasoning: "Two and two." }],
  ["mistral", {}],
  ["openai", {}],
  ["xai", {}],
] as const)("%s gets its reasoning back in the field that it takes, and in no other", async (upstream, expected) => {
  await ask(models[upstream], conversation());
  const [body] = sentTo(upstream) as { messages: Record<string, unknown>[] }[];
  const sent = body?.messages.find(({ tool_calls }) => tool_calls !== undefined);
  const { reasoning_content, reasoning, reasoning_details } = sent ?? {};
  expect(JSON.parse(JSON.stringify({ reasoning_content, reasoning, reasoning_details }))).toEqual(expected);
});

const enabled = { thinking: { type: "enabled" } };

test.each([
  ["deepseek", enabled],
  ["moonshot", enabled],
  ["zai", { ...enabled, do_sample: true, tool_stream: true }],
  ["minimax", { thinking: { type: "adaptive" }, reasoning_split: true }],
  ["novita", { top_k: 3, min_p: 0.1, repetition_penalty: 1.1, separate_reasoning: true, enable_thinking: false }],
  ["together", {}],
] as const)("%s gets the fields that it documents, and none that could cost extra", async (upstream, documented) => {
  const messages = [{ role: "user", content: "Hi" }];
  const unknown = { best_of: 4, top_n_sigma: 1 };
  const { status, ignored } = await ask(models[upstream], { messages, ...documented, ...unknown });
  expect([status, ignored]).toEqual([200, "best_of, top_n_sigma"]);
  const [body = {}] = sentTo(upstream);
  expect(body).toMatchObject(documented);
  for (const field of Object.keys(unknown)) expect(body).not.toHaveProperty(field);
});

type Loose = Readonly<Record<string, unknown>>;

/** The second turn of a conversation in each format: the whole answer is sent back, with the result of its call. */
const secondTurns = {
  messages: (model: string) => {
    const first = { role: "user", content: "Add." };
    const request = { model, max_tokens: 1_000, tools: [{ name: "add", input_schema: { type: "object" } }] };
    return {
      path: "/v1/messages",
      first: { ...request, messages: [first] },
      second: ({ content }: Loose) => {
        const id = (content as readonly Loose[]).find(({ type }) => type === "tool_use")?.["id"];
        const results = [{ type: "tool_result", tool_use_id: id, content: "4" }];
        return { ...request, messages: [first, { role: "assistant", content }, { role: "user", content: results }] };
      },
    };
  },
  gemini: (model: string) => {
    const first = { role: "user", parts: [{ text: "Add." }] };
    const request = {
      tools: [{ functionDeclarations: [{ name: "add" }] }],
      generationConfig: { maxOutputTokens: 1_000 },
    };
    return {
      path: `/v1beta/models/${model}:generateContent`,
      first: { ...request, contents: [first] },
      second: ({ candidates }: Loose) => {
        const [{ content }] = candidates as [{ content: Loose }];
        const result = { functionResponse: { name: "add", response: { sum: 4 } } };
        return { ...request, contents: [first, content, { role: "user", parts: [result] }] };
      },
    };
  },
  responses: (model: string) => {
    const first = { role: "user", content: "Add." };
    const tools = [{ type: "function", name: "add", parameters: { type: "object" } }];
    const request = { model, tools, max_output_tokens: 1_000 };
    return {
      path: "/v1/responses",
      first: { ...request, input: [first] },
      second: ({ output }: Loose) => {
        const items = output as readonly Loose[];
        const { call_id } = items.find(({ type }) => type === "function_call") ?? {};
        return { ...request, input: [first, ...items, { type: "function_call_output", call_id, output: "4" }] };
      },
    };
  },
} as const;

const thinking = [
  ["deepseek", { reasoning_content: "Two and two." }],
  ["moonshot", { reasoning_content: "Two and two." }],
  ["minimax", { reasoning_details: [{ type: "reasoning.text", text: "Two and two." }] }],
  ["groq", { reasoning: "Two and two." }],
  ["fireworks", { reasoning_content: "Two and two." }],
] as const;

describe.each(Object.entries(secondTurns))("%s: reasoning goes back to where it came from", (_, turnsOf) => {
  test.each(thinking)("%s", async (upstream, reasoning) => {
    const { path, first, second } = turnsOf(models[upstream]);
    const tool_calls = [{ id: "call_1", type: "function", function: { name: "add", arguments: "{}" } }];
    const message = { role: "assistant", content: null, ...reasoning, tool_calls };
    running.servers[upstream]?.always({ body: { choices: [{ index: 0, message, finish_reason: "tool_calls" }] } });
    const customer = await running.service.account("10");
    const answer = await customer.post(path, first);
    const answered = (await answer.json()) as Loose;
    running.servers[upstream]?.always();
    const next = await customer.post(path, second(answered));
    expect([next.status, next.ok ? "" : await next.text()]).toEqual([200, ""]);
    const body = sentTo(upstream).at(-1) as { messages: Loose[]; thinking?: unknown };
    expect(body.messages.find((each) => each["tool_calls"] !== undefined)).toMatchObject(reasoning);
    expect(body.thinking).toBeUndefined();
  });
});

test("MiniMax's own details go back unchanged", async () => {
  const details = [{ type: "reasoning.text", id: "r1", format: "MiniMax-response-v1", index: 0, text: "Two." }];
  await ask(models.minimax, conversation({ ...answered, reasoning_details: details }));
  const [body] = sentTo("minimax") as { messages: Record<string, unknown>[] }[];
  expect(body?.messages.find(({ tool_calls }) => tool_calls)?.["reasoning_details"]).toEqual(details);
});

test("hints that a server refuses are dropped and named; the others arrive", async () => {
  const refused = {
    openai: "metadata",
    mistral: "seed,store,user,safety_identifier",
    moonshot: "temperature,presence_penalty",
    groq: "metadata,store,safety_identifier",
    zai: "",
    xai: "presence_penalty",
  };
  for (const [upstream, names] of Object.entries(refused)) {
    const { ignored } = await ask(models[upstream as keyof typeof refused], { ...conversation(), ...hints });
    expect(
      ignored
        .split(", ")
        .filter((name) => name in hints && name !== "")
        .toSorted(),
    ).toEqual(names.split(",").filter(Boolean).toSorted());
    const [body = {}] = sentTo(upstream);
    for (const name of Object.keys(hints))
      expect(name in body && name !== "store").toBe(!names.includes(name) && name !== "store");
  }
});

test("without a caller's cap the lesser of the model's and of what the context leaves is sent, or none", async () => {
  const messages = [{ role: "user", content: "word ".repeat(80_000) }];
  expect(await ask(models.mistral, { messages })).toMatchObject({ status: 200 });
  const [mistral] = sentTo("mistral") as { max_tokens: number }[];
  expect(mistral?.max_tokens).toBeLessThan(28_001);
  expect(mistral?.max_tokens).toBeGreaterThan(1_000);
  expect(await ask(models.groq, { messages: messages.slice(0, 1) })).toMatchObject({ status: 200 });
  expect(sentTo("groq")[0]).not.toHaveProperty("max_tokens");
  // The caller's own value is sent, and a server that counts it against its limit is busy for this call alone.
  const { status, text } = await ask(models.groq, { messages: conversation().messages, max_tokens: 9_000 });
  expect([status, (JSON.parse(text) as { error: { code: string } }).error.code]).toEqual([429, "rate_limit_exceeded"]);
  expect(await ask(models.groq, { messages: conversation().messages, max_tokens: 100 })).toMatchObject({ status: 200 });
});

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

test("a field that xAI refuses and a caller relies on is the caller's 400, and costs nothing", async () => {
  for (const refused of [{ stop: ["END"] }, { reasoning_effort: "none" }]) {
    const { status, text } = await ask(models.xai, { ...conversation(), ...refused });
    const { error } = JSON.parse(text) as { error: { message: string } };
    expect([status, error.message]).toEqual([400, expect.stringMatching(/not support/)]);
  }
});

test.each([
  "mistralai/mistral-large-2512",
  "mistralai/ministral-3b-2512",
  "meta/llama-4-maverick",
  "meta/llama-4-scout",
  "xai/grok-4.3",
])("%s gets an image as it is, and a document is refused", async (model) => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const file = { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQ=" } };
  const asking = (part: object) => ({ messages: [{ role: "user", content: [{ type: "text", text: "What?" }, part] }] });
  expect(await ask(model, asking(image))).toMatchObject({ status: 200 });
  const sent = Object.keys(models).flatMap(sentTo) as { messages: { content: unknown[] }[] }[];
  expect(sent.map(({ messages }) => messages[0]?.content[1])).toEqual([image]);
  expect(await ask(model, asking(file))).toMatchObject({
    status: 400,
    text: expect.stringContaining("'file'") as string,
  });
});

test("a balance that covers less than the model's cap is the cap, also where none would be sent", async () => {
  const customer = await running.service.account("0.002");
  const response = await customer.post("/v1/chat/completions", { model: models.groq, ...conversation() });
  expect(response.status).toBe(200);
  expect(Number(sentTo("groq")[0]?.["max_tokens"])).toBeGreaterThan(0);
});

test("a cap under the smallest of the Responses interface is 400 naming the caller's field, and costs nothing", async () => {
  const model = "openai/gpt-5.4";
  const customer = await running.service.account("1");
  const contents = [{ parts: [{ text: "Hi" }] }];
  const gemini = `/v1beta/models/${model}:generateContent`;
  const cases = [
    [gemini, { contents, generation_config: { max_output_tokens: 15 } }, ""],
    ["/v1/chat/completions", { model, messages: conversation().messages, max_tokens: 15 }, "max_tokens"],
    ["/v1/responses", { model, input: "Hi", max_output_tokens: 15 }, "max_output_tokens"],
  ] as const;
  for (const [path, body, param] of cases) {
    const response = await customer.post(path, body);
    const { error } = (await response.json()) as { error: { param?: string; message: string } };
    // Gemini's errors name the field only in their text.
    expect([response.status, error.param ?? ""]).toEqual([400, param]);
    expect(error.message).toMatch(/must be at least 16/);
  }
  expect(sentTo("openai")).toEqual([]);
  await running.service.settled();
  expect(await customer.available()).toBe("1.00");
  expect((await customer.post("/v1/responses", { model, input: "Hi", max_output_tokens: 16 })).status).toBe(200);
});

test("the field by which DeepSeek isolates its callers is also specific to the account", async () => {
  await ask(models.deepseek, { ...conversation(), user_id: "alice" });
  expect(sentTo("deepseek")[0]?.["user_id"]).toMatch(/^[\w-]{43}$/);
});

test("a long prompt does not cut the answer to nothing: the estimate of its tokens may be too high", async () => {
  for (const words of [85_000, 100_000, 110_000])
    await ask(models.openai, { messages: [{ role: "user", content: "word ".repeat(words) }] });
  const caps = sentTo("openai").map((body) => Number(body["max_completion_tokens"]));
  expect(caps).toEqual([8_192, expect.closeTo(3_000, -2), 1_024]);
});

test("late system messages are joined to the first one, with all of their parts", async () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const system = (content: unknown) => ({ role: "system", content });
  const user = { role: "user", content: "Hi" };
  const texts = [
    system("A"),
    user,
    system([
      { type: "text", text: "B" },
      { type: "text", text: "C" },
    ]),
  ];
  await ask(models.minimax, { messages: texts });
  await ask(models.minimax, { messages: [...texts, system([image])] });
  const [joined, withImage] = sentTo("minimax") as { messages: unknown[] }[];
  expect(joined?.messages).toEqual([system("A\n\nB\n\nC"), user]);
  const sent = withImage ? JSON.stringify(withImage.messages[0]) : "image_url";
  expect(sent).toContain("image_url");
});

test("a forced call of a tool does without thinking where the server refuses both together", async () => {
  const named = { type: "function", function: { name: "add" } };
  for (const tool_choice of ["required", named]) {
    const { status, ignored } = await ask(models.deepseek, {
      ...conversation(),
      tool_choice,
      reasoning_effort: "high",
    });
    expect([status, ignored]).toEqual([200, "reasoning_effort"]);
  }
  const enabled = { tool_choice: "required", thinking: { type: "enabled" } };
  expect(await ask(models.deepseek, { ...conversation(), ...enabled })).toMatchObject({ ignored: "thinking" });
  expect(await ask(models.deepseek, { ...conversation(), reasoning_effort: "none" })).toMatchObject({ ignored: "" });
  expect(sentTo("deepseek")[3]).toMatchObject({ thinking: { type: "disabled" } });
  expect(sentTo("deepseek")[0]).toMatchObject({ thinking: { type: "disabled" }, tool_choice: "required" });
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
