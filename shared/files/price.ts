import { parseUsd } from "#money";

const bytesPerGb = 1n << 30n;

/** What storing so many bytes for their 24 hours costs: exact, rounded once, half up to a nano-USD. */
export function storagePrice(usdPerGbDay: string): (bytes: number) => bigint {
  const nanoUsdPerGb = parseUsd(usdPerGbDay);
  if (nanoUsdPerGb === undefined || nanoUsdPerGb < 0n) throw new RangeError(`not a price: ${usdPerGbDay}`);
  return (bytes) => (BigInt(bytes) * nanoUsdPerGb + bytesPerGb / 2n) / bytesPerGb;
}
