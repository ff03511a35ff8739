import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { wireOf } from "../fields.ts";
import { hasBody, type Resource, type Route } from "../route.ts";
import { requestId } from "./headers.ts";
import { exampleOf, type Group, json, operation } from "./operation.ts";

/** Properties shared by all routes of an interface. */
interface Interface {
  /** Errors of every request: authentication, rate limits, and stores that are unavailable. */
  readonly errors: readonly number[];
  /** Tests record answers to the examples. */
  readonly isRecorded?: boolean;
}

/** The operations of a resource in the OpenAPI document. */
export function groupOf<Deps, Who>({ name, description, routes }: Resource<Deps, Who>, described: Interface): Group {
  const operations = Object.fromEntries(
    routes.map((route) => [`${route.method.toUpperCase()} ${route.path}`, operationOf(route, described)]),
  );
  return { name, description, operations };
}

function operationOf<Deps, Who>(
  route: Route<Deps, Who>,
  { errors, isRecorded = false }: Interface,
): ZodOpenApiOperationObject {
  const { operationId, summary, description, params, query, body, examples, answers, otherTypes } = route;
  const { headers, requestBody, answerHeaders = z.object(requestId) } = route;
  const content = { ...json(wireOf(route.answer), isRecorded ? exampleOf(operationId) : {}), ...otherTypes };
  const responses = Object.entries(answers).map(([status, meaning]) => [
    status,
    { description: meaning, headers: answerHeaders, content },
  ]);
  return operation(operationId, summary, {
    ...(description && { description }),
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
    errors: [
      ...errors,
      ...(query || hasBody(route) ? [400] : []),
      ...(hasBody(route) ? bodyErrors : []),
      ...(route.scope ? [403] : []),
      ...(params ? [404] : []),
      ...(route.errors ?? []),
    ],
    responses: Object.fromEntries(responses) as ZodOpenApiOperationObject["responses"],
  });
}

/** A body that cannot be read: too slow, too large, or of another type. */
const bodyErrors = [408, 413, 415];
