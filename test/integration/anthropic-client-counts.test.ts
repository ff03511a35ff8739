import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import {
  anthropicService,
  asking,
  clientOf,
  hostedModel,
  models,
  nativeModel,
  never,
  newCaller,
  ownName,
} from "../support/anthropic-client-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import { expectUntouched, localModel } from "../support/service-setup.ts";

const running = anthropicService();
const { max_tokens: _, ...hello } = asking(nativeModel);

/** The count, and its source. */
async function count(client: Anthropic, params: Anthropic.MessageCountTokensParams) {
  const { data, response } = await client.messages.countTokens(params).withResponse();
  return { ...data, by: response.headers.get("x-xm-token-count") };
}

describe("counts of the provider", () => {
  test("are the whole answer", async () => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ inputTokens: 4_711 });
    const { data, response } = await client.messages.countTokens(hello).withResponse();
    expect(data).toEqual({ input_tokens: 4_711 });
    expect(response.headers.get("x-xm-token-count")).toBe("provider");
    expect(response.headers.get("request-id")).toMatch(/^req_/);
  });

  test("the provider receives the body with only the model changed, and the headers", async () => {
    const { client } = await newCaller(running);
    const params = {
      system: [{ type: "text" as const, text: "Be brief.", cache_control: { type: "ephemeral" as const } }],
      tools: [{ name: "look", input_schema: { type: "object" as const, properties: {} } }],
      tool_choice: { type: "any" as const },
      thinking: { type: "enabled" as const, budget_tokens: 2_000 },
      messages: [
        {
          role: "user" as const,
          content: [
            { type: "image" as const, source: { type: "url" as const, url: "https://example.com/a.png" } },
            { type: "text" as const, text: "What is this?" },
          ],
        },
      ],
      field_of_tomorrow: [1, null],
    };
    const headers = { "anthropic-beta": "one-2026-01-01", "anthropic-version": "2023-06-01" };
    await client.messages.countTokens({ model: nativeModel, ...params }, { headers });
    const [request] = running.anthropic.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/messages/count_tokens", headers });
    expect(request?.headers["x-api-key"]).toBe("sk-ant-operator");
    expect(request?.body).toEqual({ model: ownName, ...params });
  });

  test("fields for the answer are dropped, because the provider refuses them", async () => {
    const { customer } = await newCaller(running);
    running.anthropic.respond({ inputTokens: 12 });
    const answerFields = { max_tokens: 5, stream: true, temperature: 0, stop_sequences: ["END"], metadata: {} };
    const response = await customer.post("/v1/messages/count_tokens", { ...hello, ...answerFields });
    expect([response.status, await response.json()]).toEqual([200, { input_tokens: 12 }]);
    expect(running.anthropic.requests[0]?.body).toEqual({ ...hello, model: ownName });
  });

  test("the client's beta interface counts", async () => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ inputTokens: 12 });
    const counted = await client.beta.messages.countTokens({ ...hello, betas: ["one-2026-01-01"] });
    expect(counted.input_tokens).toBe(12);
    expect(running.anthropic.requests[0]?.headers["anthropic-beta"]).toMatch(/one-2026-01-01/);
  });

  test("a refusal by the provider is a 400 with its message", async () => {
    const { client } = await newCaller(running);
    running.anthropic.respond(mockAnthropicError(400, "messages.0: all is wrong"));
    const thrown: unknown = await client.messages.countTokens(hello).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Anthropic.BadRequestError);
    expect(thrown).toMatchObject({ type: "invalid_request_error", apiMessage: "messages.0: all is wrong" });
  });
});

