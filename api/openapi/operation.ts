import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { errorKinds } from "#errors";
import { shownTypes } from "../routes/files.ts";
import { errorBody } from "./errors.ts";
import { idempotencyKey } from "./headers.ts";

interface Details {
  readonly security?: Record<string, string[]>[];
  readonly params?: { readonly path?: z.ZodObject; readonly query?: z.ZodObject; readonly header?: z.ZodObject };
  /** A required JSON body; `requestBody` describes any other. */
  readonly body?: z.ZodType;
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  /** The 200 response in JSON, or in JSON and as events. */
  readonly ok?: Ok;
  readonly okOrEvents?: Ok;
  readonly errors?: readonly number[];
  readonly errorBody?: z.ZodType;
  /** Responses that the other fields do not describe. */
  readonly responses?: ZodOpenApiOperationObject["responses"];
}
export type Content = Record<string, { readonly schema: z.ZodType }>;
type Ok = readonly [description: string, schema: z.ZodType, headers?: z.ZodObject];

export const json = (schema: z.ZodType): Content => ({ "application/json": { schema } });

const events: Content = { "text/event-stream": { schema: z.string() } };
const retryAfter = z.object({ "Retry-After": z.int().min(1).max(60).optional().describe("Seconds") });

function okResponse([description, schema, headers]: Ok, more: Content = {}) {
  return { "200": { description, ...(headers && { headers }), content: { ...json(schema), ...more } } };
}

/** The meanings of the error codes of a status. */
export const meaningsOf = (status: number) =>
  Object.entries(errorKinds)
    .filter(([, kind]) => kind.status === status)
    .map(([code, { when }]) => `\`${code}\`: ${when}.`)
    .join(" ");

export function operation(operationId: string, summary: string, details: Details): ZodOpenApiOperationObject {
  const { security, params, body, ok, okOrEvents, errors = [], errorBody: body4xx = errorBody, responses } = details;
  const requestBody = details.requestBody ?? (body && { required: true, content: json(body) });
  const error = (status: number) => ({
    description: meaningsOf(status),
    content: json(body4xx),
    ...((status === 429 || status === 503) && { headers: retryAfter }),
  });
  return {
    operationId,
    summary,
    ...(security && { security }),
    ...(params && { requestParams: params }),
    ...(requestBody && { requestBody }),
    responses: {
      ...(ok && okResponse(ok)),
      ...(okOrEvents && okResponse(okOrEvents, events)),
      ...Object.fromEntries(errors.map((status) => [status, error(status)])),
      ...responses,
    },
  };
}

/** The statuses of the errors of every paid route. */
export const paidErrors = [400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504];

/** Calls whose answers are stored for an `Idempotency-Key`. */
export const storing = { params: { header: idempotencyKey }, errors: [...paidErrors, 409] };

export const pathId = (example: string) => ({ path: z.object({ id: z.string().meta({ example }) }) });
export const binary = z.string().meta({ format: "binary" });

/** Generators of clients drop an answer of any type, so each is named. A file of another type is read as the first. */
export const file: Content = Object.fromEntries(
  ["application/octet-stream", ...shownTypes].map((type) => [type, { schema: binary }]),
);

export const unixSeconds = z.int().describe("unix seconds");

export const typed = z.array(z.looseObject({ type: z.string() }));
