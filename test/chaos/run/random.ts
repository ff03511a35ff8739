/** The same seed gives the same numbers (mulberry32). */
export interface Random {
  /** A number from 0, below 1. */
  next(): number;
  /** An integer from 0, below `end`. */
  below(end: number): number;
  pick<T>(list: readonly T[]): T;
  /** A name, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name;
  shuffled<T>(list: readonly T[]): T[];
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(next() * end);
  return {
    next,
    below,
    pick: <T>(list: readonly T[]) => list[below(list.length)] as T,
    weighted<Name extends string>(weights: Readonly<Record<Name, number>>) {
      const entries = Object.entries(weights) as [Name, number][];
      let at = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      const found = entries.find(([, weight]) => {
        at -= weight;
        return at < 0;
      });
      return (found ?? (entries.at(-1) as [Name, number]))[0];
    },
    shuffled<T>(list: readonly T[]) {
      const result = [...list];
      for (let at = result.length - 1; at > 0; at--) {
        const other = below(at + 1);
        [result[at], result[other]] = [result[other] as T, result[at] as T];
      }
      return result;
    },
  };
}
