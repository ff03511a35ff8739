import type { Band, Bands, PriceBook, PriceKey, PriceLine, Tier, Usage } from "./types.ts";

/** Price keys that count input tokens, and those that count output tokens: unit `1M_tokens`. */
export const inputKeys = ["input", "cached_input", "cache_write", "cache_write_1h", "audio_input"] as const;
const outputKeys = ["output", "audio_output"] as const;
/** Price keys that are units of the same name. */
const unitKeys = ["image", "input_image", "second", "character", "minute", "request"] as const;
export const priceKeys = [...inputKeys, ...outputKeys, ...unitKeys] as const satisfies readonly PriceKey[];
/** A picture is a picture, made or given. */
const unitOf = (key: PriceKey): string => (tokenKeys.has(key) ? "1M_tokens" : key === "input_image" ? "image" : key);

/** In this order: what a count without a price of its own is billed as, so that nothing is free by accident. */
const stands = [
  ["cached_input", "input"],
  ["cache_write", "input"],
  ["cache_write_1h", "cache_write"],
  ["audio_input", "input"],
  ["audio_output", "output"],
] as const satisfies readonly (readonly [PriceKey, PriceKey])[];

const tokenKeys: ReadonlySet<PriceKey> = new Set([...inputKeys, ...outputKeys]);
const measured: ReadonlySet<PriceKey> = new Set(["second", "minute"]);

/** As the file has them: decimal strings, USD per unit. */
export type ListPrices = Readonly<Partial<Record<PriceKey, string | undefined>>>;

/** Prices of every token of a prompt longer than `aboveInputTokens`. The first band is above -1. */
export interface ListBand {
  readonly aboveInputTokens: number;
  readonly pricing: ListPrices;
}

/** Prices that the file states, and what their lines' names end in: nothing, `_above_200000`, `_hd`. */
export interface Listed {
  readonly suffix: string;
  readonly pricing: ListPrices;
}

const listDecimals = 9;
const discountDecimals = 4;
export const pricePattern = new RegExp(`^(0|[1-9]\\d{0,6})(\\.\\d{1,${listDecimals}})?$`);

/**
 * Amounts are whole numbers of 10^-10 nano-USD. There 9 decimals of a price per million tokens and 4 of a discount come
 * out even, and so do 6 of a measured count, whose prices end in six zeros: the division at the end is the one rounding.
 */
const perNanoUsd = 10n ** 10n;
const million = 1_000_000n;

/** `"2.5"` is 2500000000n billionths. */
export function parsePrice(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(listDecimals, "0"));
}

function formatDecimal(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals).replace(/0+$/, "").padEnd(2, "0")}`;
}

const dearest = (...each: readonly (bigint | undefined)[]): bigint =>
  each.reduce<bigint>((most, amount) => (amount !== undefined && amount > most ? amount : most), 0n);

function amounts(pricing: ListPrices, discountBps: number): Band["prices"] {
  const out: Partial<Record<PriceKey, bigint>> = {};
  for (const key of priceKeys) {
    const price = pricing[key];
    if (price === undefined) continue;
    out[key] = parsePrice(price) * BigInt(10_000 - discountBps) * (tokenKeys.has(key) ? 1n : million);
  }
  for (const [key, stand] of stands) {
    const amount = out[key] ?? out[stand];
    if (amount !== undefined) out[key] = amount;
  }
  return out;
}

function bandsOf(list: readonly ListBand[], discountBps: number): Bands {
  const bands: Band[] = [];
  for (const { aboveInputTokens, pricing } of list) {
    const prices = amounts(pricing, discountBps);
    const below = bands.at(-1)?.dearest;
    bands.push({
      aboveInputTokens,
      prices,
      dearest: {
        input: dearest(below?.input, prices.input, prices.cached_input),
        cacheWrite: dearest(below?.cacheWrite, prices.cache_write),
        cacheWriteLong: dearest(below?.cacheWriteLong, prices.cache_write_1h),
        audioInput: dearest(below?.audioInput, prices.audio_input),
        output: dearest(below?.output, prices.output, prices.audio_output),
        request: dearest(below?.request, prices.request),
      },
    });
  }
  return bands as [Band, ...Band[]];
}

/** Everything that needs a string read is done here, once, at load. */
export const priceBook = (list: readonly ListBand[], eliteDiscountBps: number): PriceBook => ({
  standard: bandsOf(list, 0),
  elite: bandsOf(list, eliteDiscountBps),
});

/** The band that a prompt of so many tokens is billed in. */
export function bandAt(bands: Bands, inputTokens: number): Band {
  let found = bands[0];
  for (const band of bands) {
    if (inputTokens <= band.aboveInputTokens) break;
    found = band;
  }
  return found;
}

/** The one rounding: half up. */
export const toNanoUsd = (amount: bigint): bigint => (amount + perNanoUsd / 2n) / perNanoUsd;
/** The largest amount that does not round to more than `nanoUsd`. */
export const mostWithin = (nanoUsd: bigint): bigint => nanoUsd * perNanoUsd + perNanoUsd / 2n - 1n;

export type Prices = Band["prices"];

/** In 10^-10 nano-USD, of one unit. */
export const pricesOf = (pricing: ListPrices, eliteDiscountBps: number): Readonly<Record<Tier, Prices>> => ({
  standard: amounts(pricing, 0),
  elite: amounts(pricing, eliteDiscountBps),
});

export function costAt(prices: Prices, usage: Usage): bigint {
  let total = 0n;
  for (const key of priceKeys) {
    const count = usage[key];
    if (count === undefined || count === 0) continue;
    const price = prices[key];
    if (price === undefined) throw new RangeError(`The model has no price for '${key}'`);
    const whole = measured.has(key) ? Math.round(count * 1e6) : count;
    if (!Number.isSafeInteger(whole) || whole < 0) throw new RangeError(`A count of '${key}' cannot be ${count}`);
    total += BigInt(whole) * (measured.has(key) ? price / million : price);
  }
  return toNanoUsd(total);
}

export function costOf(bands: Bands, usage: Usage): bigint {
  let inputTokens = 0;
  for (const key of inputKeys) inputTokens += usage[key] ?? 0;
  return costAt(bandAt(bands, inputTokens).prices, usage);
}

/** The usage of a call that was answered, with the request itself where it has a price. */
export function withRequest({ prices }: { readonly prices: PriceBook }, usage: Usage): Usage {
  const isPriced = prices.standard[0].prices.request !== undefined;
  return isPriced && Object.values(usage).some((count) => count > 0) ? { ...usage, request: 1 } : usage;
}

export function pricingOf(list: readonly Listed[], eliteDiscountBps: number): Readonly<Record<string, PriceLine>> {
  const lines: Record<string, PriceLine> = {};
  for (const { suffix, pricing } of list) {
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
