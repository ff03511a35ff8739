import { expect, test } from "vitest";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

type Json = Readonly<Record<string, unknown>>;

const crossed = (fields: Json = {}) =>
  messagesConverter.requestFromChat({
    model: "claude-sonnet-4-6",
    max_tokens: 10_000,
    messages: [{ role: "user", content: "Hello" }],
    ...fields,
  });
const made = (fields: Json = {}) => crossed(fields).request;
const lookup = { type: "function", function: { name: "look", parameters: { properties: {} } } };

const summarized = { type: "adaptive", display: "summarized" };
test.each([
  ["claude-haiku-4-5-20251001", "high", { thinking: { type: "enabled", budget_tokens: 8000 } }],
  ["claude-haiku-4-5-20251001", "low", { thinking: { type: "enabled", budget_tokens: 2048 } }],
  ["claude-3-7-sonnet-20250219", "medium", { thinking: { type: "enabled", budget_tokens: 8000 } }],
  ["claude-opus-4-20250514", "none", {}],
  ["claude-sonnet-4-6", "minimal", { thinking: summarized, output_config: { effort: "low" } }],
  ["claude-sonnet-4-6", "xhigh", { thinking: summarized, output_config: { effort: "high" } }],
  ["claude-opus-5-5", "xhigh", { thinking: summarized, output_config: { effort: "xhigh" } }],
  ["claude-opus-5-5", "none", { output_config: { effort: "low" } }],
  ["claude-fable-5", "none", { output_config: { effort: "low" } }],
  ["claude-sonnet-5-5", "none", { thinking: { type: "between_tools" } }],
  ["claude-haiku-5-5", "none", { thinking: { type: "disabled" } }],
  ["claude-opus-4-8", "none", {}],
])("for %s the effort %s is %j", (model, reasoning_effort, fields) => {
  const { model: _, max_tokens: __, messages: ___, ...rest } = made({ model, reasoning_effort });
  expect(rest).toEqual(fields);
});

test("an effort that does not fit is left out by name", () => {
  const model = "claude-haiku-4-5";
  expect(crossed({ model, reasoning_effort: "high", max_tokens: 1000 })).toMatchObject({
    ignored: ["reasoning_effort"],
  });
  const forced = { tools: [lookup], tool_choice: "required", reasoning_effort: "high" };
  expect(crossed({ ...forced, model }).ignored).toEqual(["reasoning_effort"]);
  expect(made({ ...forced })).toMatchObject({ output_config: { effort: "high" } });
  expect(made({ ...forced })["thinking"]).toBeUndefined();
});

test("sampling goes to models that take it, one kind of it, and not beside thinking", () => {
  expect(crossed({ temperature: 1.7 })).toMatchObject({ request: { temperature: 1 }, ignored: ["temperature"] });
  expect(crossed({ temperature: 0.2, top_p: 0.9, top_k: 5 })).toMatchObject({
    request: { temperature: 0.2, top_k: 5 },
    ignored: ["top_p"],
  });
  expect(made({ top_p: 0.9 })["top_p"]).toBe(0.9);
  expect(made({ temperature: 0.2, top_p: 0.9 })["top_p"]).toBeUndefined();
  for (const fields of [{ model: "claude-opus-5-5" }, { reasoning_effort: "low" }]) {
    const { request, ignored } = crossed({ ...fields, temperature: 0.2, top_p: 1 });
    expect(request["temperature"]).toBeUndefined();
    expect(ignored).toEqual(["temperature"]);
  }
});

test("a model that always thinks cannot be made to call a tool", () => {
  const forced = { tools: [lookup], tool_choice: "required" };
  const refused = expect.objectContaining({ code: "invalid_value", param: "tool_choice" });
  for (const model of ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"])
    expect(() => made({ ...forced, model })).toThrow(refused);
  for (const model of ["claude-opus-5", "claude-haiku-5-5", "another-providers"])
    expect(made({ ...forced, model })["tool_choice"]).toEqual({ type: "any" });
});
