import type { z } from "zod";
import { invalidValue, type ServiceError } from "#errors";

/** `["messages", 0, "role"]` as callers write it: `messages[0].role`. */
const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : text ? `${text}.${String(step)}` : String(step)),
    "",
  );

/**
 * Of a union's alternatives the complaint that got furthest: the deepest, else one that is not about the type itself (a
 * list that is too long beside "expected string"). Undefined if none came near.
 */
function closest(union: z.core.$ZodIssueInvalidUnion): z.core.$ZodIssue | undefined {
  const inner = union.errors.flat().sort((a, b) => b.path.length - a.path.length);
  return inner[0]?.path.length ? inner[0] : inner.find(({ code }) => code !== "invalid_type");
}

const expectedOf = (union: z.core.$ZodIssueInvalidUnion): string =>
  union.errors
    .flat()
    .flatMap((issue) => (issue.code === "invalid_type" ? [issue.expected] : []))
    .join(" or ");

/** The first thing that a schema found wrong, as a 400 that names the field. */
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

/** A list of a million faults, each told of, would hold the process up for half a minute. */
const untilTheFirst: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** What a schema makes of a body, or a 400 that names the first field at fault. */
export function valid<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const parsed = schema.safeParse(body, untilTheFirst);
  if (!parsed.success) throw invalidFrom(parsed.error);
  return parsed.data;
}
