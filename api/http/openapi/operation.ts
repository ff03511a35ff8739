import { z } from "zod";
import type { ZodOpenApiMediaTypeObject, ZodOpenApiOperationObject } from "zod-openapi";
import answers from "./answers.json" with { type: "json" };
import { type ErrorFormat, errorResponse } from "./errors.ts";
import { requestId } from "./headers.ts";

/** Recorded answers to the first example of each operation (test/integration/openapi-answers.test.ts). */
const recorded: Readonly<Record<string, unknown>> = answers;
export const exampleOf = (operationId: string) => (operationId in recorded ? { example: recorded[operationId] } : {});

/** The operations of one tag, by method and path: `POST /v1/...`. */
export interface Group {
  readonly name: string;
  readonly description: string;
  readonly operations: Readonly<Record<string, ZodOpenApiOperationObject>>;
}

/** The `paths` of a document. */
export function pathsOf(groups: readonly Group[]) {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const { name: tag, operations } of groups)
    for (const [name, described] of Object.entries(operations)) {
      const [method = "", path = ""] = name.split(" ");
      paths[path] = { ...paths[path], [method.toLowerCase()]: { tags: [tag], ...described } };
    }
  return paths;
}

export interface Details {
  readonly description?: string;
  readonly security?: Record<string, string[]>[];
  readonly params?: { readonly path?: z.ZodObject; readonly query?: z.ZodObject; readonly header?: z.ZodObject };
  /** A required JSON body, with examples that succeed; `requestBody` describes any other. */
  readonly body?: z.ZodType;
  readonly examples?: Examples;
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  /** The 200 response in JSON, or in JSON and as events. */
  readonly ok?: Ok;
  readonly okOrEvents?: Ok;
  /** The data of each event. */
  readonly event?: z.ZodType;
  readonly errors?: readonly number[];
  readonly errorFormat?: ErrorFormat;
  /** A call that costs money or counts tokens: its answers have the key's limits. */
  readonly isCall?: boolean;
  /** Requests that the service makes because of this one. */
  readonly callbacks?: ZodOpenApiOperationObject["callbacks"];
  /** Responses that the other fields do not describe. */
  readonly responses?: ZodOpenApiOperationObject["responses"];
}

export type Content = Record<string, ZodOpenApiMediaTypeObject>;
export type Examples = Record<string, { readonly summary: string; readonly value: unknown }>;
type Ok = readonly [description: string, schema: z.ZodType, headers?: z.ZodObject];

export const json = (schema: z.ZodType, more: Omit<ZodOpenApiMediaTypeObject, "schema"> = {}): Content => ({
  "application/json": { schema, ...more },
});

export function operation(operationId: string, summary: string, details: Details): ZodOpenApiOperationObject {
  const { description, security, params, body, examples, ok, okOrEvents, event = z.string() } = details;
  const { errors = [], errorFormat = "common", isCall = false, responses } = details;
  const requestBody =
    details.requestBody ?? (body && { required: true, content: json(body, examples && { examples }) });
  const answer = ok ?? okOrEvents;
  const [meaning = "", schema = z.unknown(), headers = z.object(requestId)] = answer ?? [];
  const content = {
    ...json(schema, exampleOf(operationId)),
    ...(okOrEvents && { "text/event-stream": { schema: event } }),
  };
  return {
    operationId,
    summary,
    ...(description && { description }),
    ...(security && { security }),
    ...(params && { requestParams: params }),
    ...(requestBody && { requestBody }),
    ...(details.callbacks && { callbacks: details.callbacks }),
    responses: {
      ...(answer && { "200": { description: meaning, headers, content } }),
      ...Object.fromEntries(errors.map((status) => [status, errorResponse(status, errorFormat, isCall)])),
      ...responses,
    },
  };
}

export const pathId = (example: string) => ({ path: z.object({ id: z.string().meta({ example }) }) });
export const binary = z.string().meta({ format: "binary" });
