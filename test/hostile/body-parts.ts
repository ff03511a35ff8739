import { many, mebi } from "./input.ts";

/** The parts of long bodies, in the formats of callers. */

type Fields = Readonly<Record<string, unknown>>;
export const gemini = (model: string, verb = "generateContent") => `/v1beta/models/${model}:${verb}`;
export const withMessages = (model: string, messages: readonly object[], more: Fields = {}) => ({
  model,
  messages,
  ...more,
});
export const anthropicBody = (model: string, messages: readonly object[]) => ({ model, max_tokens: 9, messages });
export const geminiBody = (...parts: readonly object[]) => ({ contents: [{ role: "user", parts }] });
export const localCall = (model: string, more: Fields) => ({ model: `local/${model}`, ...more });

export const said = (content: unknown) => [{ role: "user", content }];
export const hi = said("Hi");
export const turns = (count: number) =>
  many(count, (index) => ({ role: index % 2 ? "assistant" : "user", content: "Hi" }));
export const manyTokens = said("tokens:100000");

/** 20 MB of words. */
export const words = () => "ab ".repeat(7 * mebi);
/** 20 MB without a space. */
export const letters = () => "a".repeat(20 * mebi);
export const longLink = () => `https://${letters()}`;
/** 20 MB of JSON. */
export const objects = () => JSON.stringify(many(3_000_000, () => ({})));
export const numbered = (count: number, prefix = "a") => many(count, (index) => `${prefix}${index}`);
export const fields = (count: number, value: unknown) =>
  Object.fromEntries(numbered(count, "k").map((name) => [name, value]));
/** Names that differ only at their end. */
export const similar = (count: number, fill: string) =>
  many(count, (index) => `${"a".repeat(50)}${String(index).padStart(5, fill)}`);

export const image = (url: string) => ({ type: "image_url", image_url: { url } });
export const inlineImage = image(`data:image/png;base64,${"QUJD".repeat(5)}`);
export const text = (content: unknown) => ({ type: "text", text: content });
export const marked = { ...text("a"), cache_control: { type: "ephemeral" } };

export const tool = (name: string, more: Fields = {}) => ({ type: "function", function: { name, ...more } });
export const flatTool = (name: string, more: Fields = {}) => ({ type: "function", name, ...more });
const toolCall = (id: string, input = "{}") => ({ id, ...tool("a", { arguments: input }) });
export const callItem = (call_id: string, input = "{}") => ({
  type: "function_call",
  call_id,
  name: "a",
  arguments: input,
});
export const resultItem = (call_id: string) => ({ type: "function_call_output", call_id, output: "1" });
export const toolResult = (tool_call_id: string, content = "1") => ({ role: "tool", tool_call_id, content });

export const withCalls = (calls: readonly object[], results: readonly object[]) => [
  ...hi,
  { role: "assistant", tool_calls: calls },
  ...results,
];
export const withOneCall = (input: string, result = "1") =>
  withCalls([toolCall("c", input)], [toolResult("c", result)]);

/** Ids that differ only at their end, so that comparing two takes as long as possible. */
const alike = <T>(itemOf: (id: string) => T): T[] =>
  many(4_400, (index) => itemOf(`${"a".repeat(1_900)}${String(index).padStart(5, "0")}`));
/** Results come in the reverse order of their calls. */
export const alikeCalls = () => withCalls(alike(toolCallOf), alike((id) => toolResult(id)).toReversed());
export const toolCallOf = (id: string) => toolCall(id);
export const alikeItems = () => [...hi, ...alike((id) => callItem(id)), ...alike(resultItem).toReversed()];
export const alikeBlocks = () => [
  ...hi,
  { role: "assistant", content: alike((id) => ({ type: "tool_use", id, name: "a", input: {} })) },
  {
    role: "user",
    content: alike((tool_use_id) => ({ type: "tool_result", tool_use_id, content: "1" })).toReversed(),
  },
];
export const alikeParts = (field: "id" | "name") => {
  const nameOf = (value: string) => (field === "id" ? { id: value, name: "a" } : { name: value });
  const results = alike((value) => ({ functionResponse: { ...nameOf(value), response: {} } }));
  return {
    contents: [
      { role: "model", parts: alike((value) => ({ functionCall: { ...nameOf(value), args: {} } })) },
      { role: "user", parts: results.toReversed() },
    ],
  };
};

/** The state of reasoning in a converted response: JSON in base64 in one text. */
const reasoningState = () => {
  const details = many(60_000, () => ({}));
  return Buffer.from("reasoning-state" + JSON.stringify({ reasoning_details: details })).toString("base64");
};
export const reasoningMessages = () => {
  const thought = [{ type: "thinking", thinking: "a", signature: reasoningState() }, text("a")];
  return many(80, () => [...hi, { role: "assistant", content: thought }]).flat();
};
export const reasoningItems = () => {
  const thought = { type: "reasoning", summary: [], encrypted_content: reasoningState() };
  return many(80, () => [...hi, thought, { role: "assistant", content: "a" }]).flat();
};
export const reasoningContents = () => {
  const thought = { text: "Hi", thoughtSignature: reasoningState() };
  return many(80, () => [
    { role: "user", parts: [{ text: "Hi" }] },
    { role: "model", parts: [thought] },
  ]).flat();
};

export const allowedTools = (tools: readonly object[]) => ({ mode: "auto", tools });
