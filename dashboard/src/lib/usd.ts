/** Exact decimal strings of USD. They are parsed as floating point only for bar heights. */

const decimal = /^(-?)(\d+)(?:\.(\d+))?$/;
const places = 9;

export interface UsdParts {
  readonly sign: "" | "-";
  /** Digits in groups of three. */
  readonly whole: string;
  /** At least two digits. */
  readonly cents: string;
  /** Digits beyond the cents, without trailing zeros. */
  readonly rest: string;
}

export function usdParts(amount: string): UsdParts {
  const [, sign = "", whole = "0", fraction = ""] = decimal.exec(amount) ?? [];
  const digits = fraction.replace(/(?<!0)0+$/, "").padEnd(2, "0");
  return {
    sign: sign === "-" ? "-" : "",
    whole: BigInt(whole).toLocaleString("en-US"),
    cents: digits.slice(0, 2),
    rest: digits.slice(2),
  };
}

/** The largest number of digits after the cents among these amounts. */
export const longestRest = (amounts: readonly string[]): number =>
  Math.max(0, ...amounts.map((amount) => usdParts(amount).rest.length));

export function usdText(amount: string): string {
  const { sign, whole, cents, rest } = usdParts(amount);
  return `${sign}$${whole}.${cents}${rest}`;
}

/** Converts an amount to nano-USD, to add and compare. */
export function toNano(amount: string): bigint {
  const [, sign, whole = "0", fraction = ""] = decimal.exec(amount) ?? [];
  const nano = BigInt(whole + fraction.slice(0, places).padEnd(places, "0"));
  return sign === "-" ? -nano : nano;
}

export function fromNano(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/(?<!0)0+$/, "");
  return `${nano < 0n ? "-" : ""}${digits.slice(0, -places)}${fraction && `.${fraction}`}`;
}

export const sumUsd = (amounts: readonly string[]): string =>
  fromNano(amounts.reduce((sum, amount) => sum + toNano(amount), 0n));

/** The used fraction of a whole, from 0 to 1. */
export function share(part: string, whole: string): number {
  const all = toNano(whole);
  if (all <= 0n) return 1;
  const thousandths = Number((toNano(part) * 1000n) / all) / 1000;
  return Math.min(1, Math.max(0, thousandths));
}

/** An approximation for bar heights only. */
export const approximateUsd = (amount: string): number => Number(toNano(amount)) / 1e9;
