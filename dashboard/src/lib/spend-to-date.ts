import type { UsageRow } from "../api/usage.ts";
import { daysBefore } from "./format.ts";
import { sumUsd } from "./usd.ts";

interface Period {
  readonly from: string;
  readonly to: string;
  readonly usd: string;
}

/** Sums rows by day: today, this month, and last month up to the same day or its last one. */
export function spendToDate(rows: readonly UsageRow[], today: string) {
  const firstDay = `${today.slice(0, 8)}01`;
  const lastDay = daysBefore(firstDay, 1);
  const sameDay = `${lastDay.slice(0, 8)}${today.slice(8)}`;
  const period = (from: string, to: string): Period => ({
    from,
    to,
    usd: sumUsd(rows.filter(({ day = "" }) => day >= from && day <= to).map(({ cost_usd }) => cost_usd)),
  });
  return {
    todayUsd: period(today, today).usd,
    month: period(firstDay, today),
    lastMonth: period(`${lastDay.slice(0, 8)}01`, sameDay < lastDay ? sameDay : lastDay),
  };
}
