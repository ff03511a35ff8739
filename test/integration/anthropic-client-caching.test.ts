import { describe, expect, test } from "vitest";
import { formatUsd } from "#money";
import { asking, hostedModel, nativeModel, newCaller } from "../support/anthropic-client-setup.ts";
import { claudeCodeHeaders, claudeCodeRequest } from "../support/claude-code-request.ts";
import { claudeName, costOf, formatsService, shortCacheModel, uncachedModel } from "../support/formats-service.ts";
import type { Customer } from "../support/service.ts";
import { entriesOf, localModel, nanoUsd } from "../support/service-setup.ts";

const running = formatsService();
const mark = (ttl?: string) => ({ cache_control: { type: "ephemeral", ...(ttl && { ttl }) } });
const usage = {
  input_tokens: 100,
  cache_read_input_tokens: 50,
  cache_creation_input_tokens: 300,
  cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
  output_tokens: 20,
};

/** Chat with OpenRouter's extension: breakpoints at every place that has them, in one-hour and five-minute order. */
const chatRequest = (model: string) => ({
  model,
  max_tokens: 1_000,
  tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } }, ...mark("1h") }],
  messages: [
    { role: "system", content: [{ type: "text", text: "Be brief.", ...mark("1h") }] },
    { role: "user", content: "Look." },
    { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "Rain.", ...mark() }] },
    { role: "user", content: "Well?", ...mark("5m") },
  ],
});

