import type { Model } from "#catalog";
import { maxTypos, typosBetween } from "../../shared/typos.ts";

/** Longer names are no typos of a model's. Also bounds the work. */
const maxNameLength = 80;
const maxSimilar = 3;

/** A model's name as people write it: without its provider, a variant, a date, capitals and punctuation. */
const plain = (name: string): string =>
  name
    .slice(name.lastIndexOf("/") + 1)
    .split(":", 1)
    .join()
    .replace(/-(latest|20\d\d-?\d\d-?\d\d)$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");

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
