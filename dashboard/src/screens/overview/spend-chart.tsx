import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { Money } from "../../components/money.tsx";
import { dayLabel } from "../../lib/format.ts";
import { heights, type Spend } from "../../lib/spend.ts";

const heightPx = 280;
const axis = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumSignificantDigits: 3 });
const colorOf = (index: number) => `var(--color-series-${(index % 6) + 1})`;

/** Loaded on demand, because Recharts is as large as everything else. */
export default function SpendChart({ spend }: { readonly spend: Spend }) {
  const { series, days } = spend;
  return (
    <div className="flex flex-col gap-4">
      <div className="h-70 text-xs" aria-hidden="true">
        <ResponsiveContainer width="100%" height={heightPx}>
          <BarChart data={days.map(heights)} margin={{ top: 8, right: 4 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--color-line)" />
            <XAxis
              dataKey="day"
              tickFormatter={dayLabel}
              tick={{ fill: "var(--color-muted)" }}
              stroke="var(--color-line)"
              tickLine={false}
              minTickGap={24}
            />
            <YAxis
              width={64}
              tickFormatter={(value: number) => axis.format(value)}
              tick={{ fill: "var(--color-muted)" }}
              axisLine={false}
              tickLine={false}
            />
            <Tooltip
              cursor={{ fill: "var(--color-raised)" }}
              content={({ active, label }) => <Detail day={active ? String(label) : undefined} spend={spend} />}
            />
            {series.map(({ name }, index) => (
              <Bar
                key={name}
                dataKey={(row: Record<string, number>) => row[name] ?? 0}
                name={name}
                stackId="spend"
                fill={colorOf(index)}
                isAnimationActive={false}
              />
            ))}
          </BarChart>
        </ResponsiveContainer>
      </div>
      <ul className="flex flex-wrap gap-x-5 gap-y-2 text-xs">
        {series.map(({ name, totalUsd }, index) => (
          <li key={name} className="flex min-w-0 items-center gap-2">
            <span aria-hidden="true" className="size-2.5 shrink-0 rounded-sm" style={{ background: colorOf(index) }} />
            <span className="wrap-anywhere">{name}</span>
            <Money usd={totalUsd} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Detail({ day, spend }: { readonly day: string | undefined; readonly spend: Spend }) {
  const found = spend.days.find((each) => each.day === day);
  if (!found) return null;
  return (
    <div className="rounded-lg border border-line bg-surface p-3 text-xs text-ink shadow-lg">
      <p className="mb-1 font-medium">{dayLabel(found.day)}</p>
      {spend.series.map(({ name }) => (
        <p key={name} className="flex justify-between gap-6">
          <span>{name}</span>
          <Money usd={found.usd[name] ?? "0"} />
        </p>
      ))}
    </div>
  );
}
