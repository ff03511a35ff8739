import type { ClipboardEvent, FormEvent, KeyboardEvent } from "react";
import type { Attachment } from "../../api/chat.ts";
import type { Model } from "../../api/models.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { TextArea } from "../../components/field.tsx";
import { FileButton } from "../../components/file-button.tsx";
import { UploadingList } from "../files/uploading-list.tsx";
import { Attached, useAttaching } from "./attachments.tsx";
import type { Conversation } from "./conversation.ts";

interface Props {
  readonly model: Model;
  readonly conversation: Conversation;
  readonly onSend: () => void;
}

export function ChatComposer({ model, conversation, onSend }: Props) {
  const { isRunning, draft } = conversation.use();
  const attaching = useAttaching(model, conversation.attach);
  const isEmpty = draft.text.trim() === "" && draft.attachments.length === 0;
  const mayNotSend = isRunning || isEmpty || attaching.items.some(({ error }) => !error);
  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    if (!mayNotSend) onSend();
  }
  function onPaste({ clipboardData: { files } }: ClipboardEvent) {
    if (files.length > 0) attaching.add([...files]);
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!mayNotSend) onSend();
  }
  return (
    <form onSubmit={submit} className="mt-auto flex flex-col gap-2">
      {attaching.error !== undefined && <ErrorNote error={attaching.error} todo="Choose another file." />}
      <UploadingList items={attaching.items} />
      <Drafted attachments={draft.attachments} onRemove={conversation.detach} />
      <TextArea
        label="Message"
        hideLabel
        rows={3}
        placeholder="Write a message. Enter sends it, Shift and Enter begin a new line."
        value={draft.text}
        onChange={(event) => conversation.write(event.target.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      <div className="flex justify-end gap-2">
        {attaching.accept !== undefined && (
          <FileButton label="Attach" what="files" accept={attaching.accept} multiple onFiles={attaching.add} />
        )}
        {isRunning ? (
          <Button onClick={conversation.stop}>Stop</Button>
        ) : (
          <Button type="submit" look="primary" disabled={mayNotSend}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}

interface DraftedProps {
  readonly attachments: readonly Attachment[];
  readonly onRemove: (attachment: Attachment) => void;
}

function Drafted({ attachments, onRemove }: DraftedProps) {
  if (attachments.length === 0) return null;
  return (
    <ul aria-label="Attachments" className="flex flex-wrap gap-3">
      {attachments.map((attachment, index) => (
        // The same file may be attached twice.
        <li key={index} className="flex flex-col items-start gap-1.5">
          <Attached attachment={attachment} />
          <Button small aria-label={`Remove attachment ${index + 1}`} onClick={() => onRemove(attachment)}>
            Remove
          </Button>
        </li>
      ))}
    </ul>
  );
}
