import { type DragEvent, useState } from "react";
import { buttonClass } from "../../components/button.tsx";
import { classNames } from "../../components/class-names.ts";

interface Props {
  readonly onFiles: (files: readonly File[]) => void;
}

/** Accepts files that are dropped, or chosen with the browser's own dialog. */
export function DropZone({ onFiles }: Props) {
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
      <p className="text-base font-medium">Drop files here</p>
      <p className="text-muted">Images, video and audio, up to 200 MB each. They are deleted after 24 hours.</p>
      <label
        className={classNames(
          buttonClass("primary"),
          "focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent",
        )}
      >
        Choose files
        <input
          type="file"
          multiple
          accept="image/*,video/*,audio/*"
          className="sr-only"
          onChange={({ target }) => {
            onFiles([...(target.files ?? [])]);
            target.value = "";
          }}
        />
      </label>
    </div>
  );
}
