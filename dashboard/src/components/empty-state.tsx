import type { ReactNode } from "react";

interface Props {
  readonly title: string;
  readonly children?: ReactNode;
}

export function EmptyState({ title, children }: Props) {
  return (
    <div className="flex flex-col items-center gap-3 rounded-xl border border-dashed border-line px-5 py-10 text-center">
      <p className="text-base font-medium">{title}</p>
      <div className="flex w-full max-w-2xl min-w-0 flex-col items-center gap-4 text-muted">{children}</div>
    </div>
  );
}