async function savedBy({ key }: Pick<Customer, "key">, id = "") {
  const get = async (path: string) => {
    const response = await fetch(`${running.service.baseUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
    return response.json();
  };
  const request = (await get(`/v1/requests/${id}`)) as { saved_usd: string; cached_tokens: number };
  const { data } = (await get(`/v1/generation?id=${id}`)) as { data: { cache_discount: number | null } };
  return { saved: nanoUsd(request.saved_usd), cached: request.cached_tokens, discount: data.cache_discount };
}

describe("breakpoints of a chat request", () => {
  test("reach Claude with their lifetimes; what they cost is held, charged and shown", async () => {
    const { customer } = await newCaller(running);
    running.anthropic.respond({ usage });
    const response = await customer.post("/v1/chat/completions", chatRequest(nativeModel));
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ignored-params")).toBeNull();
    expect(running.anthropic.requests[0]?.body).toMatchObject({
      tools: [{ name: "look", ...mark("1h") }],
      system: [{ type: "text", text: "Be brief.", ...mark("1h") }],
      messages: [
        { role: "user", content: [{ text: "Look." }] },
        { role: "assistant", content: [{ type: "tool_use" }] },
        {
          role: "user",
          content: [
            { type: "tool_result", content: "Rain.", ...mark() },
            { type: "text", text: "Well?", ...mark("5m") },
          ],
        },
      ],
    });
    expect(await response.json()).toMatchObject({
      usage: {
        prompt_tokens: 450,
        prompt_tokens_details: { cached_tokens: 50, cache_write_tokens: 300, cache_write_1h_tokens: 200 },
      },
    });
    const billed = { input: 100, cached_input: 50, cache_write: 100, cache_write_1h: 200, output: 20 };
    const [entry] = await entriesOf(running.service, customer);
    expect(entry?.request).toMatchObject({ usage: billed, shortfall_usd: "0.00" });
    expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-costOf(nativeModel, billed));

    // The request page shows the difference to the price without a cache, also if it is a loss.
    const uncached = costOf(nativeModel, { input: 450, output: 20 });
    const saved = uncached - costOf(nativeModel, billed);
    expect(saved).toBeLessThan(0n);
    expect(await savedBy(customer, entry?.id)).toEqual({ saved, cached: 50, discount: Number(formatUsd(saved)) });
    running.anthropic.respond({ usage: { ...usage, cache_read_input_tokens: 5_000 } });
    await customer.post("/v1/messages", asking(nativeModel));
    running.anthropic.respond({});
    await customer.post("/v1/messages", asking(nativeModel));
    const [without, second] = await entriesOf(running.service, customer);
    const cost = costOf(nativeModel, { ...billed, cached_input: 5_000 });
    const whole = costOf(nativeModel, { input: 5_400, output: 20 });
    expect(await savedBy(customer, second?.id)).toMatchObject({ saved: whole - cost, cached: 5_000 });
    expect(await savedBy(customer, without?.id)).toEqual({ saved: 0n, cached: 0, discount: null });
  });

  test.each([hostedModel, localModel])("are dropped where they have no price, and named: %s", async (model) => {
    const { customer } = await newCaller(running);
    const response = await customer.post("/v1/chat/completions", chatRequest(model));
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ignored-params")).toBe("cache_control");
  });

  test("are at most four: the fifth is refused by its name, before any call", async () => {
    const { customer } = await newCaller(running);
    const { messages, ...request } = chatRequest(nativeModel);
    const more = [
      ...messages,
      {
        role: "user",
        content: [
          { type: "text", text: "Go on." },
          { type: "text", text: "!", ...mark() },
        ],
      },
    ];
    const response = await customer.post("/v1/chat/completions", { ...request, messages: more });
    expect(response.status).toBe(400);
    const param = "messages[5].content[1].cache_control";
    expect(await response.json()).toMatchObject({ error: { code: "invalid_value", param } });
    expect(running.anthropic.requests).toEqual([]);
    expect(await customer.available()).toBe("1.00");
  });
});

test("the hold covers the price of the lifetime that a request asks for", async () => {
  const customer = await running.service.account("0");
  const inputCost = async (model: string, ttl: string) => {
    const messages = [{ role: "user", content: [{ type: "text", text: "Hi", ...mark(ttl) }] }];
    const response = await customer.post("/v1/chat/completions", { ...asking(model), messages });
    const { error } = (await response.json()) as { error: { message: string } };
    return nanoUsd(/input alone can cost ([\d.]+) USD/.exec(error.message)?.[1] ?? "");
  };
  const [short, long] = [await inputCost(nativeModel, "5m"), await inputCost(nativeModel, "1h")];
  expect([short > 0n, short * 4_000n]).toEqual([true, long * 2_500n]);
  // If there is no one-hour price, the cache is written for five minutes only.
  expect(await inputCost(shortCacheModel, "1h")).toBe(await inputCost(shortCacheModel, "5m"));
});

describe("marks that are added for the caller", () => {
  const system = "You are a patient assistant. ".repeat(200);
  const chat = (more: object = {}) => ({
    path: "/v1/chat/completions",
    body: { ...asking(nativeModel), messages: [{ role: "system", content: system }, ...user("Hi")], ...more },
  });
  const user = (content: unknown) => [{ role: "user", content }];
  const marked = { system: [{ ...mark() }], messages: [{ content: [{ text: "Hi", ...mark() }] }] };
  const auto = { "x-xm-prompt-cache": "auto" };

  test.each([
    ["chat", chat()],
    ["Messages", { path: "/v1/messages", body: { ...asking(nativeModel, "Hi"), system } }],
    [
      "Gemini",
      {
        path: `/v1beta/models/${nativeModel}:generateContent`,
        body: { systemInstruction: { parts: [{ text: system }] }, contents: [{ parts: [{ text: "Hi" }] }] },
      },
    ],
  ])(
    "reach Claude from %s, with the header or the setting of the key, and a header overrides that",
    async (_, call) => {
      const { customer } = await newCaller(running);
      const { data } = await running.service.admin<{ data: { id: string }[] }>("GET", `/accounts/${customer.id}/keys`);
      const sent = async (headers = {}) => {
        const before = running.anthropic.requests.length;
        expect((await customer.post(call.path, call.body, { headers })).status).toBe(200);
        return JSON.stringify(running.anthropic.requests[before]?.body);
      };
      expect(await sent()).not.toContain("cache_control");
      expect(JSON.parse(await sent(auto))).toMatchObject(marked);
      await running.service.admin("PATCH", `/keys/${data[0]?.id}`, { prompt_cache: "auto" });
      expect(JSON.parse(await sent())).toMatchObject(marked);
      expect(await sent({ "x-xm-prompt-cache": "off" })).not.toContain("cache_control");
    },
  );

  test.each([
    [
      "the caller has marks",
      chat({
        messages: user([
          { type: "text", text: system, ...mark("1h") },
          { type: "text", text: "Hi" },
        ]),
      }),
      1,
    ],
    ["cache writes have no price", chat({ model: uncachedModel }), 0],
    ["the prompt is short", chat({ messages: user("Hi") }), 0],
    ["another provider serves the model", chat({ model: hostedModel }), 0],
  ])("are not added if %s", async (_, { path, body }, count) => {
    const { customer } = await newCaller(running);
    expect((await customer.post(path, body, { headers: auto })).status).toBe(200);
    const [request] = [...running.anthropic.requests, ...running.provider.requests];
    expect(JSON.stringify(request?.body).split("cache_control")).toHaveLength(count + 1);
  });

  test("are held for like the caller's own; another value of the header is refused", async () => {
    const customer = await running.service.account("0");
    const inputCost = async (body: object, headers = {}) => {
      const response = await customer.post("/v1/chat/completions", body, { headers });
      const { error } = (await response.json()) as { error: { message: string } };
      return nanoUsd(/input alone can cost ([\d.]+) USD/.exec(error.message)?.[1] ?? "");
    };
    const { body } = chat();
    const [plain, added] = [await inputCost(body), await inputCost(body, auto)];
    expect(4n * added).toBe(5n * plain);
    const wrong = await customer.post("/v1/chat/completions", body, { headers: { "x-xm-prompt-cache": "on" } });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: { param: "x-xm-prompt-cache" } }]);
  });
});

describe("breakpoints without a price are dropped and named", () => {
  const cases = [
    [shortCacheModel, "cache_control.ttl", mark(), { cache_write: 300 }],
    [uncachedModel, "cache_control", {}, {}],
  ] as const;

  test.each(cases.flatMap((each) => [[...each, "/v1/messages"] as const, [...each, "/v1/chat/completions"] as const]))(
    "%s: %s",
    async (model, ignored, marked, written, path) => {
      const { customer } = await newCaller(running);
      const { cache_creation: _, cache_creation_input_tokens, ...others } = usage;
      const isWritten = "cache_write" in written;
      running.anthropic.respond({ usage: { ...others, ...(isWritten && { cache_creation_input_tokens }) } });
      const messages = [{ role: "user", content: [{ type: "text", text: "Hi", ...mark("1h") }] }];
      const response = await customer.post(path, { ...asking(model), messages });
      expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, ignored]);
      const content = [{ type: "text", text: "Hi", ...marked }];
      expect(running.anthropic.requests[0]?.body["messages"]).toEqual([{ role: "user", content }]);
      const billed = { input: 100, cached_input: 50, ...written, output: 20 };
      const [entry] = await entriesOf(running.service, customer);
      expect(entry?.request).toMatchObject({ usage: billed, shortfall_usd: "0.00" });
    },
  );
});

describe("Claude Code's request", () => {
  const post = async (model: string) => {
    const { customer } = await newCaller(running);
    const response = await customer.post("/v1/messages?beta=true", claudeCodeRequest(model), {
      headers: claudeCodeHeaders,
    });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringContaining("event: message_stop")]);
    return response.headers.get("x-ignored-params");
  };

  test("reaches Claude as it is", async () => {
    expect(await post(nativeModel)).toBeNull();
    expect(running.anthropic.requests[0]?.body).toEqual({ ...claudeCodeRequest(claudeName) });
    expect(running.anthropic.requests[0]?.headers).toMatchObject(claudeCodeHeaders);
  });

  const converted = [
    { role: "system" },
    { role: "user" },
    { role: "system" },
    { role: "assistant", tool_calls: [{ function: { name: "ToolSearch" } }] },
    { role: "tool", content: "The tool mcp__orders__lookup_order is available." },
    { role: "user", content: "Tool loaded." },
  ];

  test.each([
    [localModel, []],
    [hostedModel, [converted]],
  ])("is converted for another model, and its hints are named: %s", async (model, sent) => {
    const hints = ["cache_control", "metadata", "context_management", "defer_loading", "eager_input_streaming"];
    expect((await post(model))?.split(", ").toSorted()).toEqual(hints.toSorted());
    expect(running.provider.requests.map(({ body }) => body["messages"])).toMatchObject(sent);
  });
});
