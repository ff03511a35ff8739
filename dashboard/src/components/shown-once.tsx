import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";

interface Props {
  readonly title: string;
  readonly text: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog with a secret that nobody can show again. */
export function ShownOnce({ title, text, onClose, children }: Props) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <p className="text-muted">{text}</p>
        {children}
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
            I have it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
