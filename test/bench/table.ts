/** Numbers and tables in the style of the benchmark's pages. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  const high = sorted[Math.floor(middle)] ?? Number.NaN;
  return (low + high) / 2;
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
export const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
export const ms = (value: number): string => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
export const times = (ratio: number): string => `${ratio.toFixed(2)} x`;
export const mebi = (bytes: number): string => whole(bytes / 1024 ** 2);

/** Renders Markdown. The first `names` columns are text, the others numbers. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[], names = 1): string =>
  [head, head.map((_, index) => (index < names ? "---" : "--:")), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n");
