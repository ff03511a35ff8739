import { pacedWords, prompt, streamWords, usage } from "./workload.ts";

/** The benchmark's stream in the format of each provider: the request, and every byte of the provider's response. */

export const streamFormats = ["chat", "messages", "responses", "gemini"] as const;
export type StreamFormat = (typeof streamFormats)[number];

/** A caller's request, and the last bytes of a whole response. */
export interface Asking {
  readonly path: (model: string) => string;
  readonly body: (model: string) => object;
  readonly end: string;
}

export const asking: Readonly<Record<StreamFormat, Asking>> = {
  chat: {
    path: () => "/v1/chat/completions",
    body: (model) => ({
      model,
      messages: [{ role: "user", content: prompt }],
      stream: true,
      stream_options: { include_usage: true },
    }),
    end: "data: [DONE]",
  },
  messages: {
    path: () => "/v1/messages",
    body: (model) => ({ model, messages: [{ role: "user", content: prompt }], max_tokens: 1_000, stream: true }),
    end: '"message_stop"}',
  },
  responses: {
    path: () => "/v1/responses",
    body: (model) => ({ model, input: prompt, stream: true }),
    end: "}",
  },
  gemini: {
    path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    body: () => ({ contents: [{ role: "user", parts: [{ text: prompt }] }] }),
    end: "}",
  },
};

const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
const named = (type: string, fields: object = {}) => `event: ${type}\n${data({ type, ...fields })}`;

const counts = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens };

function chat(words: readonly string[]): string[] {
  const envelope = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_750_000_000, model: "provider" };
  const chunks = words.map((content, index) => {
    const delta = index === 0 ? { role: "assistant", content } : { content };
    const finish_reason = index === words.length - 1 ? "stop" : null;
    return data({ ...envelope, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  });
  return [...chunks, `${data({ ...envelope, choices: [], usage })}data: [DONE]\n\n`];
}

function messages(): string[] {
  const message = { id: "msg_bench", type: "message", role: "assistant", model: "provider", content: [] };
  const open = { ...message, stop_reason: null, stop_sequence: null, usage: { ...counts, output_tokens: 1 } };
  const begin =
    named("message_start", { message: open }) +
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  const end =
    named("content_block_stop", { index: 0 }) +
    named("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: counts }) +
    named("message_stop");
  const deltas = streamWords.map((word) =>
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } }),
  );
  return [begin + deltas[0], ...deltas.slice(1), end];
}

function responses(words: readonly string[]): string[] {
  const text = words.join("");
  let sequence_number = 0;
  const event = (type: string, fields: object) => named(type, { sequence_number: sequence_number++, ...fields });
  const response = { id: "resp_bench", object: "response", created_at: 1_750_000_000, model: "provider", output: [] };
  const at = { item_id: "msg_bench", output_index: 0, content_index: 0 };
  const part = { type: "output_text", text: "", annotations: [], logprobs: [] };
  const item = { id: "msg_bench", type: "message", role: "assistant", status: "in_progress", content: [] };
  const begin =
    event("response.created", { response: { ...response, status: "in_progress", usage: null } }) +
    event("response.in_progress", { response: { ...response, status: "in_progress", usage: null } }) +
    event("response.output_item.added", { output_index: 0, item }) +
    event("response.content_part.added", { ...at, part });
  const deltas = words.map((delta) => event("response.output_text.delta", { ...at, delta, logprobs: [] }));
  const whole = { ...item, status: "completed", content: [{ ...part, text }] };
  const end =
    event("response.output_text.done", { ...at, text, logprobs: [] }) +
    event("response.content_part.done", { ...at, part: { ...part, text } }) +
    event("response.output_item.done", { output_index: 0, item: whole }) +
    event("response.completed", {
      response: {
        ...response,
        status: "completed",
        output: [whole],
        usage: { ...counts, total_tokens: usage.total_tokens },
      },
    });
  return [begin + deltas[0], ...deltas.slice(1), end];
}

function gemini(): string[] {
  return streamWords.map((word, index) => {
    const isLast = index === streamWords.length - 1;
    return data({
      candidates: [
        { content: { role: "model", parts: [{ text: word }] }, index: 0, ...(isLast && { finishReason: "STOP" }) },
      ],
      usageMetadata: {
        promptTokenCount: usage.prompt_tokens,
        ...(isLast && { candidatesTokenCount: usage.completion_tokens }),
        totalTokenCount: usage.prompt_tokens + (isLast ? usage.completion_tokens : 0),
      },
      modelVersion: "provider",
      responseId: "bench",
    });
  });
}

/** A provider's stream, chunk by chunk. */
export const madeStreams: Readonly<Record<StreamFormat, readonly string[]>> = {
  chat: chat(streamWords),
  messages: messages(),
  responses: responses(streamWords),
  gemini: gemini(),
};

export const pacedStream: readonly string[] = chat(pacedWords);

/** This prompt makes the provider send 20 MB of text at once. */
export const burstPrompt = "Say it all at once.";

let bursts: Partial<Record<StreamFormat, Buffer>> | undefined;
/** The burst of a provider that speaks this format, if it has one. */
export function burstOf(format: StreamFormat): Buffer | undefined {
  const words = () => Array.from({ length: 320 }, () => "x".repeat(62_500));
  bursts ??= { chat: Buffer.from(chat(words()).join("")), responses: Buffer.from(responses(words()).join("")) };
  return bursts[format];
}

/** The format that a provider speaks at this path. */
export function formatAt(path: string): StreamFormat {
  if (path.endsWith("/messages")) return "messages";
  if (path.endsWith("/responses")) return "responses";
  return path.includes(":streamGenerateContent") ? "gemini" : "chat";
}
