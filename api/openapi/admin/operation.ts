import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { requestId } from "../headers.ts";
import { json, operation } from "../operation.ts";

/** Why a request with a body is refused, beside what `read` has. */
const bodyErrors = [408, 413, 415];
const readErrors = [400, 401, 500, 503];

interface Details {
  readonly description?: string;
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** By status. */
  readonly answers: Readonly<Record<number, readonly [meaning: string, schema: z.ZodType]>>;
  readonly errors?: readonly number[];
}

/** An operation under `/admin/v1`. */
export function adminOperation(
  operationId: string,
  summary: string,
  { description, path, query, body, answers, errors = [] }: Details,
): ZodOpenApiOperationObject {
  const responses = Object.fromEntries(
    Object.entries(answers).map(([status, [meaning, schema]]) => [
      status,
      { description: meaning, headers: z.object(requestId), content: json(schema) },
    ]),
  );
  return operation(operationId, summary, {
    ...(description && { description }),
    params: { ...(path && { path }), ...(query && { query }) },
    ...(body && { body }),
    errors: [...readErrors, ...(path ? [404] : []), ...(body ? bodyErrors : []), ...errors],
    responses,
  });
}

export const idOf = (what: string) => z.object({ id: z.string().describe(what) });

const page = {
  limit: z.int().min(1).max(200).optional().describe("The default is 50"),
  after: z.string().min(1).max(200).optional().describe("`next` of the page before"),
};
export const pageQuery = z.object(page);
export const pageWith = (more: Record<string, z.ZodType>) => z.object({ ...page, ...more });

/** One object for each component: two under one name would be two definitions. */
export const listOf = (id: string, item: z.ZodType) =>
  z
    .object({
      object: z.literal("list"),
      data: z.array(item),
      has_more: z.boolean(),
      next: z.string().nullable().describe("`after` of the next page"),
    })
    .meta({ id: `${id}List` });
