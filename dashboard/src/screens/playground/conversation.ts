import { type Attachment, type ChatAnswer, type ChatMessage, type ChatRequest, streamChat } from "../../api/chat.ts";
import { onError } from "../../api/query-client.ts";
import { useAccountSession } from "../../api/session.ts";
import { kept } from "../../lib/kept.ts";
import { initialSettings, type Settings } from "./chat-settings.tsx";
import type { Outcome } from "./outcome.tsx";

export interface Turn {
  readonly message: ChatMessage;
  readonly reasoning?: string;
}

interface Draft {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

interface State {
  readonly turns: readonly Turn[];
  /** The answer being received. */
  readonly current?: ChatAnswer | undefined;
  readonly isRunning: boolean;
  readonly error?: unknown;
  readonly outcome?: Outcome | undefined;
  readonly draft: Draft;
  readonly settings: Settings;
}

const emptyDraft: Draft = { text: "", attachments: [] };
const empty: State = { turns: [], isRunning: false, draft: emptyDraft, settings: initialSettings };

function turnsOf({ content, reasoning, toolCalls }: ChatAnswer): readonly Turn[] {
  if (content === "" && toolCalls.length === 0) return [];
  const called = toolCalls.length > 0 && { tool_calls: toolCalls };
  return [{ message: { role: "assistant", content: content || null, ...called }, ...(reasoning && { reasoning }) }];
}

/** A reload ends the stream; what had arrived stays in the conversation. */
function interrupted({ turns, current, isRunning, outcome, draft, settings }: State): State {
  const ended = isRunning ? { requestId: current?.requestId ?? null, isStopped: true } : outcome;
  return { turns: [...turns, ...(current ? turnsOf(current) : [])], outcome: ended, isRunning: false, draft, settings };
}

/** The messages that asked for the last answer. */
export function lastQuestion(turns: readonly Turn[]): readonly ChatMessage[] {
  const end = turns.findLastIndex(({ message }) => message.role !== "assistant") + 1;
  return turns.slice(0, end).map(({ message }) => message);
}

/** The account's conversation. Its answer is received to the end whatever page is open. */
function createConversation(account: string) {
  const store = kept(`conversation/${account}`, empty, interrupted);
  const change = (part: Partial<State>) => store.set({ ...store.get(), ...part });
  let running: AbortController | undefined;

  async function send(added: readonly ChatMessage[], system: string, options: Omit<ChatRequest, "messages">) {
    const turns = [...store.get().turns, ...added.map((message) => ({ message }))];
    const messages = turns.map(({ message }) => message);
    const abort = new AbortController();
    running = abort;
    change({ turns, current: undefined, isRunning: true, error: undefined, outcome: undefined });
    const startedMs = performance.now();
    let answer: ChatAnswer | undefined;
    let firstTokenMs: number | undefined;
    let error: unknown;
    try {
      const whole: readonly ChatMessage[] = system ? [{ role: "system", content: system }, ...messages] : messages;
      for await (const current of streamChat({ ...options, messages: whole }, abort.signal)) {
        // Another conversation has begun.
        if (running !== abort) return;
        firstTokenMs ??= performance.now() - startedMs;
        answer = current;
        change({ current });
      }
    } catch (thrown) {
      if (!abort.signal.aborted) error = thrown;
      onError(thrown);
    }
    if (running !== abort) return;
    running = undefined;
    const { requestId = null, usage } = answer ?? {};
    change({
      turns: [...turns, ...(answer ? turnsOf(answer) : [])],
      current: undefined,
      isRunning: false,
      error,
      outcome: {
        requestId,
        costUsd: usage?.cost_usd,
        totalMs: performance.now() - startedMs,
        firstTokenMs,
        tokens: usage && { input: usage.prompt_tokens, output: usage.completion_tokens },
        isStopped: abort.signal.aborted,
      },
    });
  }

  return {
    use: store.use,
    send,
    stop: () => running?.abort(),
    clear: () => {
      running?.abort();
      running = undefined;
      store.set({ ...empty, settings: store.get().settings });
    },
    write: (text: string) => change({ draft: { ...store.get().draft, text } }),
    attach: (attachment: Attachment) => {
      const { draft } = store.get();
      change({ draft: { ...draft, attachments: [...draft.attachments, attachment] } });
    },
    detach: (attachment: Attachment) => {
      const { draft } = store.get();
      change({ draft: { ...draft, attachments: draft.attachments.filter((each) => each !== attachment) } });
    },
    /** The draft as a message, and an empty one in its place. */
    takeDraft: (): ChatMessage => {
      const { text, attachments } = store.get().draft;
      change({ draft: emptyDraft });
      const said = text.trim() === "" ? [] : [{ type: "text" as const, text }];
      return { role: "user", content: attachments.length > 0 ? [...attachments, ...said] : text };
    },
    set: (settings: Settings) => change({ settings }),
  };
}

export type Conversation = ReturnType<typeof createConversation>;
const conversations = new Map<string, Conversation>();

export function useConversation(): Conversation {
  const { account } = useAccountSession();
  const conversation = conversations.get(account.id) ?? createConversation(account.id);
  conversations.set(account.id, conversation);
  return conversation;
}
