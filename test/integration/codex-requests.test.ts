import { describe, expect, test } from "vitest";
import { additional, namespaced, searching } from "../support/codex-requests.ts";
import { eventsOf, type Json } from "../support/formats-responses-assemble.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { withRelayedModel } from "../support/native-formats.ts";
import { hostedModel } from "../support/responses-events.ts";
import { localModel, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const requests = { namespaced, searching, additional } as const;

async function ask(body: object) {
  const customer = await running.service.account("1");
  const answer = await customer.post("/v1/responses", body);
  expect(answer.status).toBe(200);
  const events = eventsOf(await answer.text());
  const last = events.at(-1) as { type: string; response: { output: Json[] } };
  expect(last.type).toBe("response.completed");
  return { output: last.response.output, ignored: answer.headers.get("x-ignored-params")?.split(", ") ?? [] };
}

describe.each(Object.entries(requests))("%s tools", (name, request) => {
  test("native: the request passes except for a web search that would find nothing", async () => {
    const { output, ignored } = await ask({ model: "gpt-5.5", ...request });
    expect(output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
    expect(ignored).toEqual(name === "additional" ? [] : ["tools.web_search"]);
    const cap = expect.any(Number) as number;
    const prompt_cache_key = expect.any(String) as string;
    const tools = "tools" in request && { tools: request.tools.filter(({ type }) => type !== "web_search") };
    expect(running.provider.requests[0]?.body).toEqual({
      ...request,
      ...tools,
      model: "gpt-5.5",
      max_output_tokens: cap,
      prompt_cache_key,
    });
  });

  test.each([hostedModel, localModel])("converted for %s", async (model) => {
    const { output } = await ask({ model, ...request });
    expect(output.at(-1)).toMatchObject({ status: "completed" });
  });
});

describe("a hosted tool that no model has", () => {
  const search = { type: "web_search", external_web_access: true };
  const look = { type: "function", name: "look_up", parameters: { type: "object", properties: {} }, strict: false };
  const image = { type: "image_generation" };
  const stored = [
    { type: "file_search", vector_store_ids: ["vs_1"] },
    { type: "code_interpreter", container: { type: "auto" } },
  ];

  test.each(["gpt-5.5", hostedModel, localModel])("beside functions is omitted and named, for %s", async (model) => {
    const tools = [search, look, image, ...stored];
    const allowed = [{ type: "function", name: "look_up" }, { type: "web_search" }];
    const tool_choice = model === localModel ? "auto" : { type: "allowed_tools", mode: "auto", tools: allowed };
    const { ignored } = await ask({ model, input: "Hi", stream: true, tools, tool_choice });
    const omitted = ["web_search", "image_generation", "file_search", "code_interpreter"];
    expect(ignored).toEqual(expect.arrayContaining(omitted.map((name) => `tools.${name}`)));
    for (const { body } of running.provider.requests)
      expect(JSON.stringify([body["tools"], body["tool_choice"]])).not.toMatch(new RegExp(omitted.join("|")));
  });

  test.each([
    ["alone", { tools: [search] }, "tools[0].type"],
    ["with another", { tools: [search, image] }, "tools[0].type"],
    ["with files at the provider, alone", { tools: stored.slice(0, 1) }, "tools[0].vector_store_ids"],
    ["forced", { tools: [search, look], tool_choice: { type: "web_search" } }, "tool_choice.type"],
    [
      "the only one allowed, and required",
      {
        tools: [look, search],
        tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "web_search" }] },
      },
      "tool_choice.tools",
    ],
    ["of a type that nobody knows", { tools: [look, { type: "web_hunt" }] }, "tools[1].type"],
  ])("%s is refused", async (_, fields, param) => {
    const customer = await running.service.account("1");
    const answer = await customer.post("/v1/responses", { model: "gpt-5.5", input: "Hi", ...fields });
    expect(await refusalOf(answer)).toMatchObject({ status: 400, error: { param } });
    expect(await customer.available()).toBe("1.00");
  });
});

test("converted: calls of the model's are those of Codex's own tools", async () => {
  const calls = [
    ["mcp__orders__lookup_order", '{"number":8}'],
    ["apply_patch", '{"input":"*** Begin Patch\\n*** End Patch\\n"}'],
    ["tool_search", '{"query":"orders"}'],
  ].map(([name, args = ""], index) => ({ index, id: `call_${index}`, type: "function", name, args }));
  running.provider.respond({
    events: [
      mockChunk({ role: "assistant", reasoning: "I look it up." }),
      ...calls.flatMap(({ name, args, ...call }) => [
        mockChunk({ tool_calls: [{ ...call, function: { name, arguments: args.slice(0, 3) } }] }),
        mockChunk({ tool_calls: [{ index: call.index, function: { arguments: args.slice(3) } }] }),
      ]),
      mockChunk({}, "tool_calls"),
      mockChunk(undefined, null, { usage: mockUsage() }),
    ],
  });
  const { output } = await ask({ model: hostedModel, ...searching });
  expect(output).toMatchObject([
    { type: "reasoning", summary: [{ text: "I look it up." }] },
    { type: "function_call", name: "lookup_order", namespace: "mcp__orders", arguments: '{"number":8}' },
    { type: "custom_tool_call", name: "apply_patch", input: "*** Begin Patch\n*** End Patch\n" },
    { type: "tool_search_call", execution: "client", arguments: { query: "orders" } },
  ]);
  // The next turn includes them, and the reasoning before them.
  await ask({ model: hostedModel, ...searching, input: [...searching.input, ...output] });
  const next = await running.provider.request(1);
  expect((next.body["messages"] as Json[]).at(-1)).toMatchObject({
    reasoning: "I look it up.",
    tool_calls: calls.map(({ id, name, args }) => ({ id, function: { name, arguments: args } })),
  });
});
