import { EventSourceParserStream } from "eventsource-parser/stream";
import { ApiError, base, errorOf, unreachable } from "./client.ts";

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Images and recordings are the account's uploads, by id; documents are data URLs. */
export type Attachment =
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } }
  | { readonly type: "input_audio"; readonly input_audio: { readonly data: string; readonly format: string } }
  | { readonly type: "file"; readonly file: { readonly filename: string; readonly file_data: string } };

export type ChatPart = Attachment | { readonly type: "text"; readonly text: string };

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null | readonly ChatPart[];
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: unknown;
  readonly temperature?: number;
  readonly max_tokens?: number;
}

export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_usd?: string;
}

interface ToolCallDelta {
  readonly index: number;
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

interface Chunk {
  readonly error?: unknown;
  readonly usage?: ChatUsage | null;
  readonly choices?: readonly {
    readonly finish_reason?: string | null;
    readonly delta?: {
      readonly content?: string | null;
      readonly reasoning_content?: string | null;
      readonly reasoning?: string | null;
      readonly tool_calls?: readonly ToolCallDelta[];
    };
  }[];
}

export interface ChatAnswer {
  readonly requestId: string | null;
  readonly content: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason?: string;
  readonly usage?: ChatUsage;
}

function addToolCalls(calls: readonly ToolCall[], deltas: readonly ToolCallDelta[] = []): readonly ToolCall[] {
  const joined = [...calls];
  for (const { index, id, function: part } of deltas) {
    const before = joined[index] ?? { id: "", type: "function", function: { name: "", arguments: "" } };
    joined[index] = {
      ...before,
      id: before.id || (id ?? ""),
      function: {
        name: before.function.name + (part?.name ?? ""),
        arguments: before.function.arguments + (part?.arguments ?? ""),
      },
    };
  }
  return joined;
}

function add(answer: ChatAnswer, { choices = [], usage }: Chunk): ChatAnswer {
  const { delta, finish_reason } = choices[0] ?? {};
  return {
    ...answer,
    content: answer.content + (delta?.content ?? ""),
    reasoning: answer.reasoning + (delta?.reasoning_content ?? delta?.reasoning ?? ""),
    toolCalls: addToolCalls(answer.toolCalls, delta?.tool_calls),
    ...(finish_reason && { finishReason: finish_reason }),
    ...(usage && { usage }),
  };
}

/** Yields the answer as it grows. Throws an ApiError, even when the error ends a stream that has begun. */
export async function* streamChat(body: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatAnswer> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  }).catch(unreachable);
  if (!response.ok || !response.body) throw await errorOf(response);
  const requestId = response.headers.get("x-request-id");
  let answer: ChatAnswer = { requestId, content: "", reasoning: "", toolCalls: [] };
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw new ApiError(response.status, chunk, requestId);
    answer = add(answer, chunk);
    yield answer;
  }
}
