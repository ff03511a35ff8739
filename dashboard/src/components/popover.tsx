import { type ReactNode, useId, useRef, useState } from "react";
import { type ButtonLook, buttonClass } from "./button.tsx";

interface Props {
  readonly label: ReactNode;
  readonly look?: ButtonLook;
  readonly small?: boolean;
  readonly children: ReactNode;
}

const gapPx = 6;
const marginPx = 8;

/**
 * A button that opens a panel below itself, or as far below as fits; Escape or a click elsewhere closes it. Its content is
 * rendered while it is open.
 */
export function Popover({ label, look, small, children }: Props) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  function place() {
    if (!button.current || !panel.current) return;
    const at = button.current.getBoundingClientRect();
    const { style, offsetWidth, offsetHeight } = panel.current;
    style.top = `${Math.max(marginPx, Math.min(at.bottom + gapPx, window.innerHeight - offsetHeight - marginPx))}px`;
    style.insetInlineStart = `${Math.max(marginPx, Math.min(at.x, window.innerWidth - offsetWidth - marginPx))}px`;
  }
  return (
    <>
      <button ref={button} type="button" popoverTarget={id} className={buttonClass(look, small)}>
        {label}
      </button>
      <div
        ref={panel}
        id={id}
        popover="auto"
        onBeforeToggle={(event) => setOpen(event.newState === "open")}
        onToggle={(event) => event.newState === "open" && place()}
        className="max-h-[70vh] max-w-[calc(100vw-1rem)] overflow-auto rounded-xl border border-line bg-surface p-4 text-ink shadow-xl"
      >
        {isOpen && children}
      </div>
    </>
  );
}
