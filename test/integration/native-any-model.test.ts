import Anthropic from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { claudeCodeHeaders, claudeCodeRequest } from "../support/claude-code-request.ts";
import { searching } from "../support/codex-requests.ts";
import { eventsOf, type Json } from "../support/formats-responses-assemble.ts";
import { startMockAnthropic } from "../support/mock-anthropic.ts";
import { mockChunk, startMockOpenai } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import type { Customer } from "../support/service.ts";
import { costBy, entriesOf, nanoUsd, startWithProvider } from "../support/service-setup.ts";

/** A model of a provider that speaks only chat, and one of Anthropic. */
const chatModel = "deepseek/deepseek-v4-pro";
const claude = "anthropic/claude-sonnet-5";
const costOf = costBy({
  [chatModel]: { input: 1_320n, cached_input: 44n, output: 3_960n },
  [claude]: { input: 2_000n, cached_input: 200n, output: 10_000n },
  "openai/gpt-4.1-mini": { input: 400n, cached_input: 100n, output: 1_600n },
});

const running = ofFile(
  async (onEnd) => {
    const [deepseek, anthropic] = await Promise.all([startMockOpenai(), startMockAnthropic()]);
    const env = {
      NATIVE_FORMATS_ANY_MODEL: "on",
      DEEPSEEK_API_KEY: "sk-operator",
      DEEPSEEK_BASE_URL: deepseek.url,
      ANTHROPIC_API_KEY: "sk-ant-operator",
      ANTHROPIC_BASE_URL: anthropic.url,
    };
    const service = await startWithProvider(env, onEnd);
    onEnd(() => Promise.all([service.provider, deepseek, anthropic].map((mock) => mock.close())));
    return { ...service, deepseek, anthropic };
  },
  ({ provider, deepseek, anthropic }) => {
    for (const mock of [provider, deepseek, anthropic]) mock.reset();
  },
);

/** Only the calls' costs are missing from the balance, and nothing is held. */
async function expectCharged(customer: Customer, ...usages: readonly (readonly [string, Record<string, number>])[]) {
  const entries = await entriesOf(running.service, customer);
  expect(
    entries.map(({ amount_usd, request: { model, usage, estimated } }) => ({
      model,
      usage,
      estimated,
      cost: -nanoUsd(amount_usd),
    })),
  ).toEqual(
    usages.map(([model, usage]) => ({
      model,
      usage: expect.objectContaining(usage) as object,
      estimated: false,
      cost: costOf(model, usage),
    })),
  );
  const spent = usages.reduce((sum, [model, usage]) => sum + costOf(model, usage), 0n);
  expect(nanoUsd(await customer.available())).toBe(10_000_000_000n - spent);
}

test("Claude Code runs on a chat model: a streamed tool call, and the money to the token", async () => {
  const customer = await running.service.account("10");
  const call = { index: 0, id: "call_9", type: "function", function: { name: "Bash", arguments: "" } };
  const part = (text: string) => mockChunk({ tool_calls: [{ index: 0, function: { arguments: text } }] });
  const usage = {
    prompt_tokens: 1_000,
    completion_tokens: 50,
    total_tokens: 1_050,
    prompt_tokens_details: { cached_tokens: 600 },
  };
  running.deepseek.respond({
    events: [
      mockChunk({ role: "assistant", content: "", reasoning_content: "I read it." }),
      mockChunk({ content: "Let me look." }),
      mockChunk({ tool_calls: [call] }),
      part('{"command":'),
      part('"ls"}'),
      mockChunk({}, "tool_calls"),
      mockChunk(undefined, null, { usage }),
    ],
  });
  const response = await customer.post("/v1/messages?beta=true", claudeCodeRequest(chatModel), {
    headers: claudeCodeHeaders,
  });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  const events = eventsOf(await response.text());
  const ofType = (type: string) => events.filter((event) => event["type"] === type);
  expect(ofType("content_block_start").map((event) => (event["content_block"] as Json)["type"])).toEqual([
    "thinking",
    "text",
    "tool_use",
  ]);
  expect(ofType("content_block_start").at(-1)?.["content_block"]).toMatchObject({ id: "call_9", name: "Bash" });
  const json = ofType("content_block_delta").map(
    (event) => (event["delta"] as { partial_json?: string }).partial_json ?? "",
  );
  expect(JSON.parse(json.join(""))).toEqual({ command: "ls" });
  expect(ofType("message_delta")).toMatchObject([
    {
      delta: { stop_reason: "tool_use" },
      usage: { input_tokens: 400, cache_read_input_tokens: 600, output_tokens: 50 },
    },
  ]);
  expect(events.at(-1)).toEqual({ type: "message_stop" });

  const { path, body } = await running.deepseek.request(0);
  expect([path, body["model"]]).toEqual(["/v1/chat/completions", "deepseek-v4-pro"]);
  expect(JSON.stringify(body)).not.toMatch(/cache_control|signature|context_management|device_id/);
  await expectCharged(customer, [chatModel, { input: 400, cached_input: 600, output: 50 }]);
});

