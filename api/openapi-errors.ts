import { z } from "zod";
import { errorKinds } from "#errors";

/** Specification, part 2, "Error body". */
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
const retryAfter = z.int().min(1).max(60).optional().describe("Seconds");

/** All that this status can mean, in the words of the error list. */
export const errorAnswersIn = (body: z.ZodType, statuses: readonly number[]) =>
  Object.fromEntries(
    statuses.map((status) => {
      const kinds = Object.entries(errorKinds).filter(([, kind]) => kind.status === status);
      const description = kinds.map(([code, { when }]) => `\`${code}\`: ${when}.`).join(" ");
      const waits = status === 429 || status === 503;
      const headers = waits ? { headers: z.object({ "Retry-After": retryAfter }) } : {};
      return [`${status}`, { description, content: json(body), ...headers }];
    }),
  );

export const errorAnswers = (...statuses: number[]) => errorAnswersIn(errorBody, statuses);

export const paid = [400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504];
