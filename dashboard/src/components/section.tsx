import type { ReactNode } from "react";

interface Props {
  readonly title: string;
  /** Beside the title. */
  readonly note?: ReactNode;
  readonly children: ReactNode;
}

/** A part of a page, under its heading. */
export const Section = ({ title, note, children }: Props) => (
  <section className="flex min-w-0 flex-col gap-4">
    <div className="flex flex-wrap items-baseline justify-between gap-3">
      <h2 className="text-base font-semibold">{title}</h2>
      {note}
    </div>
    {children}
  </section>
);
