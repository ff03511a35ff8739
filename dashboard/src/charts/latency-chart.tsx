import { CartesianGrid, Line, LineChart, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import type { UsageRow } from "../api/usage.ts";
import { roundScale } from "../lib/charts.ts";
import { duration, timeLabel } from "../lib/format.ts";
import { axisLook, ChartDetail, chartHeightPx, Legend } from "./parts.tsx";

interface Props {
  readonly slots: readonly { readonly time: string; readonly row: UsageRow | undefined }[];
}

const lines = [
  {
    name: "First token p50",
    color: "var(--color-series-1)",
    valueOf: (row: UsageRow | undefined) => row?.first_token_p50_ms ?? null,
  },
  {
    name: "First token p95",
    color: "var(--color-series-2)",
    valueOf: (row: UsageRow | undefined) => row?.first_token_p95_ms ?? null,
  },
] as const;

/** Percentiles over time. Slots without calls are gaps. */
export default function LatencyChart({ slots }: Props) {
  const detail = (time: string | undefined) => {
    const slot = slots.find((each) => each.time === time);
    if (!slot) return null;
    const shown = (ms: number | null) => <span>{ms === null ? "–" : duration(ms)}</span>;
    const values = lines.map(({ name, valueOf }) => ({ name, shown: shown(valueOf(slot.row)) }));
    return <ChartDetail title={timeLabel(slot.time)} values={values} />;
  };
  const values = slots.flatMap(({ row }) => lines.flatMap(({ valueOf }) => valueOf(row) ?? []));
  return (
    <div className="flex flex-col gap-4">
      <div className="h-70 text-xs" aria-hidden="true">
        <ResponsiveContainer width="100%" height={chartHeightPx}>
          <LineChart data={[...slots]} margin={{ top: 8, right: 4 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--color-line)" />
            <XAxis {...axisLook.x} dataKey="time" tickFormatter={timeLabel} />
            <YAxis {...axisLook.y} {...roundScale(values)} tickFormatter={duration} />
            <Tooltip content={({ active, label }) => detail(active ? String(label) : undefined)} />
            {lines.map(({ name, color, valueOf }) => (
              <Line
                key={name}
                dataKey={({ row }: Props["slots"][number]) => valueOf(row)}
                name={name}
                stroke={color}
                strokeWidth={2}
                dot={{ r: 2, fill: color }}
                isAnimationActive={false}
              />
            ))}
          </LineChart>
        </ResponsiveContainer>
      </div>
      <Legend entries={lines} />
    </div>
  );
}
