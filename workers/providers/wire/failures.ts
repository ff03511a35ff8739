import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "#platform/clock";
import { type FailureKind, type JsonObject, UpstreamFailure } from "../provider.ts";
import { isObject } from "./json.ts";

/** The fields of a provider's error that decide what becomes of the call. */
interface ProviderError {
  readonly message: string | undefined;
  /** The code, else the type. Some servers put the HTTP status here. */
  readonly code: string | number | undefined;
  readonly type: string | undefined;
  readonly param: string | undefined;
  /** The reason within the type, of Anthropic and Google. */
  readonly detail: string | undefined;
  /** Of Google, which sends no header for it. */
  readonly retryAfterMs: number | undefined;
}

const fieldsOf = (value: unknown): JsonObject => (isObject(value) ? value : {});
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Reads `{error: {message, code, param}}` and its variants on compatible servers. */
function readError(body: unknown): ProviderError {
  // Gemini's compatible address wraps the object in an array.
  const [whole] = Array.isArray(body) ? body : [body];
  const error = fieldsOf(whole).error ?? whole;
  const fields = fieldsOf(error);
  const google = readGoogleError(fields);
  const code = [fields.code, fields.type].find((value) => typeof value === "string" || typeof value === "number");
  return {
    message: textOf(error) ?? textOf(fields.message),
    code: typeof code === "number" ? code : textOf(code),
    type: textOf(fields.type) ?? google.type,
    param: textOf(fields.param),
    detail: textOf(fieldsOf(fields.details).error_code) ?? google.detail,
    retryAfterMs: google.retryAfterMs,
  };
}

const googleCodes: Readonly<Record<number, string>> = {
  3: "INVALID_ARGUMENT",
  4: "DEADLINE_EXCEEDED",
  5: "NOT_FOUND",
  7: "PERMISSION_DENIED",
  8: "RESOURCE_EXHAUSTED",
  9: "FAILED_PRECONDITION",
  13: "INTERNAL",
  14: "UNAVAILABLE",
  16: "UNAUTHENTICATED",
};

/** https://cloud.google.com/apis/design/errors, https://ai.google.dev/gemini-api/docs/troubleshooting */
function readGoogleError({ status, code, details }: JsonObject) {
  const infos = Array.isArray(details) ? details.map(fieldsOf) : [];
  const delay = infos.map((info) => textOf(info.retryDelay)).find((value) => value !== undefined);
  const seconds = Number(/^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(delay ?? "")?.[1]);
  return {
    type: textOf(status) ?? (typeof code === "number" ? googleCodes[code] : undefined),
    detail: infos.map((info) => textOf(info.reason)).find((value) => value !== undefined),
    retryAfterMs: seconds >= 0 ? Math.round(seconds * 1000) : undefined,
  };
}

/** The failure of an answer whose status is not a success. */
export function failureOf(status: number, headers: IncomingHttpHeaders, body: unknown, clock: Clock): UpstreamFailure {
  const error = readError(body);
  const retryAfterMs = retryAfter(headers, clock) ?? error.retryAfterMs;
  const kind = kindOf(status, error, retryAfterMs !== undefined);
  const text = withoutSecrets(error.message ?? "");
  if (kind === "refused")
    return new UpstreamFailure(kind, text || "The upstream refused the request.", { status, param: error.param });
  return new UpstreamFailure(kind, `status ${status}${text && `: ${text}`}`, {
    status,
    retryAfterMs: kind === "busy" ? (retryAfterMs ?? defaultRetryMs) : undefined,
  });
}

/** The failure of an error that has no status: in a stream, in place of an answer, or of a job. */
export function failureInside(body: unknown, clock: Clock): UpstreamFailure {
  const { code, type } = readError(body);
  const status = typeof code === "number" && code >= 100 ? code : (statusOf.get(code) ?? statusOf.get(type) ?? 500);
  return failureOf(status, {}, body, clock);
}

/** Anthropic's status for an overload by all of its callers together. */
const overloaded = 529;

/** The status of an error that has none, by its code or type. */
const statusOf: ReadonlyMap<unknown, number> = new Map(
  Object.entries({
    // OpenAI and compatible servers.
    invalid_request_error: 400,
    invalid_prompt: 400,
    content_filter: 400,
    content_policy_violation: 400,
    moderation_blocked: 400,
    image_generation_user_error: 400,
    video_generation_user_error: 400,
    context_length_exceeded: 400,
    rate_limit_exceeded: 429,
    // OpenAI, in responses.
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
    // Google; `invalid_request` is of its interactions.
    invalid_request: 400,
    INVALID_ARGUMENT: 400,
    FAILED_PRECONDITION: 400,
    UNAUTHENTICATED: 401,
    PERMISSION_DENIED: 403,
    NOT_FOUND: 404,
    RESOURCE_EXHAUSTED: 429,
    INTERNAL: 500,
    UNAVAILABLE: 503,
    DEADLINE_EXCEEDED: 504,
  }),
);

/** The cooldown of an upstream that answers 429 without a Retry-After. */
const defaultRetryMs = 1_000;

/** The operator's account is empty, at its own limit, or closed. Anthropic answers 400 then, as for an invalid request. */
const accountDetails = /^(\w+_spend_limit_reached|organization_on_hold|cmek_key_(disabled|network_blocked))$/;
const accountTexts =
  /^(your credit balance is too low|you have reached your specified (\w+ )?api usage limits|this organization has been disabled)/i;

function kindOf(
  status: number,
  { code, type, message = "", detail = "" }: ProviderError,
  hasRetryAfter: boolean,
): FailureKind {
  // OpenAI answers 429, but waiting does not help.
  if (code === "insufficient_quota" || code === "billing_hard_limit_reached") return "misconfigured";
  if (status < 500 && (accountDetails.test(detail) || accountTexts.test(message))) return "misconfigured";
  if (status === 429 || status === overloaded || (status === 503 && hasRetryAfter)) return "busy";
  if (status === 504) return "timeout";
  if (status >= 500 || status === 408 || status === 409 || status === 425) return "unavailable";
  if (status === 400 || status === 413 || status === 415 || status === 422) {
    // Google answers 400 to a bad key, and if the operator's location or billing is at fault.
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

/** Providers quote keys and organizations in their messages, which callers must not see. */
function withoutSecrets(message: string): string {
  return (
    message
      .slice(0, 2_000)
      .replace(/\b(sk|org|proj|user|key|acct)[-_][\w*.-]{6,}/g, "$1-...")
      .replace(/\b(AIza|AQ\.|r8_)[\w-]{6,}/g, "$1...")
      // fal: an id and a secret.
      .replace(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:[\da-f]{8,}/g, "...")
  );
}
