import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { clientOf } from "../support/anthropic-client-setup.ts";
import {
  chatProvider,
  claudeName,
  formatsService,
  geminiName,
  geminiProvider,
  local,
  messagesProvider,
  received,
  relay,
  responsesProvider,
  type Target,
} from "../support/formats-service.ts";
import { pngOf, uploaded } from "../support/generation-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import { testStores } from "../support/servers.ts";
import { type Customer, eventually, startService } from "../support/service.ts";
import { expectUntouched, never } from "../support/service-setup.ts";

const served = formatsService();

/** A format's route that counts tokens. */
interface Counter {
  readonly name: string;
  readonly path: (model: string) => string;
  readonly body: object;
  /** Adds tokens to the request. */
  readonly more: Readonly<Record<string, object>>;
  readonly field: string;
}

const tool = { name: "get_weather", description: "Tells the weather of a city" };
const asked = [{ role: "user", content: "Hello there" }];
const parameters = { type: "object", properties: { city: { type: "string" } } };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
const byMessages: Counter = {
  name: "messages",
  path: () => "/v1/messages/count_tokens",
  body: { messages: asked },
  more: {
    instructions: { system: "Be as brief as you can be, and kind." },
    blocks: { system: [{ type: "text", text: "Be as brief as you can be, and kind." }] },
    tools: { tools: [{ ...tool, input_schema: parameters }] },
    image: { messages: [{ role: "user", content: [{ type: "text", text: "Hello there" }, image] }] },
  },
  field: "input_tokens",
};
const contents = [{ role: "user", parts: [{ text: "Hello there" }] }];
const systemInstruction = { parts: [{ text: "Be as brief as you can be, and kind." }] };
const tools = [{ functionDeclarations: [{ ...tool, parameters: { type: "OBJECT" } }] }];
const byGemini: Counter = {
  name: "gemini",
  path: (model) => `/v1beta/models/${model}:countTokens`,
  body: { contents },
  more: { request: { contents: undefined, generateContentRequest: { contents, systemInstruction, tools } } },
  field: "totalTokens",
};
const byResponses: Counter = {
  name: "responses",
  path: () => "/v1/responses/input_tokens",
  body: { input: "Hello there" },
  more: {
    instructions: { instructions: "Be as brief as you can be, and kind." },
    tools: { tools: [{ type: "function", ...tool, parameters, strict: false }] },
  },
  field: "input_tokens",
};

async function count(customer: Customer, { path, body, field }: Counter, model: string, more: object = {}) {
  const response = await customer.post(path(model), { model, ...body, ...more });
  const answer = (await response.json()) as Record<string, number>;
  expect([response.status, answer]).toEqual([200, expect.objectContaining({ [field]: expect.any(Number) })]);
  return { tokens: answer[field] ?? 0, by: response.headers.get("x-xm-token-count") };
}

const anthropicPath = "/v1/messages/count_tokens";
const rows: readonly (readonly [Counter, Target, providersPath?: string])[] = [
  [byMessages, messagesProvider, anthropicPath],
  [byMessages, relay],
  [byMessages, local],
  [byGemini, geminiProvider, `/v1beta/models/${geminiName}:countTokens`],
  [byGemini, messagesProvider, anthropicPath],
  [byGemini, responsesProvider],
  [byGemini, relay],
  [byGemini, local],
  [byResponses, chatProvider],
  [byResponses, local],
];

describe.each(rows.map(([counter, target, path]) => ({ name: counter.name, by: target.name, counter, target, path })))(
  "$name, by $by",
  ({ counter, target: { model }, path }) => {
    test("a count is free, also without a balance, and is the provider's where it has one", async () => {
      const customer = await served.service.account("0");
      const { tokens, by } = await count(customer, counter, model);
      expect(by).toBe(path ? "provider" : "estimate");
      expect(received(served).map((request) => request.path)).toEqual(path ? [path] : []);
      expect([tokens > 1, tokens < 30]).toEqual([true, true]);
      expect(await customer.ledger("usage")).toEqual([]);
      await expectUntouched(served.service, customer, "0.00");
    });
  },
);

// The mock of Anthropic counts words alone.
const estimated = rows.filter(([counter, , path]) => path === undefined || counter === byGemini);

