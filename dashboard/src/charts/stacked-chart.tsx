import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import type { Measure, Stacked } from "../lib/stacked.ts";
import { axisLook, ChartDetail, chartHeightPx, Legend, seriesColor } from "./parts.tsx";

interface Props {
  readonly data: Stacked<unknown>;
  readonly measure: Measure;
  readonly timeLabel: (time: string) => string;
}

/** Bars over time. Loaded on demand, because Recharts is as large as everything else. */
export default function StackedChart({ data: { series, slots }, measure, timeLabel }: Props) {
  const heights = slots.map(({ time, values }) => ({
    time,
    ...Object.fromEntries(series.map(({ name }, index) => [index, measure.toNumber(values[name] ?? 0n)])),
  }));
  const detail = (time: string | undefined) => {
    const slot = slots.find((each) => each.time === time);
    if (!slot) return null;
    const values = series.map(({ name }) => ({ name, shown: measure.shown(slot.values[name] ?? 0n) }));
    return <ChartDetail title={timeLabel(slot.time)} values={values} />;
  };
  return (
    <div className="flex flex-col gap-4">
      <div className="h-70 text-xs" aria-hidden="true">
        <ResponsiveContainer width="100%" height={chartHeightPx}>
          <BarChart data={heights} margin={{ top: 8, right: 4 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--color-line)" />
            <XAxis {...axisLook.x} dataKey="time" tickFormatter={timeLabel} />
            <YAxis {...axisLook.y} tickFormatter={measure.axis} />
            <Tooltip
              cursor={{ fill: "var(--color-raised)" }}
              content={({ active, label }) => detail(active ? String(label) : undefined)}
            />
            {series.map(({ name }, index) => (
              <Bar
                key={name}
                dataKey={(row: Record<number, number>) => row[index] ?? 0}
                name={name}
                stackId="all"
                fill={seriesColor(index)}
                isAnimationActive={false}
              />
            ))}
          </BarChart>
        </ResponsiveContainer>
      </div>
      <Legend entries={series.map(({ name, total }) => ({ name, shown: measure.shown(total) }))} />
    </div>
  );
}
