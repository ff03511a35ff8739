import { otherSeries } from "./stacked.ts";

/** The colors of named series; the last one of the palette is that of all others. */
const namedColors = 5;
const color = (number: number) => `var(--color-series-${number + 1})`;

const hashOf = (name: string) =>
  Array.from(name).reduce((hash, char) => (hash * 31 + (char.codePointAt(0) ?? 0)) % 1_000_003, 0);

/**
 * The color of each series follows from its name, so that it is the same in every view and period. Of names that share one, the
 * first in the alphabet gets it, and the others get what is free.
 */
export function seriesColors(names: readonly string[]): ReadonlyMap<string, string> {
  const named = names.filter((name) => name !== otherSeries).toSorted();
  const free = new Set(Array.from({ length: namedColors }, (_, number) => number));
  const numbers = new Map<string, number>([[otherSeries, namedColors]]);
  const take = (name: string, number: number) => free.delete(number) && numbers.set(name, number);
  for (const name of named) take(name, hashOf(name) % namedColors);
  for (const name of named) if (!numbers.has(name)) take(name, free.values().next().value ?? 0);
  return new Map(names.map((name) => [name, color(numbers.get(name) ?? namedColors)]));
}

const mostSteps = 4;

/** Ticks at round steps, 1, 2, 2.5 or 5 times a power of ten, over zero and all values. Whole values have whole ticks. */
export function roundScale(values: readonly number[]): { readonly ticks: number[]; readonly domain: [number, number] } {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  if (low === high) return { ticks: [0, 1], domain: [0, 1] };
  const isWhole = values.every(Number.isInteger);
  const smallest = (high - low) / mostSteps;
  const power = 10 ** Math.floor(Math.log10(smallest));
  const steps = [1, 2, 2.5, 5, 10].map((step) => step * power);
  const step = steps.find((each) => each >= smallest && (!isWhole || Number.isInteger(each))) ?? 1;
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  return { ticks, domain: [first * step, last * step] };
}
