import { dayMs } from "#platform/clock";

export const budgetPeriods = ["day", "week", "month", "total"] as const;
type BudgetPeriod = (typeof budgetPeriods)[number];

/** The amount that a key may spend in each period. */
export interface Budget {
  readonly limitNanoUsd: bigint;
  readonly period: BudgetPeriod;
}

export interface KeyBudget extends Budget {
  /** When the budget was set. Calls in flight at that time are in no counter until the ledger has them. */
  readonly since: Date;
}

/**
 * The period that contains `now`, in unix milliseconds. Periods are UTC, and weeks begin on Monday. A budget that never
 * resets has no `until`.
 */
export function periodAt(period: BudgetPeriod, now: number): { readonly from: number; readonly until?: number } {
  const at = new Date(now);
  const day = Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate());
  switch (period) {
    case "day":
      return { from: day, until: day + dayMs };
    case "week": {
      const from = day - ((at.getUTCDay() + 6) % 7) * dayMs;
      return { from, until: from + 7 * dayMs };
    }
    case "month":
      return {
        from: Date.UTC(at.getUTCFullYear(), at.getUTCMonth()),
        until: Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1),
      };
    case "total":
      return { from: 0 };
  }
}
