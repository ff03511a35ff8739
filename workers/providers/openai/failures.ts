import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "#platform/clock";
import { type FailureKind, UpstreamFailure } from "../provider.ts";

/** What a maker says of an error, as far as it can be read. */
interface MakerError {
  readonly message?: string;
  /** The code, else the type. Some servers put the status here. */
  readonly code?: string | number;
  readonly type?: string;
  readonly param?: string;
}

/** Reads `{error: {message, code, param}}` and what compatible servers make of it. */
function readError(body: unknown): MakerError {
  // Gemini's compatible address wraps the object in an array.
  const [whole] = Array.isArray(body) ? body : [body];
  const error = fieldsOf(whole).error ?? whole;
  if (typeof error === "string") return { message: error };
  const { message, code, type, param } = fieldsOf(error);
  const kind = [code, type].find((value) => typeof value === "string" || typeof value === "number");
  return {
    ...(typeof message === "string" && { message }),
    ...((typeof kind === "string" || typeof kind === "number") && { code: kind }),
    ...(typeof type === "string" && { type }),
    ...(typeof param === "string" && { param }),
  };
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** The failure that an answer other than 200 stands for. */
export function failureOf(status: number, headers: IncomingHttpHeaders, body: unknown, clock: Clock): UpstreamFailure {
  const error = readError(body);
  const retryAfterMs = retryAfter(headers, clock);
  const kind = kindOf(status, error, retryAfterMs !== undefined);
  const text = error.message === undefined ? "" : withoutSecrets(error.message);
  if (kind === "refused") {
    const { param } = error;
    const message = text === "" ? "The upstream refused the request." : text;
    return new UpstreamFailure(kind, message, { status, ...(param !== undefined && { param }) });
  }
  return new UpstreamFailure(kind, `status ${status}${text && `: ${text}`}`, {
    status,
    ...(kind === "busy" && { retryAfterMs: retryAfterMs ?? busyMs }),
  });
}

/** The failure that an error inside a stream, in the place of an answer or of a job stands for. */
export function failureInside(body: unknown, clock: Clock): UpstreamFailure {
  const { code, type } = readError(body);
  const status = typeof code === "number" ? code : (statusOf[code ?? ""] ?? statusOf[type ?? ""] ?? 500);
  return failureOf(status, {}, body, clock);
}

/** An error that comes without a status, by its code or type. */
const statusOf: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  invalid_prompt: 400,
  content_filter: 400,
  content_policy_violation: 400,
  moderation_blocked: 400,
  image_generation_user_error: 400,
  video_generation_user_error: 400,
  context_length_exceeded: 400,
  rate_limit_exceeded: 429,
  rate_limit_error: 429,
};

/** How long to leave an upstream alone that says 429 and not for how long. */
const busyMs = 1_000;

function kindOf(status: number, { code, message = "" }: MakerError, saysWhen: boolean): FailureKind {
  // The operator has not paid: no wait helps, though OpenAI answers 429.
  if (code === "insufficient_quota" || code === "billing_hard_limit_reached") return "misconfigured";
  if (status === 429 || (status === 503 && saysWhen)) return "busy";
  if (status >= 500 || status === 408 || status === 409 || status === 425) return "unavailable";
  if (status === 400 || status === 413 || status === 415 || status === 422) {
    // Google answers 400 to a bad key.
    return code === "invalid_api_key" || /api[ _]key (not valid|invalid|expired)/i.test(message)
      ? "misconfigured"
      : "refused";
  }
  return "misconfigured";
}

/** `retry-after-ms`, or Retry-After in seconds or as a date; undefined if absent or unreadable. */
function retryAfter(headers: IncomingHttpHeaders, clock: Clock): number | undefined {
  const exact = Number.parseFloat(String(headers["retry-after-ms"]));
  if (exact >= 0) return exact;
  const text = headers["retry-after"];
  if (text === undefined) return undefined;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) * 1000 : Date.parse(text) - clock.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Makers quote keys and organizations in their messages: they are the operator's, nobody else's. */
function withoutSecrets(message: string): string {
  return message.slice(0, 2_000).replace(/\b(sk|org|proj|user|key|acct)[-_][\w*.-]{6,}/g, "$1-...");
}
