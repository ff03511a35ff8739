import type { z } from "zod";
import { invalidValue, type ServiceError } from "#errors";
import type { JsonObject } from "#json";

/** Formats `["messages", 0, "role"]` as `messages[0].role`. */
const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : text ? `${text}.${String(step)}` : String(step)),
    "",
  );

/**
 * Returns the issue of the union's best matching alternative: the deepest one, or one that is not about the type itself
 * (a list that is too long rather than "expected string"). Returns undefined if no alternative is close.
 */
function closest(union: z.core.$ZodIssueInvalidUnion): z.core.$ZodIssue | undefined {
  const inner = union.errors.flat().toSorted((a, b) => b.path.length - a.path.length);
  return inner[0]?.path.length ? inner[0] : inner.find(({ code }) => code !== "invalid_type");
}

const expectedOf = (union: z.core.$ZodIssueInvalidUnion): string =>
  union.errors
    .flat()
    .flatMap((issue) => (issue.code === "invalid_type" ? [issue.expected] : []))
    .join(" or ");

/** Converts the first issue of a schema to a 400 that names the field. */
export function invalidFrom(error: z.ZodError): ServiceError {
  let issue = error.issues[0] as z.core.$ZodIssue;
  let path = issue.path;
  let { message } = issue;
  while (issue.code === "invalid_union") {
    const inner = closest(issue);
    if (!inner) {
      message = `Invalid input: expected ${expectedOf(issue)}`;
      break;
    }
    issue = inner;
    message = inner.message;
    path = [...path, ...inner.path];
  }
  if (issue.code === "unrecognized_keys") path = [...path, issue.keys[0] as string];
  const param = pathText(path);
  return invalidValue(param || undefined, param ? `${param}: ${message}.` : `The body is not valid: ${message}.`);
}

/** Reporting each of a million invalid items would block the event loop for half a minute. */
const firstIssueOnly: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** Parses a body, or throws a 400 that names the first invalid field. */
export function validate<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const parsed = schema.safeParse(body, firstIssueOnly);
  if (!parsed.success) throw invalidFrom(parsed.error);
  return parsed.data;
}

export function refuse(param: string, reason: string): never {
  throw invalidValue(param, `${param}: ${reason}.`);
}

export function need(holder: JsonObject, field: string, at: string): string {
  const value = holder[field];
  if (typeof value !== "string") throw invalidValue(`${at}.${field}`, `${at}.${field} must be a string.`);
  return value;
}

export function needText(value: unknown, param: string): string {
  if (typeof value !== "string" || value === "") throw invalidValue(param, `${param} must be a string.`);
  return value;
}

/** Tenants share the operator's provider key, so data stored at the provider may belong to another tenant. */
export const storedAtProvider = (param: string, instead = "send the content itself"): ServiceError =>
  invalidValue(param, `${param} refers to data stored at the provider, which is not available here; ${instead}.`);

export const providerTool = (param: string): ServiceError =>
  invalidValue(param, `${param}: tools that run at the provider are not supported.`);

/** The common error body (docs/api/inference.md, part 7). */
export const commonError = (error: ServiceError, requestId: string) => ({
  error: { message: error.message, type: error.type, code: error.code, param: error.param ?? null },
  request_id: requestId,
});