test.each(
  estimated.flatMap(([counter, target]) =>
    Object.entries(counter.more).map(([what, more]) => ({
      name: counter.name,
      by: target.name,
      counter,
      target,
      what,
      more,
    })),
  ),
)("$name, by $by: $what count", async ({ counter, target: { model }, more }) => {
  const customer = await served.service.account("0");
  const alone = await count(customer, counter, model);
  expect((await count(customer, counter, model, more)).tokens).toBeGreaterThan(alone.tokens + 2);
});

test("responses: plain text is counted exactly, as the client reads it, and streams are no matter", async () => {
  const { openai } = await served.service.account("0");
  const request = { model: local.model, input: "Hello there", stream: true };
  // Two tokens, and seven of the template.
  const nine = { object: "response.input_tokens", input_tokens: 9 };
  expect(await openai.responses.inputTokens.count(request)).toMatchObject(nine);
});

describe("Anthropic's client", () => {
  const hello = { model: messagesProvider.model, messages: [{ role: "user" as const, content: "Hello there" }] };
  const newClient = async () => {
    const customer = await served.service.account("1");
    return { customer, client: clientOf(served.service, customer) };
  };

  test("the provider receives the body with only the model changed, and the headers; its count is the answer", async () => {
    const { client } = await newClient();
    served.anthropic.respond({ inputTokens: 4_711 });
    const params = {
      system: [{ type: "text" as const, text: "Be brief.", cache_control: { type: "ephemeral" as const } }],
      tools: [{ name: "look", input_schema: { type: "object" as const, properties: {} } }],
      thinking: { type: "enabled" as const, budget_tokens: 2_000 },
      field_of_tomorrow: [1, null],
    };
    const headers = { "anthropic-beta": "one-2026-01-01", "anthropic-version": "2023-06-01" };
    const counting = client.messages.countTokens({ ...hello, ...params }, { headers });
    const { data, response } = await counting.withResponse();
    expect([data, response.headers.get("request-id")]).toEqual([
      { input_tokens: 4_711 },
      expect.stringMatching(/^req_/),
    ]);
    const [request] = served.anthropic.requests;
    expect(request).toMatchObject({ method: "POST", path: anthropicPath, headers });
    expect(request?.headers["x-api-key"]).toBe("sk-ant-operator");
    expect(request?.body).toEqual({ ...hello, model: claudeName, ...params });
    await client.beta.messages.countTokens({ ...hello, betas: ["two-2026-01-01"] });
    expect(served.anthropic.requests[1]?.headers["anthropic-beta"]).toMatch(/two-2026-01-01/);
  });

  test("fields for the answer are dropped, because the provider refuses them", async () => {
    const { customer } = await newClient();
    const answerFields = { max_tokens: 5, stream: true, temperature: 0, stop_sequences: ["END"], metadata: {} };
    expect((await customer.post(anthropicPath, { ...hello, ...answerFields })).status).toBe(200);
    expect(served.anthropic.requests[0]?.body).toEqual({ ...hello, model: claudeName });
  });

  test("a disconnected caller ends the request to the provider", async () => {
    const { client } = await newClient();
    served.anthropic.respond({ beforeHeaders: never });
    const controller = new AbortController();
    const calling = client.messages.countTokens(hello, { signal: controller.signal });
    const request = await served.anthropic.request(0);
    controller.abort();
    await expect(calling).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    await request.closed;
    expect(request.aborted).toBe(true);
  });

  test("an estimate if the provider is silent for ten seconds", async () => {
    const clock = createManualClock(Date.now());
    const env = { ANTHROPIC_API_KEY: "sk-ant-operator", ANTHROPIC_BASE_URL: served.anthropic.url };
    const service = await startService(await testStores(), { env, clock });
    // Each process reports its state every second.
    await eventually(async () => {
      clock.advance(1_000);
      return (await fetch(`${service.baseUrl}/readyz`)).ok;
    });
    served.anthropic.respond({ beforeHeaders: never });
    let counted: Awaited<ReturnType<typeof count>> | undefined;
    const counting = count(await service.account("1"), byMessages, hello.model).then((answer) => {
      counted = answer;
    });
    // The service depends on this clock alone.
    await eventually(() => {
      clock.advance(100);
      return served.anthropic.requests.length > 0;
    });
    const request = await served.anthropic.request(0);
    clock.advance(9_000);
    expect(request.aborted).toBe(false);
    await eventually(() => {
      clock.advance(100);
      return counted !== undefined;
    });
    await counting;
    expect(counted?.by).toBe("estimate");
    await request.closed;
    expect(request.aborted).toBe(true);
  });
});

