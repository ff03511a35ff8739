/** The largest Int64, about 9.2 billion USD. */
export const maxInt64 = 2n ** 63n - 1n;

/** Formats `25000000000n` as `"25.00"`: exact, with at least two and at most nine decimals. */
export function formatUsd(nanoUsd: bigint): string {
  const digits = String(nanoUsd < 0n ? -nanoUsd : nanoUsd).padStart(10, "0");
  const decimals = digits.slice(-9).replace(/0{1,7}$/, "");
  return `${nanoUsd < 0n ? "-" : ""}${digits.slice(0, -9)}.${decimals}`;
}

/** Parses `"25"`, `"25.00"` or `"-0.000000001"` to nano-USD. Returns undefined for anything else or over Int64. */
export function parseUsd(text: string): bigint | undefined {
  const [, sign, whole, decimals = ""] = /^(-?)(\d{1,10})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const nanoUsd = BigInt(whole + decimals.padEnd(9, "0"));
  if (nanoUsd > maxInt64) return undefined;
  return sign === "-" ? -nanoUsd : nanoUsd;
}

/** BSON silently wraps a larger bigint around. */
export function assertAmount(nanoUsd: bigint, name: string): void {
  if (typeof nanoUsd !== "bigint") throw new TypeError(`${name} must be a bigint`);
  if (nanoUsd < 0n || nanoUsd > maxInt64) throw new RangeError(`${name} is out of range: ${nanoUsd}`);
}
