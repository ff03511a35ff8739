import { type FormEvent, type KeyboardEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { TextArea } from "../../components/field.tsx";

interface Props {
  readonly isRunning: boolean;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

export function ChatComposer({ isRunning, onSend, onStop }: Props) {
  const [text, setText] = useState("");
  function send() {
    if (isRunning || text.trim() === "") return;
    onSend(text);
    setText("");
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    send();
  }
  return (
    <form onSubmit={submit} className="mt-auto flex flex-col gap-2">
      <TextArea
        label="Message"
        hideLabel
        rows={3}
        placeholder="Write a message. Enter sends it, Shift and Enter begin a new line."
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="flex justify-end gap-2">
        {isRunning ? (
          <Button onClick={onStop}>Stop</Button>
        ) : (
          <Button type="submit" look="primary" disabled={text.trim() === ""}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}
