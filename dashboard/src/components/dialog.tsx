import { type FormEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { Button } from "./button.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Field } from "./field.tsx";

interface Props {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A modal dialog while it is mounted. The browser traps the focus inside and restores it at the end. */
export function Dialog({ title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // A layout effect ends before the element is removed; the browser restores the focus only from elements in the page.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      className="w-[min(34rem,calc(100vw-2rem))] rounded-2xl border border-line bg-surface p-6 text-ink shadow-2xl"
    >
      <h2 id={id} className="mb-5 pe-10 text-lg font-semibold wrap-anywhere">
        {title}
      </h2>
      {children}
      {/* The close button is last, so that the first field or button gets the focus. */}
      <Button className="absolute end-4 top-5.5" look="quiet" small onClick={onClose} aria-label="Close">
        ✕
      </Button>
    </dialog>
  );
}

interface ActionProps extends Props {
  readonly action: string;
  readonly busy: boolean;
  readonly error: unknown;
}

interface FormProps extends ActionProps {
  readonly onSubmit: () => void;
}

/** A dialog with a form. If the request is refused, it stays open and shows the reason. */
export function FormDialog({ title, action, busy, error, onSubmit, onClose, children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  // In a dialog that scrolls, the field may be out of view.
  useEffect(() => {
    if (!busy) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [busy]);
  function submit(event: FormEvent) {
    event.preventDefault();
    onSubmit();
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={form} onSubmit={submit} className="flex flex-col gap-5">
        {children}
        {error !== null && <ErrorNote error={error} />}
        <div className="flex flex-wrap justify-end gap-3">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ConfirmProps extends ActionProps {
  readonly onConfirm: () => void;
  /** A text that has to be typed first. */
  readonly typed?: string | undefined;
}

/** Asks for confirmation before an irreversible action. */
export function ConfirmDialog({ title, action, busy, error, onConfirm, onClose, children, typed }: ConfirmProps) {
  const [text, setText] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-5">
        <div className="flex flex-col gap-3 text-muted">{children}</div>
        {typed !== undefined && (
          <Field
            label={`Type ${typed} to confirm`}
            autoComplete="off"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
        {error !== null && <ErrorNote error={error} />}
        <div className="flex flex-wrap justify-end gap-3">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" busy={busy} disabled={typed !== undefined && text.trim() !== typed} onClick={onConfirm}>
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
