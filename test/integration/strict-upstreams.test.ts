import { expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { mockText } from "../support/mock-openai.ts";
import { strictServers } from "../support/strict-servers.ts";
import { answered, conversation, models, strictUpstreams } from "../support/strict-upstreams-setup.ts";

const { running, ask, sentTo } = strictUpstreams();

/** Novita's models call no tools. */
const upstreams = Object.entries(models).filter(([upstream]) => upstream !== "novita");

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

type Loose = Readonly<Record<string, unknown>>;

const enabled = { type: "enabled" };
/** No upstream documents these, and they could cost extra. */
const unknown = { best_of: 4, top_n_sigma: 1 };
const named = ["best_of", "top_n_sigma"];
const novita = { top_k: 3, min_p: 0.1, repetition_penalty: 1.1, separate_reasoning: true, enable_thinking: false };
/** Are replaced by ids of the account. */
const ids = ["user", "prompt_cache_key", "safety_identifier"];
const anyText = expect.any(String) as unknown;

test.each<readonly [upstream: keyof typeof models, asked: Loose, dropped: readonly string[]]>([
  ["openai", hints, ["metadata"]],
  ["mistral", hints, ["safety_identifier", "seed", "store", "user"]],
  ["moonshot", hints, ["presence_penalty", "temperature"]],
  ["groq", hints, ["metadata", "safety_identifier", "store"]],
  ["zai", hints, []],
  ["xai", hints, ["presence_penalty"]],
  ["deepseek", { thinking: enabled, ...unknown }, named],
  ["moonshot", { thinking: enabled, ...unknown }, named],
  ["zai", { thinking: enabled, do_sample: true, tool_stream: true, ...unknown }, named],
  ["minimax", { thinking: { type: "adaptive" }, reasoning_split: true, ...unknown }, named],
  ["novita", { ...novita, ...unknown }, named],
  ["together", unknown, named],
])("%s gets the fields that it takes of %j: %j are dropped and named", async (upstream, asked, dropped) => {
  const { status, ignored } = await ask(models[upstream], { messages: [{ role: "user", content: "Hi" }], ...asked });
  expect([status, ignored.split(", ").filter(Boolean).toSorted()]).toEqual([200, dropped]);
  const [body = {}] = sentTo(upstream);
  expect(body["store"] ?? false).toBe(false);
  const { store: _, ...rest } = asked;
  const sent = Object.entries(rest).filter(([name]) => !dropped.includes(name));
  const expected = sent.map(([name, value]) => [name, ids.includes(name) ? anyText : value]);
  expect(Object.fromEntries(Object.keys(rest).map((name) => [name, body[name]]))).toEqual(Object.fromEntries(expected));
});

test.each([
  [{ tool_choice: "required", reasoning_effort: "high" }, "reasoning_effort"],
  [{ tool_choice: { type: "function", function: { name: "add" } }, reasoning_effort: "high" }, "reasoning_effort"],
  [{ tool_choice: "required", thinking: enabled }, "thinking"],
  [{ tool_choice: "auto", reasoning_effort: "none" }, ""],
])(
  "DeepSeek does without thinking for %j, because it refuses forced calls of tools with it",
  async (asked, dropped) => {
    const { status, ignored } = await ask(models.deepseek, { ...conversation(), ...asked });
    expect([status, ignored]).toEqual([200, dropped]);
    const { tool_choice } = asked;
    expect(sentTo("deepseek")[0]).toMatchObject({ tool_choice, thinking: { type: "disabled" } });
  },
);

test.each([
  ["deepseek", { reasoning_content: "Two and two." }],
  ["moonshot", { reasoning_content: "Two and two." }],
  ["minimax", { reasoning_details: [{ type: "reasoning.text", text: "Two and two." }] }],
  ["groq", { reasoning: "Two and two." }],
  ["fireworks", { reasoning_content: "Two and two." }],
] as const)(
  "%s gets its reasoning back when a caller of Messages sends the answer back",
  async (upstream, reasoning) => {
    const tool_calls = [{ id: "call_1", type: "function", function: { name: "add", arguments: "{}" } }];
    const message = { role: "assistant", content: null, ...reasoning, tool_calls };
    running.servers[upstream]?.respond({ body: { choices: [{ index: 0, message, finish_reason: "tool_calls" }] } });
    const customer = await running.service.account("10");
    const first = { role: "user", content: "Add." };
    const tools = [{ name: "add", input_schema: { type: "object" } }];
    const send = (...messages: object[]) =>
      customer.post("/v1/messages", { model: models[upstream], max_tokens: 1_000, tools, messages });
    const { content } = (await (await send(first)).json()) as { content: readonly Loose[] };
    const { id } = content.find(({ type }) => type === "tool_use") ?? {};
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "4" }] };
    const next = await send(first, { role: "assistant", content }, result);
    expect([next.status, next.ok ? "" : await next.text()]).toEqual([200, ""]);
    const body = sentTo(upstream).at(-1) as { messages: Loose[]; thinking?: unknown };
    expect(body.messages.find((each) => each["tool_calls"] !== undefined)).toMatchObject(reasoning);
    expect(body.thinking).toBeUndefined();
  },
);

test("MiniMax's own details go back unchanged", async () => {
  const details = [{ type: "reasoning.text", id: "r1", format: "MiniMax-response-v1", index: 0, text: "Two." }];
  await ask(models.minimax, conversation({ ...answered, reasoning_details: details }));
  const [body] = sentTo("minimax") as { messages: Record<string, unknown>[] }[];
  expect(body?.messages.find(({ tool_calls }) => tool_calls)?.["reasoning_details"]).toEqual(details);
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

test("a field that xAI refuses and a caller relies on is the caller's 400, and costs nothing", async () => {
  for (const refused of [{ stop: ["END"] }, { reasoning_effort: "none" }]) {
    const { status, text } = await ask(models.xai, { ...conversation(), ...refused });
    const { error } = JSON.parse(text) as { error: { message: string } };
    expect([status, error.message]).toEqual([400, expect.stringMatching(/not support/)]);
  }
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
