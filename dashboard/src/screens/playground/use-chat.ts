import { useEffect, useRef, useState } from "react";
import { type ChatAnswer, type ChatMessage, type ChatRequest, streamChat } from "../../api/chat.ts";
import { onError } from "../../api/query-client.ts";
import type { Outcome } from "./outcome.tsx";

export interface ChatState {
  readonly messages: readonly ChatMessage[];
  /** The response being received. */
  readonly current?: ChatAnswer;
  readonly isRunning: boolean;
  readonly error?: unknown;
  readonly outcome?: Outcome;
}

const toMessage = ({ content, toolCalls }: ChatAnswer): ChatMessage => ({
  role: "assistant",
  content: content || null,
  ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
});

const empty: ChatState = { messages: [], isRunning: false };
type Options = Omit<ChatRequest, "messages">;

/** A conversation. Text streamed before a stop stays in it. */
export function useChat() {
  const [state, setState] = useState(empty);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function send(added: readonly ChatMessage[], { system, ...options }: Options & { readonly system: string }) {
    const messages = [...state.messages, ...added];
    const abort = new AbortController();
    running.current = abort;
    setState({ messages, isRunning: true });
    const startedMs = performance.now();
    let answer: ChatAnswer | undefined;
    let firstTokenMs: number | undefined;
    let error: unknown;
    try {
      const whole: readonly ChatMessage[] = system ? [{ role: "system", content: system }, ...messages] : messages;
      for await (const current of streamChat({ ...options, messages: whole }, abort.signal)) {
        firstTokenMs ??= performance.now() - startedMs;
        answer = current;
        setState({ messages, current, isRunning: true });
      }
    } catch (thrown) {
      if (!abort.signal.aborted) error = thrown;
      onError(thrown);
    }
    if (running.current !== abort) return;
    const said = answer && (answer.content || answer.toolCalls.length > 0) ? [toMessage(answer)] : [];
    setState({
      messages: [...messages, ...said],
      isRunning: false,
      error,
      outcome: {
        requestId: answer?.requestId ?? null,
        costUsd: answer?.usage?.cost_usd,
        totalMs: performance.now() - startedMs,
        firstTokenMs,
        tokens: answer?.usage && { input: answer.usage.prompt_tokens, output: answer.usage.completion_tokens },
        isStopped: abort.signal.aborted,
      },
    });
  }

  return {
    ...state,
    send,
    stop: () => running.current?.abort(),
    clear: () => {
      running.current?.abort();
      running.current = undefined;
      setState(empty);
    },
  };
}
