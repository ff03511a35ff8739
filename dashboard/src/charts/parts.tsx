import type { ReactNode } from "react";

/** Parts that charts share. */

export const chartHeightPx = 280;

const tick = { fill: "var(--color-muted)" };
export const axisLook = {
  x: { tick, stroke: "var(--color-line)", tickLine: false, minTickGap: 24, interval: "equidistantPreserveStart" },
  y: { tick, width: 84, axisLine: false, tickLine: false },
} as const;

interface Entry {
  readonly name: string;
  readonly shown?: ReactNode;
}

interface LegendEntry extends Entry {
  readonly color: string | undefined;
}

export const Legend = ({ entries }: { readonly entries: readonly LegendEntry[] }) => (
  <ul className="flex flex-wrap gap-x-5 gap-y-2 text-xs">
    {entries.map(({ name, shown, color }) => (
      <li key={name} className="flex min-w-0 items-center gap-2">
        <span aria-hidden="true" className="size-2.5 shrink-0 rounded-sm" style={{ background: color }} />
        <span className="wrap-anywhere">{name}</span>
        {shown}
      </li>
    ))}
  </ul>
);

/** The numbers at the pointer. */
export const ChartDetail = ({ title, values }: { readonly title: string; readonly values: readonly Entry[] }) => (
  <div className="rounded-lg border border-line bg-surface p-3 text-xs text-ink shadow-lg">
    <p className="mb-1 font-medium">{title}</p>
    {values.map(({ name, shown }) => (
      <p key={name} className="flex justify-between gap-6">
        <span>{name}</span>
        {shown}
      </p>
    ))}
  </div>
);
