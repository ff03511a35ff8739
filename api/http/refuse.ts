import type { ErrorRequestHandler } from "express";
import { toServiceError } from "#errors";
import { commonError } from "#formats";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { errorHeaders } from "./answer.ts";
import { localsOf } from "./headers.ts";

const lingerMs = 5_000;

/**
 * Answers an error while the body still comes. Closing at once would reset the connection, and a caller in the middle of
 * writing would lose the answer: so the whole answer goes out first, its end waits until the rest has been read and
 * thrown away, and after some seconds the connection is cut. Errors after the body are left to the next handler.
 */
export const refuseEarly =
  ({ clock, log }: { clock: Clock; log: Logger }): ErrorRequestHandler =>
  (thrown: unknown, req, res, next) => {
    if (req.complete || req.destroyed || res.headersSent || thrown instanceof URIError) return next(thrown);
    const { requestId } = localsOf(res);
    const error = toServiceError(thrown);
    if (error.status >= 500) log.error({ err: thrown, requestId }, "an upload failed");
    errorHeaders(res, error);
    const bytes = Buffer.from(JSON.stringify(commonError(error, requestId)));
    res.set({
      connection: "close",
      "content-type": "application/json; charset=utf-8",
      "content-length": String(bytes.length),
    });
    res.write(bytes);

    const cancel = clock.after(lingerMs, () => req.socket.destroy());
    const end = () => {
      cancel();
      if (!res.writableEnded) res.end();
    };
    req.once("end", end).once("error", end).once("close", end);
    // A reader that gave up in the middle of a read still listens, and nothing would flow.
    req.removeAllListeners("readable").resume();
  };
