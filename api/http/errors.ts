import type { ErrorRequestHandler, RequestHandler } from "express";
import { invalidValue, methodNotAllowed as notAllowed, ServiceError, toServiceError, unknownUrl } from "#errors";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { localsOf } from "./headers.ts";
import { refuse } from "./refuse.ts";
import { errorBody, pathOf } from "./shape.ts";

export const noSuchRoute: RequestHandler = (req) => {
  throw unknownUrl(req.method, pathOf(req));
};

/** The last handler of a path: what it does serve goes out as `Allow`. */
export const methodNotAllowed =
  (...served: readonly string[]): RequestHandler =>
  (req, res) => {
    res.set("allow", served.join(", "));
    throw notAllowed(req.method, pathOf(req));
  };

/** Renders whatever a route threw, in the shape of its path. A defect is logged with its stack and answered as 500. */
export const errorHandler =
  ({ clock, log }: { clock: Clock; log: Logger }): ErrorRequestHandler =>
  (thrown: unknown, req, res, next) => {
    if (res.headersSent) return next(thrown);
    const { requestId } = localsOf(res);
    // Express throws URIError for a broken percent escape in a path.
    const broken = thrown instanceof URIError;
    const error = broken ? invalidValue("path", "The path holds a broken percent escape.") : toServiceError(thrown);
    if (!(thrown instanceof ServiceError) && !broken) log.error({ err: thrown, requestId }, "a request failed");
    refuse(clock, { req, res }, error, errorBody(req, error, requestId));
  };
