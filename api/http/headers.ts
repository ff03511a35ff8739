import { isIP } from "node:net";
import type { NextFunction, Request, Response } from "express";
import helmet from "helmet";
import { expectationFailed, invalidValue, noWebSocket, type ServiceError } from "#errors";
import type { Caller } from "#keys";
import type { Clock } from "#platform/clock";
import { newRequestId } from "#platform/ids";

/** The service's data for one HTTP request, in `res.locals`. */
interface Locals {
  requestId: string;
  arrivedAt: number;
  /** The caller that a dashboard session stands for. */
  sessionCaller?: Caller;
}

export const localsOf = (res: Response): Locals => res.locals as Locals;

/** `192.0.2.1:443` and `[2001:db8::1]:443`, as Azure's gateway and IIS forward them. */
const withPort = /^(?:(\d+\.\d+\.\d+\.\d+)|\[([\da-fA-F:.]+)\]):\d{1,5}$/;

/** The caller's IP address. Behind `TRUSTED_PROXIES` it is the forwarded one, without its port, if that is valid. */
export function addressOf({ ip = "", socket }: Pick<Request, "ip" | "socket">): string {
  const [, v4, v6] = withPort.exec(ip) ?? [];
  const address = v4 ?? v6 ?? ip;
  return isIP(address) === 0 ? (socket.remoteAddress ?? "") : address;
}

const exposed = [
  "x-request-id",
  "request-id",
  "retry-after",
  "x-should-retry",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-tokens",
  "x-xm-cost-usd",
  "x-ignored-params",
  "x-xm-model",
  "x-xm-upstream-key",
  "x-xm-cache",
  "x-xm-cache-age",
  "x-xm-cache-ttl",
  "x-xm-cache-source",
  "x-xm-cache-coalesced",
  "x-xm-token-count",
  "idempotent-replayed",
  "location",
  "preference-applied",
  "etag",
  "accept-ranges",
  "content-range",
  "PAYMENT-REQUIRED",
  "PAYMENT-RESPONSE",
].join(", ");

/** Creates the request id, which also names the job, the hold and the ledger entry. A caller's own id is ignored. */
export const requestId = (clock: Clock) => (_req: Request, res: Response, next: NextFunction) => {
  const id = newRequestId();
  Object.assign(res.locals, { requestId: id, arrivedAt: clock.now() } satisfies Locals);
  res.setHeader("x-request-id", id);
  next();
};

/** HTTP/1.1 requires one `Host` (RFC 9112, section 3.2): if there are two, a proxy may have checked the other. */
export function checkHead(req: Request, res: Response, next: NextFunction): void {
  const error = req.httpVersion === "1.0" ? undefined : errorOfHead(req);
  if (error) res.setHeader("connection", "close");
  next(error);
}

function errorOfHead({ rawHeaders, headers: { expect, upgrade } }: Request): ServiceError | undefined {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === "host") hosts++;
  if (hosts !== 1) return invalidValue("host", "The request must have one Host header.");
  // Clients such as Codex try a WebSocket first, and only this status makes them fall back to HTTP.
  if (upgrade !== undefined && /\bwebsocket\b/i.test(upgrade)) return noWebSocket();
  return expect === undefined || /^100-continue$/i.test(expect.trim()) ? undefined : expectationFailed();
}

/** Any web page may call, because keys are sent in headers, never in cookies. */
export function cors(req: Request, res: Response, next: NextFunction): void {
  res.setHeader("access-control-allow-origin", "*");
  res.setHeader("access-control-expose-headers", exposed);
  if (req.method !== "OPTIONS") return next();
  res.setHeader("access-control-allow-methods", "GET, POST, PATCH, DELETE, OPTIONS");
  res.setHeader("access-control-allow-headers", req.get("access-control-request-headers") ?? "*");
  res.setHeader("access-control-max-age", "86400");
  res.status(204).end();
}

/** Set on all routes. Paid routes answer programs, in JSON or events, for which the headers below mean nothing. */
export function noSniffing(_req: Request, res: Response, next: NextFunction): void {
  res.setHeader("x-content-type-options", "nosniff");
  next();
}

/** One policy for all other routes: the documentation page needs its own scripts and nothing else. */
export const security = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'self'"],
      imgSrc: ["'self'", "data:"],
      styleSrc: ["'self'", "'unsafe-inline'"],
      objectSrc: ["'none'"],
      frameAncestors: ["'none'"],
      baseUri: ["'none'"],
    },
  },
  crossOriginResourcePolicy: { policy: "cross-origin" },
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  // Set by `noSniffing`.
  xContentTypeOptions: false,
});

/** While this instance drains, callers must open a new connection for their next call. */
export const closeWhile = (draining: () => boolean) => (_req: Request, res: Response, next: NextFunction) => {
  if (draining()) res.setHeader("connection", "close");
  next();
};
