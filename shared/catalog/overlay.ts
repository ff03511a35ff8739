import { z } from "zod";
import { isObject } from "#json";

/** Keyed by id. A value is a patch of an entry, a complete new entry, or null to remove the entry. */
const patches = z.record(z.string(), z.record(z.string(), z.unknown()).nullable()).default({});

/** The file of `CATALOG_OVERLAY`. Its content is checked after the merge. */
export const overlayFile = z.strictObject({
  elite_discount_bps: z.unknown().optional(),
  upstreams: patches,
  models: patches,
});
type Overlay = z.infer<typeof overlayFile>;

/** JSON merge patch (RFC 7396): objects are merged, null removes a field, anything else replaces it. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [field, value] of Object.entries(patch))
    if (value === null) merged.delete(field);
    else merged.set(field, mergePatch(merged.get(field), value));
  return Object.fromEntries(merged);
}

type Patches = z.infer<typeof patches>;

interface Merge {
  readonly faults: string[];
  /** The entries that only the overlay has, in the form in which fault lines name them. */
  readonly added: string[];
}

function patchEntries(entries: Map<string, unknown>, given: Patches, kind: string, { faults, added }: Merge): void {
  for (const [id, patch] of Object.entries(given)) {
    const entry = `${kind} ${id}`;
    if (patch !== null) {
      if (!entries.has(id)) added.push(entry);
      entries.set(id, mergePatch(entries.get(id), patch));
    }
    // A misspelled id would leave on sale a model that was to be removed.
    else if (!entries.delete(id)) faults.push(`${entry}: is not in the catalog, so it cannot be removed`);
  }
}

/** Returns the catalog with the overlay merged over it, the faults of the merge, and the new entries. */
export function mergeOverlay(content: unknown, { upstreams, models, ...rest }: Overlay) {
  const base = isObject(content) ? content : {};
  const byName = new Map(isObject(base["upstreams"]) ? Object.entries(base["upstreams"]) : []);
  const list: readonly unknown[] = Array.isArray(base["models"]) ? base["models"] : [];
  // Entries without an id, or with a duplicate one, are left for the check to report.
  const byId = new Map<string, unknown>();
  list.forEach((entry, at) => {
    const id = isObject(entry) ? entry["id"] : undefined;
    byId.set(typeof id === "string" && !byId.has(id) ? id : `[${at}]`, entry);
  });
  const merge: Merge = { faults: [], added: [] };
  patchEntries(byName, upstreams, "upstream", merge);
  patchEntries(byId, models, "model", merge);
  for (const [id, patch] of Object.entries(models)) {
    const entry = byId.get(id);
    if (patch !== null && isObject(entry)) byId.set(id, { id, ...entry });
    if (patch !== null && (patch["id"] ?? id) !== id) merge.faults.push(`model ${id}: id: differs from its key`);
  }
  const merged = { upstreams: Object.fromEntries(byName), models: [...byId.values()] };
  return { ...merge, content: mergePatch({ ...base, ...merged }, rest) };
}
