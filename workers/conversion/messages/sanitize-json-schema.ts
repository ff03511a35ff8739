import { invalidValue } from "#errors";
import { type JsonObject, object } from "#formats";

/** Deeper than any meaningful schema, and shallow enough for the stack. */
const maxDepth = 64;

const lists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const maps = ["properties", "$defs", "definitions"];

/** The provider requires `additionalProperties: false` on every object. All values of the closed schema fit the open one. */
export function sanitizeJsonSchema(schema: unknown, at: string, depth = 0): JsonObject {
  if (depth === maxDepth) throw invalidValue(at, `${at}: is nested too deep.`);
  const closed: Record<string, unknown> = { ...object(schema) };
  const close = (value: unknown) =>
    typeof value === "object" && value !== null ? sanitizeJsonSchema(value, at, depth + 1) : value;
  for (const field of lists) {
    const schemas = closed[field];
    if (Array.isArray(schemas)) closed[field] = schemas.map(close);
  }
  for (const field of maps) {
    if (typeof closed[field] !== "object" || closed[field] === null) continue;
    closed[field] = Object.fromEntries(Object.entries(closed[field]).map(([name, value]) => [name, close(value)]));
  }
  if (closed["items"] !== undefined) closed["items"] = close(closed["items"]);
  if (closed["type"] === "object" || closed["properties"] !== undefined) closed["additionalProperties"] = false;
  return closed;
}
