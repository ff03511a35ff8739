import type { ComponentProps } from "react";
import { classNames } from "./class-names.ts";

const looks = {
  primary: "bg-accent text-on-accent hover:bg-accent-strong border-transparent",
  secondary: "bg-surface text-ink border-line hover:bg-raised",
  quiet: "bg-transparent text-muted border-transparent hover:bg-raised hover:text-ink",
  danger: "bg-surface text-bad border-line hover:bg-bad-soft",
};

export type ButtonLook = keyof typeof looks;

export const buttonClass = (look: ButtonLook = "secondary", small = false): string =>
  classNames(
    "inline-flex items-center justify-center gap-2 rounded-lg border font-medium whitespace-nowrap transition-colors",
    "disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55",
    small ? "min-h-8 px-2.5 text-xs" : "min-h-10 px-4 text-sm",
    looks[look],
  );

interface Props extends ComponentProps<"button"> {
  readonly look?: ButtonLook;
  readonly small?: boolean;
  /** Disables the button and announces the pending action to screen readers. */
  readonly busy?: boolean;
}

export function Button({ look, small, busy = false, className, disabled, type = "button", ...rest }: Props) {
  return (
    <button
      {...rest}
      type={type}
      className={classNames(buttonClass(look, small), busy && "animate-pulse", className)}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
    />
  );
}
