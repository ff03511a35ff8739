import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { roundScale } from "../lib/charts.ts";
import { count } from "../lib/format.ts";
import { timeZone } from "../lib/time.ts";
import type { TrafficPoint } from "./api.ts";
import { timeLabel } from "./traffic.ts";

interface Props {
  readonly points: readonly TrafficPoint[];
  readonly unit: "minute" | "hour";
}

const series = [
  { key: "answered", name: "Answered", color: "var(--color-series-1)" },
  { key: "refused", name: "Refused", color: "var(--color-series-3)" },
  { key: "failed", name: "Failed", color: "var(--color-series-failed)" },
] as const;

/** Calls as bars, by outcome. */
export default function TrafficChart({ points, unit }: Props) {
  const data = points.map(({ at, calls, failed, refused }) => ({
    time: timeLabel(at),
    answered: calls - failed - refused,
    refused,
    failed,
  }));
  return (
    <figure aria-label={`Calls by ${unit}; the table has the same numbers`} className="flex flex-col gap-3">
      <div className="h-64 w-full">
        <ResponsiveContainer width="100%" height="100%">
          <BarChart data={data} margin={{ top: 4 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--color-line)" />
            <XAxis
              dataKey="time"
              tickLine={false}
              axisLine={false}
              minTickGap={32}
              interval="equidistantPreserveStart"
              tick={tick}
            />
            <YAxis
              width={44}
              {...roundScale(points.map(({ calls }) => calls))}
              tickLine={false}
              axisLine={false}
              tick={tick}
              tickFormatter={count}
            />
            <Tooltip
              cursor={{ fill: "var(--color-raised)" }}
              contentStyle={{
                background: "var(--color-surface)",
                border: "1px solid var(--color-line)",
                borderRadius: 8,
                color: "var(--color-ink)",
              }}
            />
            {series.map(({ key, name, color }) => (
              <Bar key={key} dataKey={key} name={name} stackId="calls" fill={color} isAnimationActive={false} />
            ))}
          </BarChart>
        </ResponsiveContainer>
      </div>
      <figcaption className="flex flex-wrap gap-4 text-xs text-muted">
        {series.map(({ key, name, color }) => (
          <span key={key} className="inline-flex items-center gap-1.5">
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx="2" fill={color} />
            </svg>
            {name}
          </span>
        ))}
        <span className="ms-auto">Time zone: {timeZone}</span>
      </figcaption>
    </figure>
  );
}

const tick = { fill: "var(--color-muted)", fontSize: 12 };
