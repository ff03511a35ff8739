import { useEffect, useState } from "react";
import { Button, type ButtonLook } from "./button.tsx";

interface Props {
  readonly text: string;
  /** Describes the copied text to screen readers. */
  readonly what: string;
  readonly label?: string;
  readonly look?: ButtonLook;
}

const shownMs = 2000;

/** A copy button that reports the result itself: messages elsewhere are out of reach while a dialog is open. */
export function CopyButton({ text, what, label = "Copy", look }: Props) {
  const [said, say] = useState("");
  useEffect(() => {
    if (said === "") return;
    const timer = window.setTimeout(() => say(""), shownMs);
    return () => window.clearTimeout(timer);
  }, [said]);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      say("Select it to copy");
    }
  }
  return (
    <>
      <Button small {...(look && { look })} aria-label={`${label} ${what}`} onClick={() => void copy()}>
        {said || label}
      </Button>
      <output className="sr-only">{said && `${said}: ${what}`}</output>
    </>
  );
}
