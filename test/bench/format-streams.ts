import { messageEvents, messageOf } from "../support/mock-anthropic-message.ts";
import { answerOf, contentEvents } from "../support/mock-gemini-content.ts";
import { responsesAnswer } from "../support/mock-openai-responses.ts";
import type { MockRequest } from "../support/mock-provider.ts";
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

const model = "provider";
const counts = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens };

const dataOf = (event: unknown) => `data: ${JSON.stringify(event)}\n\n`;
const named = (event: unknown) => `event: ${(event as { type: string }).type}\n${dataOf(event)}`;

function chat(words: readonly string[]): string[] {
  const envelope = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_750_000_000, model };
  const chunks = words.map((content, index) => {
    const delta = index === 0 ? { role: "assistant", content } : { content };
    const finish_reason = index === words.length - 1 ? "stop" : null;
    return dataOf({ ...envelope, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  });
  return [...chunks, `${dataOf({ ...envelope, choices: [], usage })}data: [DONE]\n\n`];
}

/** Text before the first word is sent with it; text after the last word is sent at once. */
function chunked(frames: readonly string[], words: readonly string[]): string[] {
  const first = frames.findIndex((frame) => frame.includes(`"${words[0]}"`));
  const end = first + words.length;
  const last = frames.slice(end).join("");
  return [frames.slice(0, first + 1).join(""), ...frames.slice(first + 1, end), ...(last ? [last] : [])];
}

const messages = (words: readonly string[]): string[] =>
  chunked(messageEvents(messageOf({ model }, { text: words.join(""), usage: counts })).map(named), words);

function responses(words: readonly string[]): string[] {
  const script = { text: words.join(""), usage: { ...counts, total_tokens: usage.total_tokens } };
  const { events } = responsesAnswer({ body: { model, stream: true } } as unknown as MockRequest, script, "");
  return chunked((events as readonly object[]).map(named), words);
}

function gemini(words: readonly string[]): string[] {
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const counted = {
    promptTokenCount: prompt_tokens,
    candidatesTokenCount: completion_tokens,
    totalTokenCount: total_tokens,
  };
  return contentEvents(answerOf(model, {}, { text: words.join(""), usage: counted })).map(dataOf);
}

/** A provider's stream, chunk by chunk. */
export const madeStreams: Readonly<Record<StreamFormat, readonly string[]>> = {
  chat: chat(streamWords),
  messages: messages(streamWords),
  responses: responses(streamWords),
  gemini: gemini(streamWords),
};

export const pacedStream: readonly string[] = chat(pacedWords);

/** This prompt makes the provider send 20 MB of text at once. */
export const burstPrompt = "Say it all at once.";

/** The burst of a provider that speaks this format, if it has one. */
export function burstOf(format: StreamFormat): readonly string[] {
  const words = Array.from({ length: 320 }, () => ` ${"x".repeat(62_500)}`);
  return format === "chat" ? chat(words) : format === "responses" ? responses(words) : [];
}

/** The format that a provider speaks at this path. */
export function formatAt(path: string): StreamFormat {
  if (path.endsWith("/messages")) return "messages";
  if (path.endsWith("/responses")) return "responses";
  return path.includes(":streamGenerateContent") ? "gemini" : "chat";
}
