import type { ChatAnswer, ChatMessage } from "../../api/chat.ts";
import { classNames } from "../../components/class-names.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { ToolResults } from "./tool-results.tsx";
import type { ChatState } from "./use-chat.ts";

interface Props {
  readonly chat: ChatState;
  readonly onToolResults: (results: readonly ChatMessage[]) => void;
}

const names = { system: "System", user: "You", assistant: "Model", tool: "Tool" };

function Message({ message }: { readonly message: ChatMessage }) {
  const { role, content, tool_calls = [] } = message;
  return (
    <li
      className={classNames(
        "flex max-w-full flex-col gap-1.5 rounded-xl px-4 py-3",
        role === "user" ? "self-end bg-accent-soft" : "self-start bg-raised",
      )}
    >
      <span className="text-xs font-medium text-muted">{names[role]}</span>
      {content && <p className="wrap-anywhere whitespace-pre-wrap">{content}</p>}
      {tool_calls.map(({ id, function: { name, arguments: given } }) => (
        <code key={id} className="font-mono text-xs wrap-anywhere whitespace-pre-wrap">
          {name}({given})
        </code>
      ))}
    </li>
  );
}

function Current({ answer }: { readonly answer: ChatAnswer | undefined }) {
  if (!answer)
    return (
      <li className="self-start rounded-xl bg-raised px-4 py-3 text-muted">
        <span className="animate-pulse">Waiting for the first token…</span>
      </li>
    );
  return (
    <>
      {answer.reasoning && (
        <li className="self-start">
          <details>
            <summary className="text-xs font-medium text-muted">Reasoning</summary>
            <p className="mt-1 text-muted wrap-anywhere whitespace-pre-wrap">{answer.reasoning}</p>
          </details>
        </li>
      )}
      <Message message={{ role: "assistant", content: answer.content, tool_calls: answer.toolCalls }} />
    </>
  );
}

export function ChatMessages({ chat, onToolResults }: Props) {
  const { messages, current, isRunning } = chat;
  if (messages.length === 0)
    return (
      <EmptyState title="Say something">
        <p>The answer streams in here, with what it cost.</p>
      </EmptyState>
    );
  const asked = isRunning ? [] : (messages.at(-1)?.tool_calls ?? []);
  return (
    <>
      <ol aria-label="Conversation" className="flex flex-col gap-3">
        {messages.map((message, index) => (
          // A conversation only grows at its end.
          <Message key={index} message={message} />
        ))}
        {isRunning && <Current answer={current} />}
      </ol>
      {asked.length > 0 && <ToolResults key={asked[0]?.id} calls={asked} onSend={onToolResults} />}
    </>
  );
}
