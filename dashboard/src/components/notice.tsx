import type { ReactNode } from "react";

interface Props {
  readonly children: ReactNode;
  /** A link or a button beside the text. */
  readonly action?: ReactNode;
}

/** Something that is not as it should be, read by screen readers when it comes up. */
export const Notice = ({ children, action }: Props) => (
  <output className="flex flex-wrap items-center justify-between gap-3 rounded-xl bg-warn-soft p-4">
    <span className="text-warn">{children}</span>
    {action}
  </output>
);
