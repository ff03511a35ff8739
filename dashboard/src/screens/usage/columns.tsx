import type { ReactNode } from "react";
import type { UsageRow, UsageSums } from "../../api/usage.ts";
import { Money } from "../../components/money.tsx";
import type { Amount } from "../../lib/csv.ts";
import { count, duration, percentChange } from "../../lib/format.ts";
import { approximateUsd, usdText } from "../../lib/usd.ts";

/** The numbers of the page, for its figures, its table and its file. */
export interface Quantity {
  readonly label: string;
  /** Its column in the file. */
  readonly name: keyof UsageSums;
  readonly exact: (sums: UsageSums) => number | null | Amount;
  /** The number to compare. Null if there is none. */
  readonly approximate: (sums: UsageSums) => number | null;
  readonly shown: (sums: UsageSums) => ReactNode;
  readonly text: (sums: UsageSums) => string;
}

type CountName = Exclude<keyof UsageSums, "cost_usd" | "saved_usd" | "first_token_p50_ms" | "first_token_p95_ms">;

function counted(label: string, name: CountName): Quantity {
  const text = (sums: UsageSums) => count(sums[name]);
  return { label, name, exact: (sums) => sums[name], approximate: (sums) => sums[name], shown: text, text };
}

function priced(label: string, name: "cost_usd" | "saved_usd"): Quantity {
  return {
    label,
    name,
    exact: (sums) => ({ usd: sums[name] }),
    approximate: (sums) => approximateUsd(sums[name]),
    shown: (sums) => <Money usd={sums[name]} />,
    text: (sums) => usdText(sums[name]),
  };
}

function timed(label: string, name: "first_token_p50_ms" | "first_token_p95_ms"): Quantity {
  const exact = (sums: UsageSums) => sums[name] ?? null;
  const text = (sums: UsageSums) => (sums[name] == null ? "–" : duration(sums[name]));
  return { label, name, exact, approximate: exact, shown: text, text };
}

export const quantities: readonly Quantity[] = [
  priced("Cost", "cost_usd"),
  counted("Calls", "calls"),
  counted("Errors", "failed"),
  counted("Input tokens", "input_tokens"),
  counted("Cached tokens", "cached_tokens"),
  counted("Output tokens", "output_tokens"),
  priced("Saved by prompt caches", "saved_usd"),
  timed("First token p50", "first_token_p50_ms"),
  timed("First token p95", "first_token_p95_ms"),
];

const none: UsageSums = {
  calls: 0,
  failed: 0,
  cancelled: 0,
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  units: 0,
  cost_usd: "0",
  saved_usd: "0",
};

/** The sums of the period before. */
export const before = ({ previous = none }: Pick<UsageRow, "previous">): UsageSums => previous;

/** The change since the period before, if both have a number. */
export function changeOf({ approximate }: Quantity, row: UsageRow): string | undefined {
  const [now, then] = [approximate(row), approximate(before(row))];
  return now === null || then === null ? undefined : percentChange(now, then);
}
