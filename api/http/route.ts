import { type Request, type RequestHandler, type Response, Router } from "express";
import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import type { Scope } from "#key-records";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { type BodyOwner, createBodyReader } from "./body.ts";
import { databaseUnavailable, methodNotAllowed } from "./errors.ts";
import { type Answer, inputFields } from "./fields.ts";
import { parse } from "./input.ts";
import type { Content, Examples } from "./openapi/operation.ts";

/**
 * Routes that take and answer JSON and run no model. The definition of a route yields its validation, the rendering of its
 * answer, its operation in the OpenAPI document, and the errors described there.
 */

type Shape = Readonly<Record<string, z.ZodType>>;
type Values<Fields extends Shape> = z.output<ReturnType<typeof inputFields<Fields>>>;

/** One parsed request. `who` is its caller, or the operator. */
export interface RouteCall<Who, Params = unknown, Query = unknown, Body = unknown> {
  readonly who: Who;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly req: Request;
  readonly res: Response;
}

const methods = ["get", "post", "patch", "delete"] as const;

interface Definition<
  Deps,
  Who,
  Params extends Shape,
  Query extends Shape,
  Body extends z.ZodType,
  Shown extends z.ZodType,
> {
  readonly method: (typeof methods)[number];
  /** The path in OpenAPI's notation: `/v1/keys/{id}`. */
  readonly path: string;
  /** Generated clients derive the names of their methods from it. */
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** The scope that a key must have. */
  readonly scope?: Scope;
  readonly params?: Params;
  /** Unknown parameters are refused. A route that omits this ignores all parameters. */
  readonly query?: Query;
  /** Request headers, for the OpenAPI document. */
  readonly headers?: z.ZodObject;
  /** Requests that the service makes because of this one, for the document. */
  readonly callbacks?: ZodOpenApiOperationObject["callbacks"];
  readonly body?: Body;
  /** Bodies that succeed, for the document and its tests. */
  readonly examples?: Examples;
  /** Describes a body that the handler reads itself. */
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  /** The first status is that of the answer unless the handler sets another. */
  readonly answers: Readonly<Record<number, string>>;
  readonly answer: Shown;
  readonly answerHeaders?: z.ZodObject;
  /** Content types other than JSON, which the handler returns as text. */
  readonly otherTypes?: Content;
  /** Statuses of errors that do not follow from the rest: a conflict, or a lookup by something other than the path. */
  readonly errors?: readonly number[];
  handle(
    deps: Deps,
    call: RouteCall<Who, { readonly [Name in keyof Params]: string }, Values<Query>, z.output<Body>>,
  ): Promise<Answer<z.output<Shown>> | string>;
}

export type Route<Deps, Who> = Definition<Deps, Who, Shape, Shape, z.ZodType, z.ZodType>;

/** Returns the function that defines the routes of one interface. Their handlers receive `Deps`. */
export const routeOf =
  <Deps, Who>() =>
  <
    Params extends Shape = Record<never, never>,
    Query extends Shape = Record<never, never>,
    Body extends z.ZodType = z.ZodUnknown,
    Shown extends z.ZodType = z.ZodType,
  >(
    definition: Definition<Deps, Who, Params, Query, Body, Shown>,
  ): Route<Deps, Who> =>
    definition as unknown as Route<Deps, Who>;

/** The routes of one kind of object. */
export interface Resource<Deps, Who> {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route<Deps, Who>[];
  /** Operations of routes that do not answer with JSON alone. */
  readonly operations?: Readonly<Record<string, ZodOpenApiOperationObject>>;
}

interface Access<Deps, Who> {
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
  /** Runs first, even for paths that have no route. */
  readonly before?: RequestHandler;
  /** Runs before the body is read; throws to refuse the request. */
  readonly authorize: (req: Request, res: Response, route: Route<Deps, Who>) => Who | Promise<Who>;
  /** The owner of the memory that a body takes. */
  readonly payerOf: (who: Who) => BodyOwner;
  /** Wraps the handler and the rendering of its answer. */
  readonly perform?: (
    route: Route<Deps, Who>,
    call: RouteCall<Who, Readonly<Record<string, string>>>,
    run: () => Promise<object | string>,
  ) => Promise<object | string>;
}

const bodyLimitBytes = 100 * 1024;
/** Returns true if the route has a body, which it or its handler reads. */
export const readsBody = ({ body, requestBody }: Pick<Route<never, never>, "body" | "requestBody">): boolean =>
  body !== undefined || requestBody !== undefined;

/** Answers 405 for methods that a path has no route for. */
export function routerOf<Deps, Who>(
  routes: readonly Route<Deps, Who>[],
  deps: Deps,
  { bodyBudget, clock, before, authorize, payerOf, perform = (_route, _call, run) => run() }: Access<Deps, Who>,
): Router {
  const router = Router();
  if (before) router.use(before);
  const readBody = createBodyReader({ limitBytes: bodyLimitBytes, budget: bodyBudget, clock });

  async function bodyOf(req: Request, res: Response, who: Who): Promise<unknown> {
    const body = await readBody(req, res, payerOf(who));
    const { value } = body;
    body.release();
    return value;
  }

  function serve(route: Route<Deps, Who>): RequestHandler {
    const { body: bodySchema, answer: answerSchema, query } = route;
    const querySchema = query && inputFields(query);
    const status = Number(Object.keys(route.answers)[0]);
    return async (req, res) => {
      const who = (await authorize(req, res, route)) as Who;
      if (bodySchema && !route.requestBody) req.body = await bodyOf(req, res, who);
      const call = {
        who,
        params: req.params as Record<string, string>,
        query: querySchema ? parse(querySchema, req.query) : {},
        body: bodySchema && (parse(bodySchema, req.body) as unknown),
        req,
        res,
      };
      res.status(status);
      const answer = await perform(route, call, async () => {
        const value = await route.handle(deps, call);
        return typeof value === "string" ? value : (z.encode(answerSchema, value) as object);
      });
      if (typeof answer === "string") res.send(answer);
      else res.json(answer);
    };
  }

  for (const [path, atPath] of Map.groupBy(routes, ({ path }) => path)) {
    const at = router.route(path.replaceAll(/\{(\w+)\}/g, ":$1"));
    for (const route of atPath) at[route.method](serve(route));
    const served = methods.filter((method) => atPath.some((route) => route.method === method));
    // Express serves HEAD with the handler of GET.
    at.all(
      methodNotAllowed(...served.flatMap((method) => (method === "get" ? ["GET", "HEAD"] : method.toUpperCase()))),
    );
  }
  router.use(databaseUnavailable);
  return router;
}
