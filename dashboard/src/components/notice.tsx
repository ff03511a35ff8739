import type { ReactNode } from "react";

interface Props {
  readonly children: ReactNode;
  /** A link or a button next to the text. */
  readonly action?: ReactNode;
}

/** A warning, which screen readers announce when it appears. */
export const Notice = ({ children, action }: Props) => (
  <output className="flex flex-wrap items-center justify-between gap-3 rounded-xl bg-warn-soft p-4">
    <span className="text-warn">{children}</span>
    {action}
  </output>
);
