import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { roundScale, seriesColors } from "../lib/charts.ts";
import type { Measure, Stacked } from "../lib/stacked.ts";
import { axisLook, ChartDetail, chartHeightPx, Legend } from "./parts.tsx";

interface Props {
  readonly data: Stacked<unknown>;
  readonly measure: Measure;
  readonly timeLabel: (time: string) => string;
}

/** Bars over time. Loaded on demand, because Recharts is as large as everything else. */
export default function StackedChart({ data: { series, slots }, measure, timeLabel }: Props) {
  const colors = seriesColors(series.map(({ name }) => name));
  const heights = slots.map(({ time, values }) => ({
    time,
    ...Object.fromEntries(series.map(({ name }, index) => [index, measure.toNumber(values[name] ?? 0n)])),
  }));
  const ends = slots.flatMap(({ values }) =>
    series.map((_, last) =>
      measure.toNumber(series.slice(0, last + 1).reduce((sum, { name }) => sum + (values[name] ?? 0n), 0n)),
    ),
  );
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
            <YAxis {...axisLook.y} {...roundScale(ends)} tickFormatter={measure.axis} />
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
                fill={colors.get(name)}
                isAnimationActive={false}
              />
            ))}
          </BarChart>
        </ResponsiveContainer>
      </div>
      <Legend
        entries={series.map(({ name, total }) => ({ name, color: colors.get(name), shown: measure.shown(total) }))}
      />
    </div>
  );
}
