import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";

export function Card({ children, className }: { readonly children: ReactNode; readonly className?: string }) {
  return (
    <div className={classNames("min-w-0 rounded-2xl border border-line bg-surface p-4 sm:p-5", className)}>
      {children}
    </div>
  );
}

interface FigureProps {
  readonly label: string;
  readonly children: ReactNode;
  readonly note?: ReactNode;
}

/** One number with its name. */
export function Figure({ label, children, note }: FigureProps) {
  return (
    <Card className="h-full">
      <dl className="flex flex-col gap-1">
        <dt className="text-xs font-medium text-muted">{label}</dt>
        <dd className="figure text-lg font-semibold wrap-anywhere tabular-nums sm:text-xl">{children}</dd>
        {note !== undefined && <dd className="text-xs text-muted">{note}</dd>}
      </dl>
    </Card>
  );
}
