import { type ButtonLook, buttonClass } from "./button.tsx";
import { classNames } from "./class-names.ts";

interface Props {
  readonly label: string;
  /** Completes the label for screen readers: `Upload` `a file for Image`. */
  readonly what: string;
  readonly look?: ButtonLook;
  readonly accept: string;
  readonly multiple?: boolean;
  readonly onFiles: (files: readonly File[]) => void;
}

/** A button that opens the browser's own dialog for files. */
export const FileButton = ({ label, what, look, accept, multiple = false, onFiles }: Props) => (
  <label
    className={classNames(
      buttonClass(look),
      "focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent",
    )}
  >
    {label}
    <span className="sr-only"> {what}</span>
    <input
      type="file"
      accept={accept}
      multiple={multiple}
      className="sr-only"
      onChange={({ target }) => {
        onFiles([...(target.files ?? [])]);
        target.value = "";
      }}
    />
  </label>
);
