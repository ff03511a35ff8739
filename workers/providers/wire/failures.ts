import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "#platform/clock";
import { type FailureKind, UpstreamFailure } from "../provider.ts";
import { googleStatuses, readGoogleError } from "./google-error.ts";

/** What a provider says of an error, as far as it can be read. */
interface ProviderError {
  readonly message?: string;
  /** The code, else the type. Some servers put the status here. */
  readonly code?: string | number;
  readonly type?: string;
  readonly param?: string;
  /** Anthropic's and Google's: what the type leaves open. */
  readonly detail?: string;
  /** Google's, who has no header for it. */
  readonly retryAfterMs?: number;
}

/** Reads `{error: {message, code, param}}` and what compatible servers make of it. */
function readError(body: unknown): ProviderError {
  // Gemini's compatible address wraps the object in an array.
  const [whole] = Array.isArray(body) ? body : [body];
  const error = fieldsOf(whole).error ?? whole;
  if (typeof error === "string") return { message: error };
  const { message, code, type, param, details } = fieldsOf(error);
  const detail = fieldsOf(details).error_code;
  const kind = [code, type].find((value) => typeof value === "string" || typeof value === "number");
  return {
    ...readGoogleError(fieldsOf(error)),
    ...(typeof message === "string" && { message }),
    ...((typeof kind === "string" || typeof kind === "number") && { code: kind }),
    ...(typeof type === "string" && { type }),
    ...(typeof param === "string" && { param }),
    ...(typeof detail === "string" && { detail }),
  };
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** The failure that an answer other than 200 stands for. */
export function failureOf(status: number, headers: IncomingHttpHeaders, body: unknown, clock: Clock): UpstreamFailure {
  const error = readError(body);
  const retryAfterMs = retryAfter(headers, clock) ?? error.retryAfterMs;
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
  const status = typeof code === "number" && code >= 100 ? code : (statusOf.get(code) ?? statusOf.get(type) ?? 500);
  return failureOf(status, {}, body, clock);
}

/** Anthropic's own: all of its callers together are too many. */
const overloaded = 529;

/** An error that comes without a status, by its code or type. */
const statusOf: ReadonlyMap<unknown, number> = new Map(
  Object.entries({
    // OpenAI, and who follows it.
    invalid_request_error: 400,
    invalid_prompt: 400,
    content_filter: 400,
    content_policy_violation: 400,
    moderation_blocked: 400,
    image_generation_user_error: 400,
    video_generation_user_error: 400,
    context_length_exceeded: 400,
    rate_limit_exceeded: 429,
    // Of its responses.
    bio_policy: 400,
    misalignment_policy_violation: 400,
    image_content_policy_violation: 400,
    invalid_image: 400,
    invalid_image_format: 400,
    invalid_base64_image: 400,
    invalid_image_url: 400,
    invalid_image_mode: 400,
    image_too_large: 400,
    image_too_small: 400,
    image_parse_error: 400,
    image_file_too_large: 400,
    image_file_not_found: 400,
    unsupported_image_media_type: 400,
    empty_image_file: 400,
    failed_to_download_image: 400,
    data_residency_mismatch: 403,
    // Anthropic.
    authentication_error: 401,
    billing_error: 402,
    permission_error: 403,
    not_found_error: 404,
    request_too_large: 413,
    rate_limit_error: 429,
    timeout_error: 504,
    overloaded_error: overloaded,
    ...googleStatuses,
  }),
);

/** How long to leave an upstream alone that says 429 and not for how long. */
const busyMs = 1_000;

/** The operator's account is empty, at a limit of its own, or closed. Anthropic says it with 400, as an invalid request. */
const accountDetails = /^(\w+_spend_limit_reached|organization_on_hold|cmek_key_(disabled|network_blocked))$/;
const accountTexts =
  /^(your credit balance is too low|you have reached your specified (\w+ )?api usage limits|this organization has been disabled)/i;

function kindOf(
  status: number,
  { code, type, message = "", detail = "" }: ProviderError,
  saysWhen: boolean,
): FailureKind {
  // No wait helps, though OpenAI answers 429.
  if (code === "insufficient_quota" || code === "billing_hard_limit_reached") return "misconfigured";
  if (status < 500 && (accountDetails.test(detail) || accountTexts.test(message))) return "misconfigured";
  if (status === 429 || status === overloaded || (status === 503 && saysWhen)) return "busy";
  if (status === 504) return "timeout";
  if (status >= 500 || status === 408 || status === 409 || status === 425) return "unavailable";
  if (status === 400 || status === 413 || status === 415 || status === 422) {
    // Google answers 400 to a bad key, and where the operator's place or payment is at fault.
    return code === "invalid_api_key" ||
      type === "FAILED_PRECONDITION" ||
      detail === "API_KEY_INVALID" ||
      /api[ _]key (not valid|invalid|expired)/i.test(message)
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

/** Providers quote keys and organizations in their messages: they are the operator's, nobody else's. */
function withoutSecrets(message: string): string {
  return (
    message
      .slice(0, 2_000)
      .replace(/\b(sk|org|proj|user|key|acct)[-_][\w*.-]{6,}/g, "$1-...")
      .replace(/\b(AIza|AQ\.|r8_)[\w-]{6,}/g, "$1...")
      // fal's: an id and a secret.
      .replace(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:[\da-f]{8,}/g, "...")
  );
}