describe("estimated counts", () => {
  test.each([
    ["is overloaded", mockAnthropicError(529, "Overloaded", { headers: { "retry-after": "30" } })],
    ["limits counting", mockAnthropicError(429, "Slow down", { headers: { "retry-after": "30" } })],
    ["refuses the operator's key", mockAnthropicError(401, "invalid x-api-key")],
    ["has no such route", mockAnthropicError(404, "Not Found")],
    ["fails", mockAnthropicError(500, "Internal server error")],
    ["closes the connection", { cutAfter: -1 }],
    ["returns no number", { body: { input_tokens: "many" } }],
  ])("if the provider %s; calls for messages continue", async (_, answer) => {
    const { client } = await newCaller(running);
    running.anthropic.always(answer);
    for (let i = 0; i < 6; i++) {
      const counted = await count(client, hello);
      expect(counted).toEqual({ input_tokens: expect.any(Number) as number, by: "estimate" });
      expect(counted.input_tokens).toBeGreaterThan(1);
      expect(counted.input_tokens).toBeLessThan(30);
    }
    // Counts neither open the breaker nor start a cooldown.
    expect(running.anthropic.requests).toHaveLength(6);
    running.anthropic.always();
    expect((await client.messages.create(asking(nativeModel))).model).toBe(nativeModel);
  });

  test("if the provider is silent for ten seconds", async () => {
    const clock = createManualClock(Date.now());
    const env = { ANTHROPIC_API_KEY: "sk-ant-operator", ANTHROPIC_BASE_URL: running.anthropic.url };
    const service = await startService(await testStores(), { env, clock });
    const client = clientOf(service, await service.account("1"));
    running.anthropic.respond({ beforeHeaders: never });
    let counted: Awaited<ReturnType<typeof count>> | undefined;
    const counting = count(client, hello).then((answer) => {
      counted = answer;
    });
    // The service depends on this clock alone.
    await eventually(() => {
      clock.advance(100);
      return running.anthropic.requests.length > 0;
    });
    const request = await running.anthropic.request(0);
    clock.advance(9_000);
    expect(request.aborted).toBe(false);
    await eventually(() => {
      clock.advance(100);
      return counted !== undefined;
    });
    await counting;
    expect(counted).toEqual({ input_tokens: expect.any(Number) as number, by: "estimate" });
    await request.closed;
    expect(request.aborted).toBe(true);
  });

  test.each([localModel, hostedModel])("%s: without a request to a provider", async (model) => {
    const { client } = await newCaller(running);
    const base = await count(client, { ...hello, model });
    expect(base).toEqual({ input_tokens: expect.any(Number) as number, by: "estimate" });
    const more: readonly Partial<Anthropic.MessageCountTokensParams>[] = [
      { system: "You are brief, and you are kind." },
      { system: [{ type: "text", text: "You are brief, and you are kind." }] },
      { tools: [{ name: "look", description: "Looks at it", input_schema: { type: "object", properties: {} } }] },
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Hello there" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
            ],
          },
        ],
      },
    ];
    for (const each of more)
      expect((await count(client, { ...hello, model, ...each })).input_tokens).toBeGreaterThan(base.input_tokens);
    expect(running.provider.requests).toHaveLength(0);
    expect(running.anthropic.requests).toHaveLength(0);
  });
});

describe.each(models)("counting %s is free", (model) => {
  test("neither the balance nor the ledger changes", async () => {
    const { client, customer } = await newCaller(running);
    await count(client, { ...hello, model });
    await expectUntouched(running.service, customer, "1.00");
    expect(await customer.ledger("usage")).toEqual([]);
  });

  test("an account without a balance can count", async () => {
    const { client } = await newCaller(running, "0");
    expect((await count(client, { ...hello, model })).input_tokens).toBeGreaterThan(0);
    await expect(client.messages.create(asking(model))).rejects.toBeInstanceOf(Anthropic.PaymentRequiredError);
  });
});

describe("counting has the checks of a call", () => {
  test.each([
    ["no key", 401, () => hello, "unknown"],
    ["no such model", 404, () => ({ ...hello, model: "claude-nothing" })],
    ["another provider's model", 400, () => ({ ...hello, model: "openai/gpt-4.1-mini" })],
    ["no messages", 400, () => ({ ...hello, messages: [] })],
    [
      "a tool that runs at the provider",
      400,
      () => ({ ...hello, tools: [{ type: "web_search_20250305", name: "web_search" }] }),
    ],
  ] as const)("%s: %s", async (_, status, params, key?: string) => {
    const { customer } = await newCaller(running);
    const client = clientOf(running.service, key ? { ...customer, key } : customer);
    const calling = client.messages.countTokens(params() as Anthropic.MessageCountTokensParams);
    await expect(calling).rejects.toMatchObject({ status, requestID: expect.stringMatching(/^req_/) as string });
    expect(running.anthropic.requests).toHaveLength(0);
  });

  test("a disconnected caller ends the request to the provider", async () => {
    const { client, customer } = await newCaller(running);
    running.anthropic.respond({ beforeHeaders: never });
    const controller = new AbortController();
    const calling = client.messages.countTokens(hello, { signal: controller.signal });
    const request = await running.anthropic.request(0);
    controller.abort();
    await expect(calling).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    await request.closed;
    expect(request.aborted).toBe(true);
    await expectUntouched(running.service, customer, "1.00");
  });
});
