import type { UsageRow } from "../api/usage.ts";
import { count } from "../lib/format.ts";
import type { Measure } from "../lib/stacked.ts";
import { fromNano, toNano } from "../lib/usd.ts";
import { Money } from "./money.tsx";

/** Quantities of usage that charts show. */

export interface UsageMeasure extends Measure {
  readonly label: string;
  readonly valueOf: (row: UsageRow) => bigint;
}

const usdAxis = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumSignificantDigits: 3 });
const countAxis = new Intl.NumberFormat("en-US", { notation: "compact" });

export const cost: UsageMeasure = {
  label: "Cost",
  valueOf: ({ cost_usd }) => toNano(cost_usd),
  shown: (nanoUsd) => <Money usd={fromNano(nanoUsd)} />,
  axis: (value) => usdAxis.format(value),
  toNumber: (nanoUsd) => Number(nanoUsd) / 1e9,
};

const counted = (label: string, countOf: (row: UsageRow) => number): UsageMeasure => ({
  label,
  valueOf: (row) => BigInt(countOf(row)),
  shown: (value) => <span className="tabular-nums">{count(Number(value))}</span>,
  axis: (value) => countAxis.format(value),
  toNumber: Number,
});

/** Keyed by their name in the address. */
export const measures = {
  cost,
  calls: counted("Calls", ({ calls }) => calls),
  tokens: counted("Tokens", ({ input_tokens, output_tokens }) => input_tokens + output_tokens),
  errors: counted("Errors", ({ failed }) => failed),
} as const;
