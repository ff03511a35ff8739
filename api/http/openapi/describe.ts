import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { wireOf } from "../fields.ts";
import { type Resource, type Route, readsBody } from "../route.ts";
import { messagesRequestId, requestId } from "./headers.ts";
import { type Details, exampleOf, type Group, json, operation } from "./operation.ts";

/** Properties shared by all routes of an interface. */
interface Interface {
  /** Errors of every request: authentication, rate limits, and stores that are unavailable. */
  readonly errors: readonly number[];
  readonly errorFormat?: Details["errorFormat"];
  readonly security?: Details["security"];
  /** Tests record answers to the examples. */
  readonly isRecorded?: boolean;
}

/** The operations of a resource in the OpenAPI document. */
export function groupOf<Deps, Who>(
  { name, description, routes, operations: others }: Resource<Deps, Who>,
  described: Interface,
): Group {
  const operations = Object.fromEntries(
    routes.map((route) => [`${route.method.toUpperCase()} ${route.path}`, operationOf(route, described)]),
  );
  return { name, description, operations: { ...operations, ...others } };
}

function operationOf<Deps, Who>(
  route: Route<Deps, Who>,
  { errors, errorFormat, security, isRecorded = false }: Interface,
): ZodOpenApiOperationObject {
  const { operationId, summary, description, params, query, body, examples, answers, otherTypes } = route;
  const ids = { ...requestId, ...(errorFormat === "messages" && messagesRequestId) };
  const { headers, callbacks, requestBody, answerHeaders = z.object(ids) } = route;
  const content = { ...json(wireOf(route.answer), isRecorded ? exampleOf(operationId) : {}), ...otherTypes };
  const responses = Object.entries(answers).map(([status, meaning]) => [
    status,
    { description: meaning, headers: answerHeaders, content },
  ]);
  return operation(operationId, summary, {
    ...(description && { description }),
    ...(errorFormat && { errorFormat }),
    ...(security && { security }),
    ...((params || query || headers) && {
      params: {
        ...(params && { path: z.object(params) }),
        ...(query && { query: z.object(query) }),
        ...(headers && { header: headers }),
      },
    }),
    ...(body && { body }),
    ...(requestBody && { requestBody }),
    ...(examples && { examples }),
    ...(callbacks && { callbacks }),
    errors: [
      ...errors,
      ...(query || readsBody(route) ? [400] : []),
      ...(readsBody(route) ? bodyErrors : []),
      ...(route.scope ? [403] : []),
      ...(params ? [404] : []),
      ...(route.errors ?? []),
    ],
    responses: Object.fromEntries(responses) as ZodOpenApiOperationObject["responses"],
  });
}

/** A body that cannot be read: too slow, too large, or of another type. */
const bodyErrors = [408, 413, 415];
