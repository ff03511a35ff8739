import type { CatalogEntries } from "#catalog";

type Part = "catalog" | "upstream" | "model";

/** A changed field of an entry that both catalogs have. A null value means that the entry has no such field. */
export interface FieldChange {
  readonly part: Part;
  readonly id: string;
  /** A path such as `pricing.input`, `tiers.0.pricing.output` or `features`. */
  readonly field: string;
  readonly old: string | null;
  readonly new: string | null;
}

export interface CatalogDiff {
  readonly added: readonly { readonly part: Part; readonly id: string }[];
  readonly removed: readonly { readonly part: Part; readonly id: string }[];
  readonly changed: readonly FieldChange[];
}

type Fields = ReadonlyMap<string, string>;

/**
 * Returns the values in an entry by their paths. A list of plain values counts as one value, because its indices carry
 * no meaning.
 */
function fieldsOf(value: unknown, path = ""): readonly (readonly [string, string])[] {
  const isList = Array.isArray(value);
  const isPlain = typeof value !== "object" || value === null || (isList && value.every((x) => typeof x !== "object"));
  if (isPlain) return [[path, isList ? value.join(", ") : String(value)]];
  return Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .flatMap(([name, inner]) => fieldsOf(inner, path ? `${path}.${name}` : name));
}

const entriesOf = ({ models, upstreams, ...rest }: CatalogEntries): Record<Part, ReadonlyMap<string, Fields>> => ({
  catalog: new Map([["", new Map(fieldsOf(rest))]]),
  upstream: new Map(Object.entries(upstreams).map(([id, entry]) => [id, new Map(fieldsOf(entry))])),
  model: new Map(models.map((entry) => [entry.id, new Map(fieldsOf(entry))])),
});

export function diffCatalogs(from: CatalogEntries, to: CatalogEntries): CatalogDiff {
  const [before, after] = [entriesOf(from), entriesOf(to)];
  const added: { part: Part; id: string }[] = [];
  const removed: { part: Part; id: string }[] = [];
  const changed: FieldChange[] = [];
  for (const part of ["catalog", "upstream", "model"] as const) {
    for (const id of after[part].keys()) if (!before[part].has(id)) added.push({ part, id });
    for (const [id, old] of before[part]) {
      const now = after[part].get(id);
      if (!now) {
        removed.push({ part, id });
        continue;
      }
      for (const field of new Set([...old.keys(), ...now.keys()])) {
        const change = { part, id, field, old: old.get(field) ?? null, new: now.get(field) ?? null };
        if (change.old !== change.new) changed.push(change);
      }
    }
  }
  return { added, removed, changed };
}
