import { z } from "zod";
import type { ModelInput } from "#formats";
import { type JsonObject, object } from "#json";

export type Input = ModelInput["value"];
export type JsonSchema = JsonObject;

/** Returns the schema of one field, or undefined if the input schema does not define it. */
export function fieldSchema(schema: JsonSchema, field: string): JsonSchema | undefined {
  const properties = object(schema["properties"]);
  return Object.hasOwn(properties, field) ? object(properties[field]) : undefined;
}

/** The caller's value, or the field's default. */
export const valueOf = (schema: JsonSchema, input: Input, field: string): unknown =>
  Object.hasOwn(input, field) ? input[field] : fieldSchema(schema, field)?.["default"];

/** Parses a positive count as providers accept it: `8`, `"8"` or `"8s"`. */
export function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d{1,9}s?$/.test(value) ? Number.parseInt(value, 10) : value;
  return typeof count === "number" && Number.isFinite(count) && count > 0 ? count : undefined;
}

const checks = new WeakMap<JsonSchema, z.ZodType>();

/** Throws if zod does not support the schema. Cached, because this takes most of the time of reading a catalog. */
export function inputCheck(schema: JsonSchema): z.ZodType {
  const check =
    checks.get(schema) ?? z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema, { registry: z.registry() });
  checks.set(schema, check);
  return check;
}
