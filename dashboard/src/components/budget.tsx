import type { Key } from "../api/keys.ts";
import { remaining, useNow } from "../lib/time.ts";
import { share } from "../lib/usd.ts";
import { Money } from "./money.tsx";
import { ProgressBar } from "./progress-bar.tsx";

type Limit = NonNullable<Key["budget"]>;
export type Budget = Limit & { readonly spent_usd?: string; readonly resets_at?: number | null };

const periods: Readonly<Record<Limit["period"], string>> = {
  day: "per day",
  week: "per week",
  month: "per month",
  total: "in total",
};

export const isSpent = (budget: Budget | null): boolean =>
  budget?.spent_usd !== undefined && share(budget.spent_usd, budget.limit_usd) >= 1;

function tone(used: number) {
  if (used >= 1) return "bad";
  return used >= 0.8 ? "warn" : "accent";
}

/** The spent part of a budget, and the time of its next reset. */
export function BudgetBar({ budget, name }: { readonly budget: Budget | null; readonly name: string }) {
  const now = useNow();
  if (!budget) return <span className="text-muted">No limit</span>;
  const { limit_usd, period, spent_usd, resets_at } = budget;
  const limit = (
    <>
      <Money usd={limit_usd} /> {periods[period]}
    </>
  );
  if (spent_usd === undefined) return <span>{limit}</span>;
  const used = share(spent_usd, limit_usd);
  return (
    <div className="flex w-full max-w-56 min-w-40 flex-col gap-1 text-start">
      <span className="text-xs">
        <Money usd={spent_usd} /> of {limit}
      </span>
      <ProgressBar label={`Budget spent by ${name}`} value={used} tone={tone(used)} />
      {resets_at && <span className="text-xs text-muted">resets in {remaining(resets_at, now)}</span>}
    </div>
  );
}
