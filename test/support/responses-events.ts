import type OpenAI from "openai";
import { expect } from "vitest";
import { mockUsage } from "./mock-openai.ts";

/** As the endpoint's own provider has it, bare; one of that provider's that another hosts, which speaks chat alone. */
export const nativeModel = "gpt-4.1-mini";
export const hostedModel = "openai/gpt-oss-120b";

type Event = OpenAI.Responses.ResponseStreamEvent;
type Item = OpenAI.Responses.ResponseOutputItem;

/** Events that tell of an item between its beginning and its end, in the order of one part. */
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

/** Checks a stream against wire-details, "Responses stream", and gives the response that it ended with. */
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

  const items: { id: unknown; type: string; told: string; said: string; done?: Item }[] = [];
  for (const event of rest) {
    if (event.type === "response.output_item.added") {
      expect(event.output_index).toBe(items.length);
      expect(idOf(event.item)).toMatch(/./);
      items.push({ id: idOf(event.item), type: event.item.type, told: "", said: "" });
      continue;
    }
    if (!("output_index" in event)) throw new Error(event.type);
    const item = items[event.output_index];
    if (!item || item.done) throw new Error(`${event.type} of no open item`);
    if (event.type === "response.output_item.done") {
      expect(idOf(event.item)).toBe(item.id);
      expect(item.told).toMatch(between[item.type] ?? /^$/);
      item.done = event.item;
      continue;
    }
    expect("item_id" in event && event.item_id).toBe(item.id);
    item.told += `${short[event.type] ?? event.type} `;
    if (/content_part|output_text|refusal/.test(event.type)) expect(event).toHaveProperty("content_index");
    if (/reasoning_summary/.test(event.type)) expect(event).toHaveProperty("summary_index");
    if (event.type === "response.output_text.delta") expect(event.logprobs).toEqual([]);
    if ("delta" in event && typeof event.delta === "string") item.said += event.delta;
    // What is done is what its deltas were.
    const whole = "text" in event ? event.text : "arguments" in event ? event.arguments : undefined;
    if (event.type.endsWith(".done") && typeof whole === "string") {
      expect(item.said).toBe(whole);
      item.said = "";
    }
  }
  expect(items.map(({ done }) => done)).toEqual(last.response.output);
  return last.response;
}

/** A whole chat answer of the stand-in with other choices. */
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
