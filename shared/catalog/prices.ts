import {
  type Band,
  type Bands,
  inputKeys,
  outputKeys,
  type PriceBook,
  type PriceKey,
  type PriceLine,
  type Prices,
  priceKeys,
  type Tier,
  type Usage,
} from "./types.ts";

const tokenKeys: ReadonlySet<PriceKey> = new Set([...inputKeys, ...outputKeys]);
const measuredKeys: ReadonlySet<PriceKey> = new Set(["second", "minute"]);
const unitOf = (key: PriceKey): string => (tokenKeys.has(key) ? "1M_tokens" : key === "input_image" ? "image" : key);

/** Counts without their own price are billed as another key, in this order, so that nothing is free by accident. */
const fallbacks = [
  ["cached_input", "input"],
  ["cache_write", "input"],
  ["cache_write_1h", "cache_write"],
  ["audio_input", "input"],
  ["audio_output", "output"],
] as const satisfies readonly (readonly [PriceKey, PriceKey])[];

/** Returns true if a count without its own price is billed as another key. */
export const hasFallback = (key: PriceKey): boolean => fallbacks.some(([from]) => from === key);

/** Prices in the file: decimal strings in USD per unit. */
export type ListPrices = Readonly<Partial<Record<PriceKey, string | undefined>>>;

/** Prices for prompts longer than `aboveInputTokens`, which is -1 in the first band. */
export interface ListBand {
  readonly aboveInputTokens: number;
  readonly pricing: ListPrices;
}

const listDecimals = 9;
const discountDecimals = 4;
export const pricePattern = new RegExp(`^(0|[1-9]\\d{0,6})(\\.\\d{1,${listDecimals}})?$`);

/**
 * Amounts are integers in units of 10^-10 nano-USD. This is exact for a price per million tokens with 9 decimals and a
 * discount with 4, and for measured counts with 6 decimals, whose prices end in six zeros. Only the division at the end
 * rounds.
 */
const perNanoUsd = 10n ** 10n;
const million = 1_000_000n;

/** Converts `"2.5"` to 2500000000n billionths. */
export function parsePrice(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(listDecimals, "0"));
}

