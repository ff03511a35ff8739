import OpenAI from "openai";
import { expect } from "vitest";

export type Json = Readonly<Record<string, unknown>>;

/** The events of a stream. Checks that the event line of each has its type. */
export function eventsOf(text: string): Json[] {
  const frames = text.split("\n\n");
  expect(frames.pop()).toBe("");
  return frames.map((frame) => {
    const [line, data, ...rest] = frame.split("\n");
    expect(rest).toEqual([]);
    const event = JSON.parse((data as string).slice("data: ".length)) as Json;
    expect(line).toBe(`event: ${String(event["type"])}`);
    return event;
  });
}

interface Item {
  readonly id: string;
  readonly type: string;
  content: { type: string; text: string; refusal: string; logprobs: unknown[] }[];
  summary: { type: string; text: string }[];
  encrypted_content?: unknown;
  arguments: string;
  input: string;
}

/** The events of an item between `added` and `done`, without "response.". */
const eventOrder: Readonly<Record<string, RegExp>> = {
  message:
    /^(content_part\.added ((output_text\.delta )+output_text\.done|(refusal\.delta )+refusal\.done) content_part\.done )+$/,
  reasoning:
    /^(reasoning_summary_part\.added (reasoning_summary_text\.delta )+reasoning_summary_text\.done reasoning_summary_part\.done )*$/,
  function_call: /^(function_call_arguments\.delta )+function_call_arguments\.done $/,
  custom_tool_call: /^(custom_tool_call_input\.delta )*custom_tool_call_input\.done $/,
};

/** Assembles the response from the deltas of a stream. Checks that its other events agree with them. */
export function assemble(events: readonly Json[]): Json {
  expect(events.map((event) => event["sequence_number"])).toEqual(events.map((_, e) => e));
  const types = events.map((event) => event["type"]);
  expect(types.slice(0, 2)).toEqual(["response.created", "response.in_progress"]);
  expect(types.at(-1)).toMatch(/^response\.(completed|incomplete)$/);
  const items: Item[] = [];
  const done: unknown[] = [];
  const orders: string[] = [];
  for (const event of events.slice(2, -1)) {
    const { type, output_index, item_id, delta, part } = event;
    const at = output_index as number;
    if (type === "response.output_item.added") {
      expect(at).toBe(items.length);
      items.push(structuredClone(event["item"]) as Item);
      orders.push("");
      continue;
    }
    const item = items[at] as Item;
    expect(done[at]).toBeUndefined();
    if (type === "response.output_item.done") {
      const { status: _, ...whole } = event["item"] as Json;
      // These have no deltas.
      if (item.type === "tool_search_call") item.arguments = whole["arguments"] as string;
      if (item.type === "reasoning") item.encrypted_content = whole["encrypted_content"];
      const { status: __, ...built } = item as unknown as Json;
      expect(built).toEqual(whole);
      expect(orders[at]).toMatch(eventOrder[item.type] ?? /^$/);
      done[at] = event["item"];
      continue;
    }
    expect(item_id).toBe(item.id);
    orders[at] += `${String(type).replace("response.", "")} `;
    const c = event["content_index"] as number;
    const s = event["summary_index"] as number;
    const content = item.content?.[c] as Item["content"][number];
    switch (type) {
      case "response.content_part.added":
        expect(c).toBe(item.content.length);
        item.content.push(structuredClone(part) as Item["content"][number]);
        break;
      case "response.output_text.delta":
        content.text += delta as string;
        content.logprobs.push(...(event["logprobs"] as unknown[]));
        break;
      case "response.refusal.delta":
        content.refusal += delta as string;
        break;
      case "response.output_text.done":
        expect(event).toMatchObject({ text: content.text, logprobs: content.logprobs });
        break;
      case "response.refusal.done":
        expect(event["refusal"]).toBe(content.refusal);
        break;
      case "response.content_part.done":
        expect(part).toEqual(content);
        break;
      case "response.reasoning_summary_part.added":
        expect(s).toBe(item.summary.length);
        item.summary.push(structuredClone(part) as Item["summary"][number]);
        break;
      case "response.reasoning_summary_text.delta":
        (item.summary[s] as { text: string }).text += delta as string;
        break;
      case "response.reasoning_summary_text.done":
        expect(event["text"]).toBe(item.summary[s]?.text);
        break;
      case "response.reasoning_summary_part.done":
        expect(part).toEqual(item.summary[s]);
        break;
      case "response.function_call_arguments.delta":
        item.arguments += delta as string;
        break;
      case "response.custom_tool_call_input.delta":
        item.input += delta as string;
        break;
      case "response.function_call_arguments.done":
        expect(event["arguments"]).toBe(item.arguments);
        break;
      case "response.custom_tool_call_input.done":
        expect(event["input"]).toBe(item.input);
        break;
      default:
        throw new Error(`Unknown event ${String(type)}`);
    }
  }
  expect(done).toHaveLength(items.length);
  const { response } = events.at(-1) as { response: Json };
  expect(response["output"]).toEqual(done);
  return response;
}

/** The response that the official client reads from a stream. */
export function clientAnswer(body: string) {
  const client = new OpenAI({
    apiKey: "key",
    maxRetries: 0,
    fetch: () => Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } })),
  });
  return client.responses.stream({ model: "local/chat", input: "Hello" }).finalResponse();
}
