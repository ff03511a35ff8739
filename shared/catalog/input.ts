import { z } from "zod";
import type { ServiceError } from "#errors";
import { invalidFrom, type ModelInput } from "#formats";
import type { Model } from "./types.ts";
import { fieldSchema, type JsonSchema, mediaOf } from "./units.ts";

/** Throws if zod cannot hold inputs to the schema. */
export const checkOf = (schema: JsonSchema): z.ZodType =>
  z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema, { registry: z.registry() });

/** The values of alternatives that are nothing but values: an `enum` of numbers. */
function valuesOf(issue: z.core.$ZodIssueInvalidUnion): readonly unknown[] | undefined {
  const inner = issue.errors.flat();
  const values = inner.flatMap((each) => (each.code === "invalid_value" && each.path.length === 0 ? each.values : []));
  return values.length === inner.length ? values : undefined;
}

/** Says what is allowed where zod would show the first of many values, or a regular expression. */
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
