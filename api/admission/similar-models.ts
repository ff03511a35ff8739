import type { Model } from "#catalog";

/** Longer names are no typos of a model's. Also bounds the work. */
const maxNameLength = 80;
const maxSimilar = 3;

/** A model's name as people write it: without its provider, a variant, a date, capitals and punctuation. */
const plain = (name: string): string =>
  name
    .slice(name.lastIndexOf("/") + 1)
    .replace(/:.*$/s, "")
    .replace(/-(latest|20\d\d-?\d\d-?\d\d)$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");

/** How many typos a name may have. Short names of different models are too close to each other. */
const maxTypos = ({ length }: string): number => (length < 8 ? 0 : length < 16 ? 1 : 2);

/** The ids of up to three models whose name a caller may have meant: the same without its provider, else a near typo. */
export function similarModels(models: readonly Model[], name: string): readonly string[] {
  if (name.length > maxNameLength) return [];
  const wanted = plain(name);
  if (wanted === "") return [];
  const limit = maxTypos(wanted);
  const near = models.flatMap(({ id, aliases }) => {
    const typos = Math.min(...[id, ...aliases].map((known) => typosBetween(wanted, plain(known), limit)));
    return typos <= limit ? [{ id, typos }] : [];
  });
  const fewest = Math.min(...near.map(({ typos }) => typos));
  return near
    .filter(({ typos }) => typos === fewest)
    .map(({ id }) => id)
    .slice(0, maxSimilar);
}

/** Letters to insert, remove or replace (the Levenshtein distance); more than `limit` is Infinity. */
function typosBetween(one: string, other: string, limit: number): number {
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
