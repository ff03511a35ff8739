import { z } from "zod";
import type { Clock } from "#platform/clock";
import { AddressRefused } from "#platform/receiver-addresses";
import type { Secrets } from "#secrets";
import type { AttemptOutcome, ClaimedDelivery, WebhookAttempt } from "#webhooks";
import { retryAfter } from "../providers/http/failures.ts";
import { type PostAnswer, type SafePost, TimedOut } from "../providers/http/safe-fetch.ts";
import { sign } from "./signature.ts";

const timeoutMs = 15_000;
const limitBytes = 4_096;
const snippetBytes = 1_024;
const maxHeaderCharacters = 200;

const [second, minute, hour] = [1_000, 60_000, 3_600_000];
/** The pauses between ten attempts, 75 hours in all: those that the specification proposes. */
const pausesMs = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];
const jitter = 0.2;
const maxRetryAfterMs = 24 * hour;

export interface AttemptDeps {
  readonly safePost: Pick<SafePost, "post">;
  readonly secrets: Pick<Secrets, "open">;
  readonly clock: Clock;
  /** From 0 to 1, exclusive. */
  readonly random: () => number;
}

const headersShape = z.record(z.string(), z.string());

/** Opens the secrets and the customer's headers. The headers that we set cannot be replaced by them. */
async function headersOf({ secrets, clock }: AttemptDeps, delivery: ClaimedDelivery, body: string) {
  const { account, sealedAs, webhookId, type, attempt } = delivery;
  const open = (sealed: string) => secrets.open(account, sealedAs, sealed);
  const keys = await Promise.all(delivery.secrets.map(open));
  const own = delivery.headers === undefined ? {} : headersShape.parse(JSON.parse(await open(delivery.headers)));
  const timestamp = Math.floor(clock.now() / 1_000);
  return {
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name.toLowerCase(), value])),
    "content-type": "application/json",
    "accept-encoding": "identity",
    "user-agent": "inference-service-webhooks/1.0",
    "webhook-id": webhookId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": sign(keys, webhookId, timestamp, body),
    "x-xm-event": type,
    "x-xm-attempt": String(attempt),
  };
}

/** Texts for errors of connections by their code. Other errors may name addresses inside. */
const texts: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the host",
  UND_ERR_CONNECT_TIMEOUT: "connecting timed out",
  // These two come from the proxy of WEBHOOK_PROXY_URL only.
  UND_ERR_HEADERS_TIMEOUT: "connecting timed out",
  UND_ERR_ABORTED: "our proxy refused the connection",
  UND_ERR_SOCKET: "connection closed without an answer",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too large",
};

function textOf(error: unknown): string {
  if (error instanceof TimedOut) return `no answer within ${timeoutMs / 1_000} seconds`;
  if (error instanceof AddressRefused) return `the address ${error.message}`;
  const { code = "" } = error as NodeJS.ErrnoException;
  const isOfTls = /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO)/.test(code);
  return texts[code] ?? (isOfTls ? `TLS: ${code}` : "connection failed");
}

const isSuccess = (status: number) => status >= 200 && status < 300;

/** The outcome of an attempt without success. */
function afterFailure(
  { clock, random }: AttemptDeps,
  { attempt, isTest }: ClaimedDelivery,
  answer: PostAnswer | undefined,
): AttemptOutcome {
  if (answer?.status === 410) return { kind: "gone" };
  const pauseMs = pausesMs[attempt - 1];
  if (isTest || pauseMs === undefined) return { kind: "failed" };
  const jitteredMs = pauseMs * (1 - jitter + 2 * jitter * random());
  const askedMs = (answer && retryAfter(answer.headers, clock)) ?? 0;
  return { kind: "retry", at: new Date(clock.now() + Math.max(jitteredMs, Math.min(askedMs, maxRetryAfterMs))) };
}

const header = (value: string | undefined) => value?.slice(0, maxHeaderCharacters);

/**
 * Makes one attempt at a delivery. Whatever the receiver does is an outcome. Rejects if the secrets cannot be opened, which
 * is no fault of the receiver: nothing was sent then.
 */
export async function attemptDelivery(
  deps: AttemptDeps,
  delivery: ClaimedDelivery,
): Promise<{ attempt: WebhookAttempt; outcome: AttemptOutcome }> {
  const { clock, safePost } = deps;
  const { url, body, secrets } = delivery;
  const at = clock.now();
  const lost = body === undefined ? "the body was deleted" : secrets.length === 0 ? "there is no secret" : undefined;
  if (body === undefined || lost !== undefined)
    return { attempt: { at: new Date(at), durationMs: 0, error: lost }, outcome: { kind: "failed" } };
  const headers = await headersOf(deps, delivery, body);
  let answer: PostAnswer | undefined;
  let error: string | undefined;
  try {
    answer = await safePost.post({ url, headers, body, timeoutMs, limitBytes });
    if (!isSuccess(answer.status)) error = `status ${answer.status}`;
  } catch (thrown) {
    error = textOf(thrown);
  }
  const attempt = {
    at: new Date(at),
    durationMs: clock.now() - at,
    error,
    ...(answer && {
      statusCode: answer.status,
      responseSnippet: answer.start.subarray(0, snippetBytes).toString(),
      contentType: header(answer.headers["content-type"]),
      retryAfter: header(answer.headers["retry-after"]),
    }),
  };
  return {
    attempt,
    outcome: error === undefined ? { kind: "delivered" } : afterFailure(deps, delivery, answer),
  };
}
