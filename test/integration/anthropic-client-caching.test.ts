import { describe, expect, test } from "vitest";
import { asking, hostedModel, nativeModel, newCaller } from "../support/anthropic-client-setup.ts";
import { claudeCodeHeaders, claudeCodeRequest } from "../support/claude-code-request.ts";
import { claudeName, costOf, formatsService, shortCacheModel, uncachedModel } from "../support/formats-service.ts";
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
