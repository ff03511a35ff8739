import type { ErrorRequestHandler, Request, RequestHandler, Response, Router } from "express";
import { mongo } from "mongoose";
import { noCapacity, notFound } from "#errors";
import type { CallPage, LedgerEntry } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { type BodyReader, createBodyReader } from "./body.ts";
import { methodNotAllowed } from "./errors.ts";

/** Routes that take and answer JSON and run no model: those of operators and of accounts. */

/** Returns the body of the answer; a string is sent as it is, as the type that the handler set. */
export type Handler = (req: Request<{ id: string }>, res: Response) => Promise<object | string>;
type Method = "get" | "post" | "patch" | "delete";

const bodyLimitBytes = 100 * 1024;

interface Routes {
  readonly bodyBudget: ByteBudget;
  readonly clock: Clock;
  /** Runs before the body is read, and throws what refuses the request. Absent: the router did it. */
  readonly authorize?: RequestHandler<{ id: string }>;
  /** Whose memory a body counts against. */
  readonly payerOf: (res: Response) => Parameters<BodyReader>[2];
}

const proceed: RequestHandler<{ id: string }> = (_req, _res, next) => next();

/** Adds a route to the router: every method that has no handler is a 405. */
export function jsonRoutes(router: Router, { bodyBudget, clock, authorize = proceed, payerOf }: Routes) {
  const readBody = createBodyReader({ limitBytes: bodyLimitBytes, budget: bodyBudget, clock });
  const json: RequestHandler<{ id: string }> = async (req, res, next) => {
    const body = await readBody(req, res, payerOf(res));
    req.body = body.value;
    body.release();
    next();
  };
  return (path: string, handlers: Partial<Record<Method, Handler>>): void => {
    const at = router.route(path);
    for (const [method, handle] of Object.entries(handlers) as [Method, Handler][]) {
      const answer: RequestHandler<{ id: string }> = async (req, res) => {
        const body = await handle(req, res);
        if (typeof body === "string") res.send(body);
        else res.json(body);
      };
      if (method === "post" || method === "patch") at[method](authorize, json, answer);
      else at[method](authorize, answer);
    }
    at.all(methodNotAllowed(...Object.keys(handlers).map((method) => method.toUpperCase())));
  };
}

export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw notFound(what);
  return value;
}

export const unixSeconds = (date: Date) => Math.floor(date.getTime() / 1000);

interface Page {
  readonly limit: number;
  readonly after?: string | undefined;
}

/** Renders one page of a list. Reads one item more than the page has, to know whether there are more. */
export async function renderPage<T extends { readonly id: string }>(
  page: Page,
  read: (page: Page) => Promise<readonly T[]>,
  render: (item: T) => object,
) {
  const items = await read({ ...page, limit: page.limit + 1 });
  const data = items.slice(0, page.limit);
  const hasMore = items.length > page.limit;
  return { object: "list", data: data.map(render), has_more: hasMore, next: hasMore ? data.at(-1)?.id : null };
}

/** Renders a page of calls, which may be short of its limit though there are more. */
export const renderCalls = ({ calls, next }: CallPage, render: (entry: LedgerEntry) => object) => ({
  object: "list",
  data: calls.map(render),
  has_more: next !== undefined,
  next: next ?? null,
});

/** Every route needs MongoDB. While it is unavailable they answer a 503 that clients retry, not a 500. */
export const databaseUnavailable: ErrorRequestHandler = (error: unknown, _req, _res, next) => {
  const { MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError } = mongo;
  const isUnavailable =
    [MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError].some((kind) => error instanceof kind) ||
    // Mongoose throws this class itself while it has no connection; its other errors are subclasses.
    (error instanceof Error && error.name === "MongooseError");
  next(isUnavailable ? noCapacity("The database cannot be reached right now.", 1, error) : error);
};
