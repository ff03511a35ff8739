import { expect, test } from "vitest";
import { type Codec, chatCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import type { JsonObject } from "#json";

const mark = { cache_control: { type: "ephemeral" } };
const part = (text: string) => ({ type: "text", text });

/** For each format, a conversation of two turns, and the first turn with other fields. */
interface Conversation {
  readonly codec: Codec;
  readonly first: JsonObject;
  readonly second: JsonObject;
  readonly others: Readonly<Record<string, JsonObject>>;
}

const chatTool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
const chat = {
  model: "m",
  messages: [
    { role: "system", content: "s" },
    { role: "user", content: "hi" },
  ],
  tools: [chatTool("look")],
};
const messages = {
  model: "m",
  max_tokens: 9,
  system: "s",
  messages: [{ role: "user", content: [{ ...part("hi"), ...mark }] }],
  tools: [{ name: "look", input_schema: { type: "object" } }],
};
const responses = {
  model: "m",
  instructions: "s",
  input: "hi",
  tools: [{ type: "function", name: "look", parameters: {} }],
};
const gemini = {
  systemInstruction: { parts: [{ text: "s" }] },
  contents: [{ parts: [{ text: "hi" }] }],
  tools: [{ functionDeclarations: [{ name: "look" }] }],
};
const user = (content: unknown) => ({ role: "user", content });
const answered = { role: "assistant", content: "hello" };

const conversations: Readonly<Record<string, Conversation>> = {
  chat: {
    codec: chatCodec,
    first: chat,
    second: {
      ...chat,
      messages: [
        { role: "system", content: [{ ...part("s"), ...mark }] },
        user([part("hi")]),
        answered,
        user([{ ...part("and"), ...mark }]),
      ],
    },
    others: {
      "another system prompt": { ...chat, messages: [{ role: "developer", content: "t" }, user("hi")] },
      "another first message": { ...chat, messages: [{ role: "system", content: "s" }, user("ho")] },
      "another tool": { ...chat, tools: [chatTool("listen")] },
      "a prompt_cache_key": { ...chat, prompt_cache_key: "k" },
    },
  },
  messages: {
    codec: messagesCodec,
    first: messages,
    second: { ...messages, system: [{ ...part("s"), ...mark }], messages: [user("hi"), answered, user("and")] },
    others: {
      "another system prompt": { ...messages, system: "t" },
      "another first message": { ...messages, messages: [user("ho")] },
      "another tool": { ...messages, tools: [{ name: "listen", input_schema: {} }] },
      "a user_id": { ...messages, metadata: { user_id: "u" } },
      "a prompt_cache_key": { ...messages, prompt_cache_key: "k" },
    },
  },
  responses: {
    codec: responsesCodec,
    first: responses,
    second: {
      ...responses,
      input: [
        { role: "user", content: [{ type: "input_text", text: "hi" }] },
        { type: "function_call", call_id: "c", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "a cat" },
      ],
    },
    others: {
      "another system prompt": { ...responses, instructions: "t" },
      "another first message": { ...responses, input: "ho" },
      "another tool": { ...responses, tools: [] },
      "a prompt_cache_key": { ...responses, prompt_cache_key: "k" },
    },
  },
  gemini: {
    codec: geminiCodec("m", false, false),
    first: gemini,
    second: {
      system_instruction: { parts: { text: "s" } },
      contents: [
        { role: "user", parts: [{ text: "hi" }] },
        { role: "model", parts: [{ text: "hello" }] },
        { role: "user", parts: [{ text: "and" }] },
      ],
      tools: [{ function_declarations: [{ name: "look" }] }],
    },
    others: {
      "another system prompt": { ...gemini, systemInstruction: { parts: [{ text: "t" }] } },
      "another first message": { ...gemini, contents: [{ parts: [{ text: "ho" }] }] },
      "another tool": { ...gemini, tools: [] },
    },
  },
};

const idOf = ({ codec }: Pick<Conversation, "codec">, body: JsonObject) => codec.parse(body, 0).conversation?.();

test.each(Object.entries(conversations))(
  "%s: the opening identifies a conversation in each of its turns",
  (_, each) => {
    const { first, second, others } = each;
    expect(idOf(each, first)).toContain("hi");
    expect(idOf(each, second)).toBe(idOf(each, first));
    const ids = Object.values(others).map((other) => idOf(each, other));
    expect(new Set([...ids, idOf(each, first)]).size).toBe(ids.length + 1);
  },
);

test.each([
  ["chat", { prompt_cache_key: "k" }],
  ["messages", { metadata: { user_id: "u" } }],
  ["responses", { prompt_cache_key: "k" }],
] as const)("%s: a name identifies it whatever else the request has", (format, name) => {
  const each = conversations[format] as Conversation;
  const named = Object.values(each.others).map((other) =>
    idOf(each, { prompt_cache_key: undefined, ...other, ...name }),
  );
  expect(named.filter((id) => id !== idOf(each, { ...each.first, ...name }))).toHaveLength(
    format === "messages" ? 1 : 0,
  );
});

test("no more is read of an opening than tells it apart", () => {
  const each = conversations["chat"] as Conversation;
  const opened = (text: unknown) => idOf(each, { model: "m", messages: [user(text)] });
  const long = "word ".repeat(4_000);
  expect(opened(`${long}a`)).toBe(opened(`${long}b`));
  expect(opened("a")).not.toBe(opened("b"));
  const parts = Array.from({ length: 10_000 }, () => part("x"));
  expect(opened(parts)).toBe(opened([...parts, part("y")]));
});
