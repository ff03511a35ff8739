import type { PriceRow } from "./prices.ts";
import { fromNano, toNano } from "./usd.ts";

export interface CostLine {
  readonly key: string;
  readonly name: string;
  readonly count: number;
  readonly unit: string;
  readonly priceUsd: string;
  readonly costUsd: string;
}

interface Ended {
  readonly status: string;
  readonly streamed?: boolean | null;
  readonly cost_usd: string;
  readonly refunded: boolean | undefined;
}

/** Explains the charge of a call that did not succeed. Returns undefined for one that did, was not charged or was refunded. */
export function whyCharged({ status, streamed, cost_usd, refunded }: Ended): string | undefined {
  if (status === "succeeded" || refunded || toNano(cost_usd) <= 0n) return undefined;
  const delivered = streamed
    ? "Charged are the input and the output delivered until then, because the provider bills them."
    : "Charged is what the provider did until then, because it bills that.";
  return status === "cancelled"
    ? `It was stopped, or its caller disconnected, after a provider had begun. ${delivered}`
    : `It failed after its first output. ${delivered} A call that fails before that costs nothing.`;
}

const countDecimals = 6;
const priceDecimals = 13;
const million = 1_000_000n;

/** Parses a decimal as an integer of 10^-decimals. */
function scaled(text: string, decimals: number): bigint {
  const [whole = "0", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, "0"));
}

/** One line for each count of a call's usage that has a price. Exact up to a nano-USD; each line is rounded half up. */
export function costLines(
  usage: Readonly<Record<string, number>>,
  prices: readonly PriceRow[],
  isElite: boolean,
): readonly CostLine[] {
  return Object.entries(usage).flatMap(([key, amount]) => {
    const price = prices.find((row) => row.key === key);
    if (!price || amount === 0) return [];
    const priceUsd = isElite ? price.eliteUsd : price.listUsd;
    const units = price.unit === "1M tokens" ? million : 1n;
    const product = scaled(amount.toFixed(countDecimals), countDecimals) * scaled(priceUsd, priceDecimals);
    const perNano = 10n ** BigInt(countDecimals + priceDecimals - 9) * units;
    const costUsd = fromNano((product * 2n + perNano) / (perNano * 2n));
    return [{ key, name: price.name, count: amount, unit: price.unit, priceUsd, costUsd }];
  });
}
