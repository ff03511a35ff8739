import { mockChunk } from "./mock-openai.ts";

/** Events of a provider's stream, in the API format that its name begins with. */

export const chatText = (content: string) => mockChunk({ role: "assistant", content });

export const responsesText = (delta: string, sequence_number: number) => ({
  type: "response.output_text.delta",
  item_id: "msg_1",
  output_index: 0,
  content_index: 0,
  delta,
  logprobs: [],
  sequence_number,
});

/** The events before the text of a message of Responses. */
export const responsesStart = [
  {
    type: "response.created",
    response: {
      id: "resp_1",
      object: "response",
      created_at: 1,
      model: "x",
      output: [],
      status: "in_progress",
      store: false,
      usage: null,
    },
  },
  {
    type: "response.output_item.added",
    output_index: 0,
    item: { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] },
  },
  {
    type: "response.content_part.added",
    item_id: "msg_1",
    output_index: 0,
    content_index: 0,
    part: { type: "output_text", text: "", annotations: [], logprobs: [] },
  },
].map((event, sequence_number) => ({ ...event, sequence_number }));

/** The events before the text of a message, with the usage of the prompt. */
export const messagesStart = (usage: object) => [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "x",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } },
];

export const messagesText = (text: string) => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text },
});

/** The events after the text of a message. */
export const messagesEnd = (usage: object) => [
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
  { type: "message_stop" },
];

export const geminiText = (text: string, more: object = {}) => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0 }],
  ...more,
});
