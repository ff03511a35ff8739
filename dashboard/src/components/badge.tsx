import type { ReactNode } from "react";

const tones = {
  plain: "bg-raised text-muted",
  accent: "bg-accent-soft text-accent-strong",
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};

export type Tone = keyof typeof tones;

export function Badge({ tone = "plain", children }: { readonly tone?: Tone; readonly children: ReactNode }) {
  return (
    <span
      className={`inline-block max-w-full rounded-full px-2 py-0.5 text-xs font-medium wrap-break-word sm:whitespace-nowrap ${tones[tone]}`}
    >
      {children}
    </span>
  );
}
