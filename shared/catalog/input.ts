import { z } from "zod";
import type { ServiceError } from "#errors";
import { invalidFrom, type ModelInput } from "#formats";
import type { Media, Model } from "./types.ts";

export type Input = ModelInput["value"];
export type JsonSchema = Readonly<Record<string, unknown>>;

const record = (value: unknown): JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};

/** The schema of one field; undefined if the input schema does not name it. */
export function fieldSchema(schema: JsonSchema, field: string): JsonSchema | undefined {
  const properties = record(schema["properties"]);
  return Object.hasOwn(properties, field) ? record(properties[field]) : undefined;
}

/** The caller's value, or the field's default. */
export const valueOf = (schema: JsonSchema, input: Input, field: string): unknown =>
  Object.hasOwn(input, field) ? input[field] : fieldSchema(schema, field)?.["default"];

/** A positive count as providers accept it: `8`, `"8"` or `"8s"`. */
export function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d{1,9}s?$/.test(value) ? Number.parseInt(value, 10) : value;
  return typeof count === "number" && Number.isFinite(count) && count > 0 ? count : undefined;
}

export function mediaOf(model: Model): Media {
  if (model.media === undefined) throw new TypeError(`${model.id} is billed by tokens, not by its input`);
  return model.media;
}

/** Throws if zod does not support the schema. */
export const inputCheck = (schema: JsonSchema): z.ZodType =>
  z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema, { registry: z.registry() });

/** The values of a union of literals, which is what an `enum` of numbers becomes. */
function valuesOf(issue: z.core.$ZodIssueInvalidUnion): readonly unknown[] | undefined {
  const inner = issue.errors.flat();
  const values = inner.flatMap((each) => (each.code === "invalid_value" && each.path.length === 0 ? each.values : []));
  return values.length === inner.length ? values : undefined;
}

/** Names the allowed values or the description, where zod would name the first value or a regular expression. */
function explained(issue: z.core.$ZodIssue, schema: JsonSchema): z.core.$ZodIssue {
  const values = issue.code === "invalid_union" ? valuesOf(issue) : undefined;
  if (values) return { ...issue, code: "custom", message: `Invalid option: expected one of ${values.join("|")}` };
  const [field] = issue.path;
  if (issue.code !== "invalid_format" || issue.path.length !== 1 || typeof field !== "string") return issue;
  const description = fieldSchema(schema, field)?.["description"];
  return typeof description === "string" ? { ...issue, message: `Invalid string: expected ${description}` } : issue;
}

function invalid(error: z.ZodError, schema: JsonSchema, at: ModelInput["at"]): ServiceError {
  const issues = error.issues.map((issue) => explained(issue, schema));
  return invalidFrom(
    new z.ZodError(issues.map((issue) => ({ ...issue, path: at ? [at, ...issue.path] : issue.path }))),
  );
}

export function checkInput(model: Model, { value, at }: ModelInput): ModelInput["value"] {
  const { check, schema } = mediaOf(model);
  const parsed = check.safeParse(value);
  if (!parsed.success) throw invalid(parsed.error, schema, at);
  return parsed.data as ModelInput["value"];
}
