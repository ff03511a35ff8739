import { type FormEvent, useState } from "react";
import type { ChatMessage, ToolCall } from "../../api/chat.ts";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";

interface Props {
  readonly calls: readonly ToolCall[];
  readonly onSend: (results: readonly ChatMessage[]) => void;
}

/** The model called tools: the user types their results. */
export function ToolResults({ calls, onSend }: Props) {
  const [results, setResults] = useState<Readonly<Record<string, string>>>({});
  function submit(event: FormEvent) {
    event.preventDefault();
    onSend(calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: results[id] ?? "" })));
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-3 rounded-xl border border-line p-4">
      <p className="font-medium">The model waits for its tools. What do they answer?</p>
      {calls.map(({ id, function: { name } }) => (
        <Field
          key={id}
          label={`Result of ${name}`}
          value={results[id] ?? ""}
          onChange={({ target }) => setResults({ ...results, [id]: target.value })}
        />
      ))}
      <Button type="submit" className="self-end">
        Send the results
      </Button>
    </form>
  );
}