test("Codex runs on a Claude model: a streamed tool call, its reasoning in the next turn, and the money to the token", async () => {
  const customer = await running.service.account("10");
  const thinking = { type: "thinking", thinking: "Hm.", signature: "c2lnbmF0dXJl" };
  running.anthropic.respond({
    content: [
      thinking,
      { type: "text", text: "Let me look." },
      { type: "tool_use", id: "toolu_9", name: "mcp__orders__lookup_order", input: { number: 8 } },
    ],
    usage: { input_tokens: 700, cache_read_input_tokens: 300, output_tokens: 40 },
  });
  const turn = { model: claude, ...searching };
  const response = await customer.post("/v1/responses", turn);
  expect(response.status).toBe(200);
  const events = eventsOf(await response.text());
  const done = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
  expect(done).toMatchObject([
    { type: "reasoning", summary: [{ text: "Hm." }] },
    { type: "message", content: [{ type: "output_text", text: "Let me look." }] },
    { type: "function_call", call_id: "toolu_9", namespace: "mcp__orders", name: "lookup_order" },
  ]);
  expect(events.at(-1)).toMatchObject({
    type: "response.completed",
    response: {
      model: claude,
      status: "completed",
      usage: { input_tokens: 1_000, input_tokens_details: { cached_tokens: 300 }, output_tokens: 40 },
    },
  });
  const { path, body } = await running.anthropic.request(0);
  expect([path, body["model"]]).toEqual(["/v1/messages", "claude-sonnet-5"]);
  const names = ["exec_command", "apply_patch", "tool_search", "mcp__orders__lookup_order"];
  expect(body["tools"]).toMatchObject(names.map((name) => ({ name })));
  const result = { type: "tool_result", tool_use_id: "call_p1" };
  expect((body["messages"] as readonly Json[]).at(-1)).toMatchObject({ role: "user", content: [result] });
  expect(JSON.stringify(body)).not.toMatch(/ENCRYPTED|client_metadata|prompt_cache_key/);
  await expectCharged(customer, [claude, { input: 700, cached_input: 300, output: 40 }]);

  const looked = { type: "function_call_output", call_id: "toolu_9", output: "Order 8 is late." };
  await customer.post("/v1/responses", { ...turn, input: [...turn.input, ...done, looked] });
  const next = (await running.anthropic.request(1)).body["messages"] as readonly Json[];
  expect(next.at(-2)).toMatchObject({ role: "assistant", content: [thinking, { type: "text" }, { id: "toolu_9" }] });
});

test("tokens are counted, bare names are taken, and an Idempotency-Key gives the stored answer", async () => {
  const customer = await running.service.account("10");
  const { stream: _, max_tokens: __, ...counted } = claudeCodeRequest(chatModel);
  const count = await customer.post("/v1/messages/count_tokens", counted, { headers: claudeCodeHeaders });
  expect([count.status, count.headers.get("x-xm-token-count")]).toEqual([200, "estimate"]);
  expect(await count.json()).toEqual({ input_tokens: expect.any(Number) as number });

  const asked = { model: "gpt-4.1-mini", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
  const headers = { "idempotency-key": "once", "anthropic-version": "2023-06-01" };
  const first = await customer.post("/v1/messages", asked, { headers });
  const again = await customer.post("/v1/messages", asked, { headers });
  expect([first.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  const answer = (await first.json()) as object;
  expect(answer).toMatchObject({
    type: "message",
    model: "gpt-4.1-mini",
    usage: { input_tokens: 9, output_tokens: 8 },
  });
  expect(await again.json()).toEqual(answer);
  const usages = await entriesOf(running.service, customer);
  expect(usages.filter(({ request }) => request.endpoint === "/v1/messages")).toHaveLength(1);
  expect(nanoUsd(await customer.available())).toBe(
    10_000_000_000n - costOf("openai/gpt-4.1-mini", { input: 9, output: 8 }),
  );
});

test("the list in the Messages format names every text model, each as this format takes it", async () => {
  const ours = (await (await fetch(`${running.service.baseUrl}/v1/models`)).json()) as {
    data: readonly { id: string; type: string; owned_by: string }[];
  };
  const texts = ours.data.filter(({ type }) => type === "text");
  const client = new Anthropic({ apiKey: "nobody", baseURL: running.service.baseUrl, maxRetries: 0 });
  const listed = (await Array.fromAsync(client.models.list())).map(({ id }) => id);
  const bare = (id: string) => id.replace(/^anthropic\//, "");
  expect(listed.toSorted()).toEqual(texts.map(({ id }) => bare(id)).toSorted());
  expect((await client.models.retrieve(chatModel)).id).toBe(chatModel);
  await expect(client.models.retrieve("deepseek-v4-pro")).rejects.toThrow(/Did you mean 'deepseek\/deepseek-v4-pro'\?/);
});

test("a model of another endpoint is refused", async () => {
  const customer = await running.service.account("10");
  for (const path of ["/v1/messages", "/v1/responses"]) {
    const body = {
      model: "openai/text-embedding-3-small",
      input: "x",
      max_tokens: 5,
      messages: [{ role: "user", content: "x" }],
    };
    const response = await customer.post(path, body);
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("is served at /v1/embeddings"),
    ]);
  }
});
