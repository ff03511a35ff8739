import { createServer, type RequestListener, type ServerOptions } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { headersTooLarge, invalidValue, requestTimeout, type ServiceError } from "#errors";
import { chatCodec } from "#formats";
import type { Clock } from "#platform/clock";
import { newRequestId } from "#platform/ids";
import { trackConnections } from "./connections.ts";

/** Long enough for 95 MB at 80 KB/s. */
const uploadTimeoutMs = 1_200_000;
/** Wait before closing: a caller who is still writing would lose the answer. */
const lingerMs = 1_000;

/**
 * Calls have their own deadlines and streams their own pings. Node's default limits would cut long uploads and idle callers.
 */
const limits = { keepAliveTimeout: 65_000, requestTimeout: uploadTimeoutMs, headersTimeout: 60_000 };

/**
 * Creates the HTTP server. It does not limit connections: one caller could use up such a limit as well as all descriptors.
 * The proxy limits them by address. `own` overrides the limits in tests.
 *
 * Errors that Node would answer without a body are answered by the app or here, like any other error.
 */
export function createListener(app: RequestListener, clock: Clock, own: ServerOptions = {}) {
  // The app checks `Host`.
  const server = createServer({ ...limits, requireHostHeader: false, ...own });
  // `Expect: 100-continue` is answered when the body is about to be read, so that a refused one is never sent.
  const connections = trackConnections(server, app, clock);
  const ended = new WeakSet<Duplex>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (ended.has(socket)) return;
    ended.add(socket);
    const current = connections.unfinished(socket as Socket);
    // A second answer would be read as part of the one that has begun.
    const isAnswering = current.some(({ headersSent }) => headersSent);
    const canAnswer = socket.writable && error.code !== "ECONNRESET" && !isAnswering;
    if (canAnswer) socket.end(answerTo(error));
    // Current requests must end now.
    if (!canAnswer || current.length > 0) return void socket.destroy(error);
    const cancel = clock.after(lingerMs, () => socket.destroy());
    socket.once("close", cancel);
  });
  return { server, connections };
}

/** Maps the error codes of Node's HTTP parser. */
function errorOf({ code }: NodeJS.ErrnoException): ServiceError {
  if (code === "HPE_HEADER_OVERFLOW") return headersTooLarge();
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return requestTimeout("The request did not arrive in time.");
  return invalidValue(undefined, "The request is not valid HTTP.");
}

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
};

/** Renders the error in the common format, because the path, which determines the caller's format, may be unknown. */
function answerTo(cause: NodeJS.ErrnoException): string {
  const requestId = newRequestId();
  const error = errorOf(cause);
  const body = chatCodec.error(error, requestId);
  return [
    `HTTP/1.1 ${error.status} ${reasons[error.status]}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    "access-control-allow-origin: *",
    "connection: close",
    "",
    body,
  ].join("\r\n");
}