test.each([
  ["is overloaded", mockAnthropicError(529, "Overloaded", { headers: { "retry-after": "30" } })],
  ["refuses the operator's key", mockAnthropicError(401, "invalid x-api-key")],
  ["has no such route", mockAnthropicError(404, "Not Found")],
  ["closes the connection", { cutAfter: -1 }],
  ["returns no number", { body: { input_tokens: "many" } }],
])("an estimate if the provider %s; calls for messages continue", async (_, answer) => {
  const customer = await served.service.account("1");
  served.anthropic.always(answer);
  for (let i = 0; i < 6; i++) {
    const { tokens, by } = await count(customer, byMessages, messagesProvider.model);
    expect([by, tokens > 1, tokens < 30]).toEqual(["estimate", true, true]);
  }
  // Counts neither open the breaker nor start a cooldown.
  expect(served.anthropic.requests).toHaveLength(6);
  served.anthropic.always();
  const call = { model: messagesProvider.model, max_tokens: 9, messages: asked };
  expect((await customer.post("/v1/messages", call)).status).toBe(200);
});

test("a refusal by the provider is a 400 with its message; Gemini's failure gives an estimate", async () => {
  const customer = await served.service.account("1");
  served.gemini.respond(mockGeminiError(500, "down"));
  expect((await count(customer, byGemini, geminiProvider.model)).by).toBe("estimate");
  served.gemini.respond(mockGeminiError(400, "Unsupported MIME type."));
  served.anthropic.respond(mockAnthropicError(400, "messages.0: all is wrong"));
  for (const [{ path, body }, model, message] of [
    [byGemini, geminiProvider.model, "Unsupported MIME type."],
    [byMessages, messagesProvider.model, "messages.0: all is wrong"],
  ] as const) {
    const response = await customer.post(path(model), { model, ...body });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { message } }]);
  }
});

test("Gemini: a whole request is sent with the provider's model; one without contents is refused by that name", async () => {
  const customer = await served.service.account("0");
  const request = { model: `models/${geminiProvider.model}`, contents, systemInstruction, tools };
  const whole = { contents: undefined, generateContentRequest: request };
  await count(customer, byGemini, geminiProvider.model, whole);
  expect(served.gemini.requests[0]?.body["generateContentRequest"]).toEqual({
    ...request,
    model: `models/${geminiName}`,
  });
  for (const [body, field] of [
    [{}, "contents"],
    [{ generateContentRequest: {} }, "generateContentRequest.contents"],
  ] as const) {
    const response = await customer.post(byGemini.path(local.model), body);
    const { error } = (await response.json()) as { error: object };
    const message = expect.stringMatching(new RegExp(`^${field}: .*expected array`)) as string;
    expect([response.status, error]).toMatchObject([400, { message }]);
  }
});

test("uploads are counted with their bytes, and only for their own account", async () => {
  const [owner, other] = [await served.service.account("1"), await served.service.account("1")];
  const id = await uploaded(served.service, owner, pngOf(3, 2));
  const body = { contents: [{ role: "user", parts: [{ fileData: { mimeType: "image/png", fileUri: id } }] }] };
  const path = byGemini.path(geminiProvider.model);
  expect((await other.post(path, body)).status).toBe(404);
  expect((await owner.post(path, body)).status).toBe(200);
  expect(served.gemini.requests).toHaveLength(1);
  expect(JSON.stringify(served.gemini.requests[0]?.body)).toContain(pngOf(3, 2).toString("base64"));
});

test.each([
  [404, { model: "claude-nothing" }],
  [400, { model: "openai/gpt-4.1-mini" }],
  [400, { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
])("counting has the checks of a call: %i for %j", async (status, fields) => {
  const customer = await served.service.account("1");
  const response = await customer.post(anthropicPath, { model: messagesProvider.model, messages: asked, ...fields });
  expect(response.status).toBe(status);
  expect(received(served)).toEqual([]);
});
