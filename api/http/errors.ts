import type { ErrorRequestHandler, Request, RequestHandler } from "express";
import { mongo } from "mongoose";
import {
  invalidValue,
  noCapacity,
  methodNotAllowed as notAllowed,
  ServiceError,
  toServiceError,
  unknownUrl,
} from "#errors";
import { type Codec, chatCodec, geminiCodec, messagesCodec } from "#formats";
import type { Uses } from "#platform/uses";
import { refuse } from "./answer.ts";
import { localsOf } from "./headers.ts";

/** The whole requested path, since routers shorten `path`, without the query, which may contain a key. */
const pathOf = ({ originalUrl }: Request): string => originalUrl.split("?", 1).join();

export const noSuchRoute: RequestHandler = (req) => {
  throw unknownUrl(req.method, pathOf(req));
};

/** The last handler of a path. `Allow` names the methods that it serves. */
export const methodNotAllowed =
  (...served: readonly string[]): RequestHandler =>
  (req, res) => {
    res.set("allow", served.join(", "));
    throw notAllowed(req.method, pathOf(req));
  };

/** Renders any error of a route in the format of its path. Unexpected errors become a 500, and their stack is logged. */
export const errorHandler =
  ({ clock, log }: Uses<"clock" | "log">): ErrorRequestHandler =>
  (thrown: unknown, req, res, next) => {
    if (res.headersSent) return next(thrown);
    const { requestId } = localsOf(res);
    // Express throws URIError for a broken percent escape in a path.
    const isBadPath = thrown instanceof URIError;
    const error = isBadPath ? invalidValue("path", "The path has an invalid percent escape.") : toServiceError(thrown);
    if (!(thrown instanceof ServiceError) && !isBadPath) log.error({ err: thrown, requestId }, "a request failed");
    refuse(clock, { req, res }, error, formatOf(req).error(error, requestId));
  };

const gemini = geminiCodec("", false, false);

/**
 * The format of errors that occur before a call has one. The path determines it; if formats share the path, the method and
 * the headers do.
 */
function formatOf(req: Request): Codec {
  const path = pathOf(req);
  if (/^\/v1beta(\/|$)/.test(path)) return gemini;
  if (/^\/v1\/messages(\/|$)/.test(path)) return messagesCodec;
  if (/^\/v1\/models(\/|$)/.test(path)) {
    // A POST below the list of models is a call in Gemini's format.
    if (req.method === "POST" && /:[A-Za-z]*$/.test(req.path)) return gemini;
    return { messages: messagesCodec, gemini, chat: chatCodec }[modelListFormat(req)];
  }
  return /^\/v1\/.*:[A-Za-z]+$/.test(path) ? gemini : chatCodec;
}

/** The format of the list of models under `/v1` (docs/api/wire-details.md, "Paths and lists"). */
export function modelListFormat(req: Request): "messages" | "gemini" | "chat" {
  if (req.headers["anthropic-version"] !== undefined) return "messages";
  const isGoogle = ["x-goog-api-key", "x-goog-api-client"].some((name) => req.headers[name] !== undefined);
  return isGoogle ? "gemini" : "chat";
}

/** The query took longer than its `maxTimeMS`. */
const maxTimeExpired = 50;

/** Turns connection errors of MongoDB and queries that take too long into a 503, instead of a 500. */
export const databaseUnavailable: ErrorRequestHandler = (error: unknown, _req, _res, next) => {
  const { MongoNetworkError, MongoNotConnectedError, MongoServerError, MongoServerSelectionError } = mongo;
  if (error instanceof MongoServerError && error.code === maxTimeExpired)
    return next(noCapacity("The database takes too long to find this right now.", 5, error));
  const isUnavailable =
    [MongoNetworkError, MongoNotConnectedError, MongoServerSelectionError].some((kind) => error instanceof kind) ||
    // Mongoose throws this class itself while it has no connection; its other errors are subclasses.
    (error instanceof Error && error.name === "MongooseError");
  next(isUnavailable ? noCapacity("The database cannot be reached right now.", 1, error) : error);
};
