import { memo } from "react";
import type { ChatAnswer, ChatMessage } from "../../api/chat.ts";
import { classNames } from "../../components/class-names.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Attached } from "./attachments.tsx";
import type { Conversation, Turn } from "./conversation.ts";
import { Markdown } from "./markdown.tsx";
import { ToolResults } from "./tool-results.tsx";

const names = { system: "System", user: "You", assistant: "Model", tool: "Tool" };

function Content({ message: { role, content } }: { readonly message: ChatMessage }) {
  if (content === null || content === "") return null;
  if (typeof content !== "string")
    return content.map((part, index) =>
      part.type === "text" ? (
        <Plain key={index} text={part.text} />
      ) : (
        // The parts of a message do not change.
        <Attached key={index} attachment={part} />
      ),
    );
  return role === "assistant" ? <Markdown text={content} /> : <Plain text={content} />;
}

const Plain = ({ text }: { readonly text: string }) => <p className="wrap-anywhere whitespace-pre-wrap">{text}</p>;

/** Rendered once, while pieces of the next answer arrive. */
const Message = memo(function Message({ turn: { message, reasoning } }: { readonly turn: Turn }) {
  const { role, tool_calls = [] } = message;
  return (
    <>
      {reasoning && (
        <li className="self-start">
          <details>
            <summary className="text-xs font-medium text-muted">Reasoning</summary>
            <p className="mt-1 text-muted wrap-anywhere whitespace-pre-wrap">{reasoning}</p>
          </details>
        </li>
      )}
      <li
        className={classNames(
          "flex max-w-full min-w-0 flex-col gap-1.5 rounded-xl px-4 py-3",
          role === "user" ? "self-end bg-accent-soft" : "self-start bg-raised",
        )}
      >
        <span className="text-xs font-medium text-muted">{names[role]}</span>
        <Content message={message} />
        {tool_calls.map(({ id, function: { name, arguments: given } }) => (
          <code key={id} className="font-mono text-xs wrap-anywhere whitespace-pre-wrap">
            {name}({given})
          </code>
        ))}
      </li>
    </>
  );
});

function Current({ answer }: { readonly answer: ChatAnswer | undefined }) {
  if (!answer)
    return (
      <li className="self-start rounded-xl bg-raised px-4 py-3 text-muted">
        <span className="animate-pulse">Waiting for the first token…</span>
      </li>
    );
  const { content, reasoning, toolCalls } = answer;
  return <Message turn={{ message: { role: "assistant", content, tool_calls: toolCalls }, reasoning }} />;
}

interface Props {
  readonly conversation: Conversation;
  readonly onToolResults: (results: readonly ChatMessage[]) => void;
}

export function ChatMessages({ conversation, onToolResults }: Props) {
  const { turns, current, isRunning } = conversation.use();
  if (turns.length === 0)
    return (
      <EmptyState title="Say something">
        <p>The answer streams in here, with what it cost.</p>
      </EmptyState>
    );
  const asked = isRunning ? [] : (turns.at(-1)?.message.tool_calls ?? []);
  return (
    <>
      <ol aria-label="Conversation" className="flex flex-col gap-3">
        {turns.map((turn, index) => (
          // A conversation only grows at its end.
          <Message key={index} turn={turn} />
        ))}
        {isRunning && <Current answer={current} />}
      </ol>
      {asked.length > 0 && <ToolResults key={asked[0]?.id} calls={asked} onSend={onToolResults} />}
    </>
  );
}
