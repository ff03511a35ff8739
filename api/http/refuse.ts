import type { Request, Response } from "express";
import type { ServiceError } from "#errors";
import type { Clock } from "#platform/clock";
import { answerError, errorHeaders } from "./answer.ts";

const lingerMs = 5_000;

/**
 * Answers an error, perhaps while the body still comes. Closing at once would reset the connection, and a caller in the
 * middle of writing would lose the answer: so the whole answer goes out first, its end waits until the rest has been read
 * and thrown away, and after some seconds the connection is cut.
 */
export function refuse(clock: Clock, { req, res }: { req: Request; res: Response }, error: ServiceError, body: string) {
  if (req.complete || req.destroyed) return answerError(res, error, body);
  errorHeaders(res, error);
  const bytes = Buffer.from(body);
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
}
