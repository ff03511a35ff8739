import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { mergeOverlay, overlayFile } from "./overlay.ts";
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

function readOverlay(file: string): z.infer<typeof overlayFile> {
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
