import type { ProviderAnswer } from "../support/mock-provider.ts";

/** The parts of providers' answers, as text where a value of the same size would be slow to write. */

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

const bytes = (frames: readonly string[]): ProviderAnswer => ({
  events: [Buffer.from(frames.join(""))],
  done: false,
});
const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
export const named = (event: Event) => `event: ${event.type}\n${data(event)}`;

export const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
export const toolCall = (id: string, input: string) => ({
  id,
  type: "function",
  function: { name: "a", arguments: input },
});

export const completion = (message: object, choice: object = {}) => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi", ...message }, finish_reason: "stop", ...choice }],
  usage,
});
export const chunk = (delta: object | string, more: object = {}, finish_reason: string | null = null) =>
  data({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
    ...more,
  });
export const failure = (error: object) => data({ error });
export const chunks = (...frames: readonly string[]): ProviderAnswer =>
  bytes([...frames, chunk({}, { usage }, "stop"), "data: [DONE]\n\n"]);

export const anthropicMessage = (...content: readonly object[]) => ({
  id: "m",
  type: "message",
  role: "assistant",
  model: "m",
  content,
  stop_reason: "end_turn",
  usage: { input_tokens: 9, output_tokens: 9 },
});
export const block = (index: number, text: string) =>
  [
    { type: "content_block_start", index, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index },
  ]
    .map(named)
    .join("");
export const anthropicStream = (...frames: readonly string[]): ProviderAnswer =>
  bytes([
    named({
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    }),
    ...frames,
    named({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } }),
    named({ type: "message_stop" }),
  ]);

export const candidates = (parts: readonly object[], candidate: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, finishReason: "STOP", ...candidate }],
  usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 9, totalTokenCount: 18 },
});
export const candidateEvents = (count: number): ProviderAnswer => ({
  events: [Buffer.from(data(candidates([{ text: "a" }])).repeat(count))],
});

export const response = (...output: readonly object[]) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "completed",
  output,
  usage: { input_tokens: 9, output_tokens: 9, total_tokens: 18 },
});
export const messageItem = (text: string, index = 0, annotations: readonly object[] = []) => ({
  id: `msg_${index}`,
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations, logprobs: [] }],
});
export const responseStream = (...events: readonly Event[]): ProviderAnswer =>
  bytes([
    named({ type: "response.created", response: { ...response(), status: "in_progress" } }),
    ...events.map(named),
    named({ type: "response.completed", response: response() }),
  ]);
