import { useQuery } from "@tanstack/react-query";
import { usageQuery } from "../../api/usage.ts";
import { Figure } from "../../components/card.tsx";
import { Money } from "../../components/money.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { dayLabel, percentChange } from "../../lib/format.ts";
import { spendToDate } from "../../lib/spend-to-date.ts";
import { useToday } from "../../lib/time.ts";
import { approximateUsd } from "../../lib/usd.ts";

/** Spend of today, of this month, and of last month up to the same day. */
export function SpendFigures() {
  const today = useToday();
  const { from } = spendToDate([], today).lastMonth;
  return (
    <QueryView
      query={useQuery(usageQuery({ from, to: today, groupBy: ["day"] }))}
      skeleton={<Skeleton rows={1} className="h-28" />}
    >
      {(rows) => {
        const { todayUsd, month, lastMonth } = spendToDate(rows, today);
        const change = percentChange(approximateUsd(month.usd), approximateUsd(lastMonth.usd));
        const against = change === undefined ? "" : `, ${change} against last month`;
        const period = ({ from, to }: typeof month) =>
          from === to ? dayLabel(from) : `${dayLabel(from)} to ${dayLabel(to)}`;
        return (
          <div className="grid gap-4 sm:grid-cols-3">
            <Figure label="Spend today" note={`${dayLabel(today)}, UTC`}>
              <Money usd={todayUsd} />
            </Figure>
            <Figure label="Spend this month" note={`${period(month)}${against}`}>
              <Money usd={month.usd} />
            </Figure>
            <Figure label="Last month to the same day" note={period(lastMonth)}>
              <Money usd={lastMonth.usd} />
            </Figure>
          </div>
        );
      }}
    </QueryView>
  );
}
