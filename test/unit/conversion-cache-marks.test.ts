import { expect, test } from "vitest";
import type { JsonObject } from "#json";
import { addCacheMarks } from "../../workers/conversion/index.ts";
import { catalogWith, textModel } from "../support/catalog-fixture.ts";

const mark = { cache_control: { type: "ephemeral" } };
const long = "word ".repeat(1_000);
const text = (content: string, more: JsonObject = {}) => ({ type: "text", text: content, ...more });
const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const look = { type: "tool_use", id: "a", name: "look", input: {} };
const result = { type: "tool_result", tool_use_id: "a", content: long };
const thinking = { type: "thinking", thinking: "hm", signature: "s" };
const tool = (name: string, more: JsonObject = {}) => ({ name, description: long, input_schema: {}, ...more });
const deferred = tool("later", { defer_loading: true });

test.each<[string, JsonObject, JsonObject]>([
  [
    "the system prompt and the last message",
    { system: long, messages: [user("Hi")] },
    { system: [text(long, mark)], messages: [user([text("Hi", mark)])] },
  ],
  [
    "tools without a system prompt, but for those that are loaded later",
    { tools: [tool("a"), tool("b"), deferred], messages: [user("Hi")] },
    { tools: [tool("a"), tool("b", mark), deferred], messages: [user([text("Hi", mark)])] },
  ],
  [
    "the last block of the system prompt that has a text",
    { tools: [tool("a")], system: [text("a"), text("")], messages: [user("Hi")] },
    { tools: [tool("a")], system: [text("a", mark), text("")], messages: [user([text("Hi", mark)])] },
  ],
  [
    "the message that the turn before ended with",
    { messages: [user(long), assistant([thinking, look]), user([result]), assistant("Rain."), user([text("And?")])] },
    {
      messages: [
        user(long),
        assistant([thinking, look]),
        user([{ ...result, ...mark }]),
        assistant("Rain."),
        user([text("And?", mark)]),
      ],
    },
  ],
  [
    "no thinking at the end, and no short prefix",
    { system: "Be brief.", messages: [user(long), assistant([text("I"), thinking])] },
    { system: "Be brief.", messages: [user(long), assistant([text("I", mark), thinking])] },
  ],
  ["nothing short", { system: "Be brief.", messages: [user("Hi")] }, { system: "Be brief.", messages: [user("Hi")] }],
])("marks %s", (_, request, marked) => {
  expect(addCacheMarks(request, 1_024)).toEqual(marked);
});

test("a prefix is long enough from the provider's minimum on, by four bytes a token", () => {
  const isMarked = (bytes: number) => {
    const request = { system: "x".repeat(bytes), messages: [] };
    return addCacheMarks(request, 512)["system"] !== request.system;
  };
  expect([isMarked(4 * 512 - 1), isMarked(4 * 512)]).toEqual([false, true]);
});

test.each([
  ["Anthropic's", { input: "3", cached_input: "0.3", cache_write: "3.75" }, true],
  ["a dear write", { input: "3", cached_input: "0.3", cache_write: "5.7" }, false],
  ["a dear read", { input: "3", cached_input: "2.4", cache_write: "3.75" }, false],
  ["no price of a read", { input: "3", cache_write: "3" }, false],
])("%s prices tell whether one read saves more than a write costs", (_, pricing, isWorth) => {
  const { model } = catalogWith({ ...textModel, pricing: { ...pricing, output: "15" } });
  expect(model.cacheWritePaysOff).toBe(isWorth);
});
