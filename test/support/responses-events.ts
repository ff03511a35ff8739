import type OpenAI from "openai";
import { expect } from "vitest";
import { mockUsage } from "./mock-openai.ts";

/** The native model by the provider's own name; a model that another provider hosts, which speaks chat only. */
export const nativeModel = "gpt-4.1-mini";
export const hostedModel = "openai/gpt-oss-120b";

type Event = OpenAI.Responses.ResponseStreamEvent;
type Item = OpenAI.Responses.ResponseOutputItem;

/** The events of an item between `added` and `done`. */
const between: Readonly<Record<string, RegExp>> = {
  message: /^((part\+ (text )+text! part! )|(part\+ (refusal )+refusal! part! ))+$/,
  function_call: /^(arguments )+arguments! $/,
  reasoning: /^(summary\+ (thought )+thought! summary! )+$/,
};
const short: Readonly<Record<string, string>> = {
  "response.content_part.added": "part+",
  "response.content_part.done": "part!",
  "response.output_text.delta": "text",
  "response.output_text.done": "text!",
  "response.refusal.delta": "refusal",
  "response.refusal.done": "refusal!",
  "response.function_call_arguments.delta": "arguments",
  "response.function_call_arguments.done": "arguments!",
  "response.reasoning_summary_part.added": "summary+",
  "response.reasoning_summary_part.done": "summary!",
  "response.reasoning_summary_text.delta": "thought",
  "response.reasoning_summary_text.done": "thought!",
};

const idOf = (item: Item | undefined) => item && "id" in item && item.id;

/** Checks a stream against docs/api/wire-details.md, "Responses stream", and returns its final response. */
export function wholeStream(events: readonly Event[]): OpenAI.Responses.Response {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
  const [created, progress, ...rest] = events;
  const last = rest.pop();
  expect([created?.type, progress?.type]).toEqual(["response.created", "response.in_progress"]);
  if (last?.type !== "response.completed" && last?.type !== "response.incomplete") throw new Error(`${last?.type}`);
  for (const event of [created, progress])
    expect(event).toMatchObject({
      response: { id: last.response.id, model: last.response.model, status: "in_progress", output: [], usage: null },
    });

  const items: { id: unknown; type: string; types: string; text: string; done?: Item }[] = [];
  for (const event of rest) {
    if (event.type === "response.output_item.added") {
      expect(event.output_index).toBe(items.length);
      expect(idOf(event.item)).toMatch(/./);
      items.push({ id: idOf(event.item), type: event.item.type, types: "", text: "" });
      continue;
    }
    if (!("output_index" in event)) throw new Error(event.type);
    const item = items[event.output_index];
    if (!item || item.done) throw new Error(`${event.type} of no open item`);
    if (event.type === "response.output_item.done") {
      expect(idOf(event.item)).toBe(item.id);
      expect(item.types).toMatch(between[item.type] ?? /^$/);
      item.done = event.item;
      continue;
    }
    expect("item_id" in event && event.item_id).toBe(item.id);
    item.types += `${short[event.type] ?? event.type} `;
    if (/content_part|output_text|refusal/.test(event.type)) expect(event).toHaveProperty("content_index");
    if (/reasoning_summary/.test(event.type)) expect(event).toHaveProperty("summary_index");
    if (event.type === "response.output_text.delta") expect(event.logprobs).toEqual([]);
    if ("delta" in event && typeof event.delta === "string") item.text += event.delta;
    // A `done` event repeats its deltas.
    const whole = "text" in event ? event.text : "arguments" in event ? event.arguments : undefined;
    if (event.type.endsWith(".done") && typeof whole === "string") {
      expect(item.text).toBe(whole);
      item.text = "";
    }
  }
  expect(items.map(({ done }) => done)).toEqual(last.response.output);
  return last.response;
}

/** A whole chat response of the mock. */
export const chatAnswer = (message: object, finish_reason = "stop", more: object = {}) => ({
  body: {
    id: "chatcmpl-x",
    object: "chat.completion",
    created: 1,
    model: "mock",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, logprobs: null, finish_reason }],
    usage: mockUsage(),
    ...more,
  },
});