function formatDecimal(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits
    .slice(-decimals)
    .replace(/(?<!0)0+$/, "")
    .padEnd(2, "0")}`;
}

const highest = (...each: readonly (bigint | undefined)[]): bigint =>
  each.reduce<bigint>((max, amount) => (amount !== undefined && amount > max ? amount : max), 0n);

function amountsOf(pricing: ListPrices, discountBps: number): Prices {
  const out: Partial<Record<PriceKey, bigint>> = {};
  for (const key of priceKeys) {
    const price = pricing[key];
    if (price === undefined) continue;
    out[key] = parsePrice(price) * BigInt(10_000 - discountBps) * (tokenKeys.has(key) ? 1n : million);
  }
  for (const [key, fallback] of fallbacks) {
    const amount = out[key] ?? out[fallback];
    if (amount !== undefined) out[key] = amount;
  }
  return out;
}

function bandsOf(list: readonly ListBand[], discountBps: number): Bands {
  const bands: Band[] = [];
  for (const { aboveInputTokens, pricing } of list) {
    const prices = amountsOf(pricing, discountBps);
    const below = bands.at(-1)?.dearest;
    bands.push({
      aboveInputTokens,
      prices,
      dearest: {
        input: highest(below?.input, prices.input, prices.cached_input),
        cacheWrite: highest(below?.cacheWrite, prices.cache_write),
        cacheWriteLong: highest(below?.cacheWriteLong, prices.cache_write_1h),
        audioInput: highest(below?.audioInput, prices.audio_input),
        output: highest(below?.output, prices.output, prices.audio_output),
        request: highest(below?.request, prices.request),
        search: highest(below?.search, prices.search),
      },
    });
  }
  return bands as [Band, ...Band[]];
}

/** Parses all prices once, at load. */
export const priceBook = (list: readonly ListBand[], eliteDiscountBps: number): PriceBook => ({
  standard: bandsOf(list, 0),
  elite: bandsOf(list, eliteDiscountBps),
});

export function bandAt(bands: Bands, inputTokens: number): Band {
  let found = bands[0];
  for (const band of bands) {
    if (inputTokens <= band.aboveInputTokens) break;
    found = band;
  }
  return found;
}

/** Rounds half up. */
export const toNanoUsd = (amount: bigint): bigint => (amount + perNanoUsd / 2n) / perNanoUsd;
/** Returns the largest amount that does not round to more than `nanoUsd`. */
export const maxAmountFor = (nanoUsd: bigint): bigint => nanoUsd * perNanoUsd + perNanoUsd / 2n - 1n;

/** Compares the price of a write over that of uncached input with what one read saves. */
export const onceReadSaves = ({ input = 0n, cached_input = input, cache_write = input }: Prices): boolean =>
  cache_write - input < input - cached_input;

export const pricesOf = (pricing: ListPrices, eliteDiscountBps: number): Readonly<Record<Tier, Prices>> => ({
  standard: amountsOf(pricing, 0),
  elite: amountsOf(pricing, eliteDiscountBps),
});

/** Computes the operator's cost at an upstream, and a rank by which the upstreams of a model can be compared. */
export function upstreamCostOf(cost: ListPrices) {
  const prices = amountsOf(cost, 0);
  const own = priceKeys.filter((key) => !hasFallback(key));
  return {
    /** The price of each kind of usage. */
    lines: Object.fromEntries(
      Object.entries(pricingOf([["", cost]], 0)).map(([key, { unit, list_usd: usd }]) => [key, { unit, usd }]),
    ),
    /** Nano-USD. */
    of: (usage: Usage): bigint => costAt(prices, usage),
    /** The sum of its prices: a million tokens of input plus a million of output, or one piece of each kind. */
    rank: own.reduce((sum, key) => sum + (prices[key] ?? 0n), 0n),
  };
}

export function costAt(prices: Prices, usage: Usage): bigint {
  let total = 0n;
  for (const key of priceKeys) {
    const count = usage[key];
    if (count === undefined || count === 0) continue;
    const price = prices[key];
    if (price === undefined) throw new RangeError(`The model has no price for '${key}'`);
    const whole = measuredKeys.has(key) ? Math.round(count * 1e6) : count;
    if (!Number.isSafeInteger(whole) || whole < 0) throw new RangeError(`A count of '${key}' cannot be ${count}`);
    total += BigInt(whole) * (measuredKeys.has(key) ? price / million : price);
  }
  return toNanoUsd(total);
}

export function costOf(bands: Bands, usage: Usage): bigint {
  let inputTokens = 0;
  for (const key of inputKeys) inputTokens += usage[key] ?? 0;
  return costAt(bandAt(bands, inputTokens).prices, usage);
}

/** Adds the request itself to the usage of a call that used anything, if requests have a price. */
export function withRequest({ prices }: { readonly prices: PriceBook }, usage: Usage): Usage {
  const isPriced = prices.standard[0].prices.request !== undefined;
  return isPriced && Object.values(usage).some((count) => count > 0) ? { ...usage, request: 1 } : usage;
}

/** `list` contains prices with the suffix of their lines in `x_pricing`: none, `_above_200000`, `_hd`. */
export function pricingOf(
  list: readonly (readonly [suffix: string, ListPrices])[],
  eliteDiscountBps: number,
): Readonly<Record<string, PriceLine>> {
  const lines: Record<string, PriceLine> = {};
  for (const [suffix, pricing] of list) {
    for (const key of priceKeys) {
      const price = pricing[key];
      if (price === undefined) continue;
      const billionths = parsePrice(price);
      lines[`${key}${suffix}`] = {
        unit: unitOf(key),
        list_usd: formatDecimal(billionths, listDecimals),
        elite_usd: formatDecimal(billionths * BigInt(10_000 - eliteDiscountBps), listDecimals + discountDecimals),
      };
    }
  }
  return lines;
}
