import { type DragEvent, useState } from "react";
import { classNames } from "./class-names.ts";
import { FileButton } from "./file-button.tsx";

interface Props {
  /** A name for the files that may be dropped, with the article or number that the button needs: "files", "a file". */
  readonly what: string;
  readonly note: string;
  /** The types of files that the browser's dialog offers. */
  readonly accept: string;
  readonly multiple?: boolean;
  readonly onFiles: (files: readonly File[]) => void;
}

/** Accepts files that are dropped, or chosen with the browser's own dialog. */
export function DropZone({ what, note, accept, multiple = false, onFiles }: Props) {
  const [isOver, setOver] = useState(false);
  function over(event: DragEvent) {
    event.preventDefault();
    setOver(true);
  }
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    onFiles([...event.dataTransfer.files]);
  }
  return (
    // Dropping needs a mouse; the input inside serves everyone else.
    <div
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
      className={classNames(
        "flex flex-col items-center gap-3 rounded-2xl border-2 border-dashed px-5 py-10 text-center",
        isOver ? "border-accent bg-accent-soft" : "border-line",
      )}
    >
      <p className="text-base font-medium">Drop {what} here</p>
      <p className="text-muted">{note}</p>
      <FileButton label="Choose" look="primary" {...{ what, accept, multiple, onFiles }} />
    </div>
  );
}
