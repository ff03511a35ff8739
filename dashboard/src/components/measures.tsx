import type { UsageRow } from "../api/usage.ts";
import { count } from "../lib/format.ts";
import type { Measure } from "../lib/stacked.ts";
import { fromNano, toNano } from "../lib/usd.ts";
import { Money } from "./money.tsx";

/** Quantities of usage that charts show. */

export interface RowMeasure<Row> extends Measure {
  readonly label: string;
  readonly valueOf: (row: Row) => bigint;
}

const usdAxis = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumSignificantDigits: 3 });
const countAxis = new Intl.NumberFormat("en-US", { notation: "compact" });

export const usdMeasure = <Row,>(label: string, usdOf: (row: Row) => string): RowMeasure<Row> => ({
  label,
  valueOf: (row) => toNano(usdOf(row)),
  shown: (nanoUsd) => <Money usd={fromNano(nanoUsd)} />,
  axis: (value) => usdAxis.format(value),
  toNumber: (nanoUsd) => Number(nanoUsd) / 1e9,
});

export const countMeasure = <Row,>(label: string, countOf: (row: Row) => number): RowMeasure<Row> => ({
  label,
  valueOf: (row) => BigInt(countOf(row)),
  shown: (value) => <span className="tabular-nums">{count(Number(value))}</span>,
  axis: (value) => countAxis.format(value),
  toNumber: Number,
});

export const cost = usdMeasure<UsageRow>("Cost", ({ cost_usd }) => cost_usd);

/** Keyed by their name in the address. */
export const measures = {
  cost,
  calls: countMeasure<UsageRow>("Calls", ({ calls }) => calls),
  tokens: countMeasure<UsageRow>("Tokens", ({ input_tokens, output_tokens }) => input_tokens + output_tokens),
  errors: countMeasure<UsageRow>("Errors", ({ failed }) => failed),
} as const;
