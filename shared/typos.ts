/** The number of typos that a name may have. Short names get none, because different ones are too similar. */
export const maxTypos = ({ length }: string): number => (length < 8 ? 0 : length < 16 ? 1 : 2);

/** The number of letters to insert, remove or replace (Levenshtein distance), or Infinity if it is over `limit`. */
export function typosBetween(one: string, other: string, limit: number): number {
  if (one === other) return 0;
  if (Math.abs(one.length - other.length) > limit || limit === 0) return Number.POSITIVE_INFINITY;
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const replaced = (above[column - 1] ?? 0) + Number(one[row - 1] !== other[column - 1]);
      current.push(Math.min(replaced, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    if (Math.min(...current) > limit) return Number.POSITIVE_INFINITY;
    above = current;
  }
  return above.at(-1) ?? Number.POSITIVE_INFINITY;
}
