import { createHash } from "node:crypto";
import type { CatalogEntries } from "./read-catalog.ts";

const compare = (a: string, b: string) => (a < b ? -1 : 1);

const withSortedKeys = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => compare(a, b)))
    : value;

/**
 * Identifies the content of a catalog: 12 hexadecimal digits of a SHA-256. White space and the order of keys and models
 * do not count; the order of a model's upstreams does.
 */
export function catalogHash(catalog: CatalogEntries): string {
  const models = catalog.models.toSorted((a, b) => compare(a.id, b.id));
  const text = JSON.stringify({ ...catalog, models }, withSortedKeys);
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
