import { z } from "zod";
import { errorKinds } from "#errors";

/** docs/api/inference.md, "Error body". */
export const errorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum([...new Set(Object.values(errorKinds).map(({ type }) => type))]),
      code: z.enum(Object.keys(errorKinds)).nullable(),
      param: z.string().nullable().describe("The field at fault"),
    }),
    request_id: z.string(),
  })
  .meta({ id: "Error" });

export const idempotencyKey = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("The same key and body joins the running work or gets its answer, for 24 hours; a stream ignores it"),
});
export const replayed = z
  .literal("true")
  .optional()
  .describe("The stored answer of an earlier request with the same Idempotency-Key, whose id `x-request-id` names");

export const json = (schema: z.ZodType) => ({ "application/json": { schema } });

/** The 200 response of an operation. */
export const ok = (description: string, schema: z.ZodType, headers?: z.ZodObject) => ({
  "200": { description, ...(headers && { headers }), content: json(schema) },
});

/** The 200 response of an operation that can also stream. */
export const okOrEvents = (description: string, schema: z.ZodType, headers: z.ZodObject) => ({
  "200": { description, headers, content: { ...json(schema), "text/event-stream": { schema: z.string() } } },
});

const retryAfter = z.int().min(1).max(60).optional().describe("Seconds");

/** For each status the response with the meanings of its error codes. */
export const errorAnswersIn = (body: z.ZodType, statuses: readonly number[]) =>
  Object.fromEntries(
    statuses.map((status) => {
      const kinds = Object.entries(errorKinds).filter(([, kind]) => kind.status === status);
      const description = kinds.map(([code, { when }]) => `\`${code}\`: ${when}.`).join(" ");
      const isRetried = status === 429 || status === 503;
      const headers = isRetried ? { headers: z.object({ "Retry-After": retryAfter }) } : {};
      return [`${status}`, { description, content: json(body), ...headers }];
    }),
  );

export const errorAnswers = (...statuses: number[]) => errorAnswersIn(errorBody, statuses);

/** The statuses of the errors of every paid route. */
export const paid = [400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504];

export const withKey = { params: { header: idempotencyKey } };

interface CallOptions {
  readonly security?: Record<string, string[]>[];
  readonly params?: { readonly path?: z.ZodObject; readonly query?: z.ZodObject; readonly header?: z.ZodObject };
}

/** The path item of a call. */
export const call = (
  operationId: string,
  summary: string,
  request: z.ZodType,
  responses: Record<string, { readonly description: string }>,
  { security, params }: CallOptions,
) => ({
  post: {
    operationId,
    summary,
    ...(security && { security }),
    ...(params && { requestParams: params }),
    requestBody: { required: true, content: json(request) },
    responses,
  },
});
