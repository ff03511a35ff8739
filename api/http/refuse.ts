import type { Request, Response } from "express";
import type { ServiceError } from "#errors";
import type { Clock } from "#platform/clock";
import { answerError, errorHeaders } from "./answer.ts";

const lingerMs = 5_000;

/**
 * Answers an error, perhaps while the body is still arriving. Closing at once would reset the connection, and a caller in the
 * middle of writing would lose the answer. So the whole answer is written first, the response ends when the rest of the body
 * has been read and dropped, and after some seconds the connection is cut.
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
  // A reader that stopped in the middle of a read still listens, and would block the flow.
  req.removeAllListeners("readable").resume();
}
