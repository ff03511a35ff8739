import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { isObject } from "#json";
import { catalogFile } from "./schema.ts";
import { CatalogError } from "./types.ts";

export type CatalogEntries = z.infer<typeof catalogFile>;

const shippedFile = fileURLToPath(new URL("models.json", import.meta.url));

/**
 * Reads and checks the entries of a file, the shipped one by default, merged with an overlay. Throws CatalogError with
 * a line for each fault; the lines of faults that the overlay causes begin with `overlay: `.
 */
export function readCatalog(file = shippedFile, overlay?: string): CatalogEntries {
  const content = readJson(file, "catalog");
  if (overlay === undefined) return entriesOf(`The catalog ${file}`, content);
  const merged = mergeOverlay(content, readOverlay(overlay));
  const own = () => new Set(catalogFile.safeParse(content).error?.issues.map((issue) => lineOf(issue, content)));
  return entriesOf(`The catalog ${file} with the overlay ${overlay}`, merged.content, merged, own);
}

function readJson(file: string, what: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CatalogError(`The ${what} ${file} cannot be read: ${(error as Error).message}`);
  }
}

const invalid = (subject: string, lines: readonly string[]) =>
  new CatalogError(`${subject} is not valid.\n  ${lines.join("\n  ")}`);

function readOverlay(file: string): Overlay {
  const parsed = overlayFile.safeParse(readJson(file, "catalog overlay"));
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "the file"}: ${message}`);
  throw invalid(`The catalog overlay ${file}`, lines);
}

/** `own` returns the faults of the catalog without its overlay. */
function entriesOf(
  subject: string,
  content: unknown,
  merge: { readonly faults: readonly string[]; readonly added: readonly string[] } = { faults: [], added: [] },
  own?: () => ReadonlySet<string>,
): CatalogEntries {
  const parsed = catalogFile.safeParse(content);
  if (parsed.success && merge.faults.length === 0) return parsed.data;
  const found = (parsed.error?.issues ?? []).map((issue) => lineOf(issue, content));
  // A misspelled id looks like a new entry that lacks almost every field.
  const incomplete = merge.added.filter((entry) => found.some((line) => line.startsWith(`${entry}: `)));
  const hints = incomplete.map(
    (entry) => `${entry}: is not in the catalog without the overlay, so it needs every field that is required`,
  );
  const lines = [...merge.faults, ...hints, ...found];
  const without = own?.();
  throw invalid(
    subject,
    lines.map((line) => (without?.has(line) === false ? `overlay: ${line}` : line)),
  );
}

const withIds = z.looseObject({ models: z.array(z.looseObject({ id: z.string() }).catch({ id: "" })) });

/** Converts `["models", 3, "pricing", "input"]` to "model openai/gpt-5: pricing.input". */
function lineOf({ path, message }: z.core.$ZodIssue, content: unknown): string {
  const [list, at, ...field] = path.map(String);
  if (list === undefined) return `the file: ${message}`;
  if (at === undefined) return `${list}: ${message}`;
  const known = withIds.safeParse(content);
  const id = list === "models" && known.success ? known.data.models[Number(at)]?.id : undefined;
  const entry = list === "upstreams" ? `upstream ${at}` : id ? `model ${id}` : `${list}[${at}]`;
  return [entry, ...(field.length > 0 ? [field.join(".")] : []), message].join(": ");
}

/** Keyed by id. A value is a patch of an entry, a complete new entry, or null to remove the entry. */
const patches = z.record(z.string(), z.record(z.string(), z.unknown()).nullable()).default({});

/** The file of `CATALOG_OVERLAY`. Its content is checked after the merge. */
const overlayFile = z.strictObject({
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
function mergeOverlay(content: unknown, { upstreams, models, ...rest }: Overlay) {
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
