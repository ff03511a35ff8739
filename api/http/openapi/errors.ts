import { z } from "zod";
import type { ZodOpenApiResponseObject } from "zod-openapi";
import { errorKinds } from "#errors";
import { refTo } from "./formats/index.ts";
import { authenticate, messagesRequestId, rateLimits, requestId, retryAfter, shouldRetry } from "./headers.ts";

/** The body of every error in the common format (docs/api/inference.md, part 7). */
export const errorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum([...new Set(Object.values(errorKinds).map(({ type }) => type))]),
      code: z.enum(Object.keys(errorKinds)).describe("The descriptions of the responses explain each code"),
      param: z.string().nullable().describe("The field at fault"),
    }),
    request_id: z.string(),
  })
  .meta({ id: "Error" });

/** The shapes of errors, and the names of their components. */
const formats = {
  common: { name: "Error", body: errorBody },
  messages: { name: "MessagesError", body: refTo("MessagesError") },
  gemini: { name: "GeminiError", body: refTo("GeminiError") },
  /** The list of models has the format of the client that asks. */
  byHeader: { name: "ModelsError", body: z.union([errorBody, refTo("MessagesError"), refTo("GeminiError")]) },
};
export type ErrorFormat = keyof typeof formats;

/** The meanings of the error codes of a status. */
export const meaningsOf = (status: number) =>
  Object.entries(errorKinds)
    .filter(([, kind]) => kind.status === status)
    .map(([code, { when }]) => `\`${code}\`: ${when}.`)
    .join(" ");

/** Statuses of errors before admission, when the limits of the call are not known yet. */
const beforeAdmission: readonly number[] = [401, 402, 403, 404, 408, 409, 410, 411, 413, 415];
const finalErrors: readonly number[] = [402, 403, 409, 429, 501, 504];

export const errorHeaders = (status: number, format: ErrorFormat, isCall: boolean) =>
  z.object({
    ...requestId,
    ...(format === "messages" && messagesRequestId),
    ...(status === 401 && authenticate),
    ...((status === 429 || status === 503) && retryAfter),
    ...(finalErrors.includes(status) && shouldRetry),
    ...(isCall && !beforeAdmission.includes(status) && rateLimits),
  });

/** `isCall`: the operation costs money or counts tokens. Each response is a component of the document. */
export function errorResponse(status: number, format: ErrorFormat, isCall: boolean): ZodOpenApiResponseObject {
  const { name, body } = formats[format];
  const id = `${isCall ? "Call" : ""}${name}${status}`;
  const existing = made.get(id);
  if (existing) return existing;
  const response = {
    id,
    description: meaningsOf(status),
    headers: errorHeaders(status, format, isCall),
    content: { "application/json": { schema: body } },
  };
  made.set(id, response);
  return response;
}

/** One object for each component: two under one name would be two definitions. */
const made = new Map<string, ZodOpenApiResponseObject>();
