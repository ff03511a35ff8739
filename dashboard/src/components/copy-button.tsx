import { Button, type ButtonLook } from "./button.tsx";
import { toast } from "./toast.tsx";

interface Props {
  readonly text: string;
  /** What is copied, for screen readers and the message. */
  readonly what: string;
  readonly label?: string;
  readonly look?: ButtonLook;
}

export function CopyButton({ text, what, label = "Copy", look }: Props) {
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      toast(`Copied: ${what}`);
    } catch {
      toast(`Cannot copy the ${what} here. Select it and copy it by hand.`);
    }
  }
  return (
    <Button small {...(look && { look })} aria-label={`${label} ${what}`} onClick={() => void copy()}>
      {label}
    </Button>
  );
}
