import type { IncomingHttpHeaders } from "node:http";
import { isProviderCode } from "#errors";
import { type JsonObject, list, object } from "#json";
import type { Clock } from "#platform/clock";
import { type FailureKind, UpstreamFailure } from "../provider.ts";

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** The names of gRPC's codes, indexed by number. */
const googleCodes = (
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED " +
  "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split(" ");

/** Formats `["body", "messages", 1, "content"]` as `messages[1].content`. */
export const placeOf = (loc: unknown): string =>
  (Array.isArray(loc) ? loc.slice(0, 20) : [])
    .filter((step, at) => at > 0 || step !== "body")
    .map((step: unknown) => (typeof step === "number" ? `[${step}]` : `.${String(textOf(step)).slice(0, 64)}`))
    .join("")
    .replace(/^\./, "");

const minimaxCodes: ReadonlyMap<unknown, string> = new Map([
  [1002, "rate_limit_exceeded"],
  [1039, "rate_limit_exceeded"],
  [1004, "authentication_error"],
  [1008, "insufficient_quota"],
  [1026, "content_filter"],
  [1027, "content_filter"],
  [2013, "invalid_request_error"],
]);

/** MiniMax answers some errors with status 200 (https://github.com/ENTERPILOT/GoModel/pull/640). */
const minimaxError = (base: unknown): JsonObject => {
  const { status_code, status_msg } = object(base);
  return { message: status_msg, code: minimaxCodes.get(status_code) ?? "server_error" };
};

/** Azure's filter reports this in `innererror`, below codes that differ between its endpoints. */
const azureFilterCode = "ResponsibleAIPolicyViolation";

const asNumber = (code: unknown): unknown => (/^[45]\d\d$/.test(textOf(code) ?? "") ? Number(code) : code);

/**
 * Reads `{error: {message, code, param}}` and its variants on compatible servers; the `detail[]` of servers that validate
 * with pydantic (Mistral sends it at the top level or in `message`:
 * https://github.com/mistralai/platform-docs-public/issues/7); and Google's errors
 * (https://cloud.google.com/apis/design/errors, https://ai.google.dev/gemini-api/docs/troubleshooting).
 */
function readError(body: unknown) {
  // Gemini's compatible address wraps the object in an array.
  const [whole] = Array.isArray(body) ? body : [body];
  const { error: inner, base_resp } = object(whole);
  const error = inner ?? (base_resp ? minimaxError(base_resp) : whole);
  const {
    message,
    http_code,
    type,
    status,
    param,
    detail,
    details,
    innererror,
    code = Number(http_code) || undefined,
  } = object(error);
  const [invalid] = [...list(detail), ...list(object(message).detail)];
  const place = invalid && placeOf(invalid.loc);
  const infos = list(details);
  const delay = infos.map(({ retryDelay }) => textOf(retryDelay)).find((value) => value !== undefined);
  const seconds = Number(/^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(delay ?? "")?.[1]);
  return {
    message: textOf(error) ?? textOf(message) ?? textOf(detail) ?? (invalid && `${place}: ${textOf(invalid.msg)}`),
    /** The code, else the type. Some servers put the HTTP status here, Azure as text. */
    code:
      object(innererror).code === azureFilterCode
        ? "content_filter"
        : [asNumber(code), type].find((value) => typeof value === "string" || typeof value === "number"),
    type: textOf(type) ?? textOf(status) ?? (typeof code === "number" ? googleCodes[code] : undefined),
    param: textOf(param) ?? place,
    /** The reason within the type, as Anthropic and Google report it. */
    detail: textOf(object(details).error_code) ?? infos.map(({ reason }) => textOf(reason)).find((each) => each),
    /** Google sends the delay in the body, not in a header. */
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
    return new UpstreamFailure(kind, text || "The upstream refused the request.", {
      status,
      param: error.param,
      ...refusalOf(status, error.code, text),
    });
  // Too many tokens at once is a limit for this request alone: other calls need no cooldown.
  const cooldownMs = status === tooLarge ? undefined : (retryAfterMs ?? defaultRetryMs);
  return new UpstreamFailure(kind, `status ${status}${text && `: ${text}`}`, {
    status,
    retryAfterMs: kind === "busy" ? cooldownMs : undefined,
    ...(isOutOfCredit(status, error) && { isOutOfCredit: true }),
    ...(isForbidden(status, error) && { isForbidden: true }),
  });
}

/** The failure for an error without a status: in a stream, in place of an answer, or of a job. */
export function failureInside(body: unknown, clock: Clock): UpstreamFailure {
  const { code, type } = readError(body);
  const status = typeof code === "number" && code >= 100 ? code : (statusOf.get(code) ?? statusOf.get(type) ?? 500);
  return failureOf(status, {}, body, clock);
}

const tooLarge = 413;

/** Anthropic's status for an overload by all of its callers together. */
const overloaded = 529;

/** Maps the code or type of an error without a status to a status. */
const statusOf: ReadonlyMap<unknown, number> = new Map(
  (
    [
      // OpenAI and compatible servers.
      [400, "invalid_request_error invalid_prompt content_filter content_policy_violation moderation_blocked"],
      [400, "image_generation_user_error video_generation_user_error context_length_exceeded"],
      // OpenAI's Responses API.
      [400, "bio_policy misalignment_policy_violation image_content_policy_violation"],
      [400, "invalid_image invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode"],
      [400, "image_too_large image_too_small image_parse_error image_file_too_large image_file_not_found"],
      [400, "unsupported_image_media_type empty_image_file failed_to_download_image"],
      // Google (`invalid_request` comes from its Interactions API), Anthropic (`*_error`), and OpenAI.
      [400, "invalid_request INVALID_ARGUMENT FAILED_PRECONDITION"],
      // Z.ai (https://docs.z.ai/api-reference/api-code).
      [400, "1210 1211 1212 1213 1214 1215 1261 1301"],
      [402, "1110 1111 1112 1113 1120 1121"],
      [429, "1302 1303 1305"],
      [401, "UNAUTHENTICATED authentication_error"],
      [402, "billing_error"],
      [403, "PERMISSION_DENIED permission_error data_residency_mismatch"],
      [404, "NOT_FOUND not_found_error"],
      [413, "request_too_large"],
      [429, "RESOURCE_EXHAUSTED rate_limit_error rate_limit_exceeded"],
      [500, "INTERNAL"],
      [503, "UNAVAILABLE"],
      [504, "DEADLINE_EXCEEDED timeout_error"],
      [overloaded, "overloaded_error"],
    ] as const
  ).flatMap(([status, codes]) => codes.split(" ").map((code) => [code, status] as const)),
);

/** The cooldown of an upstream that answers 429 without a Retry-After. */
const defaultRetryMs = 1_000;

/** The operator's account is empty, at its own limit, or closed. Anthropic answers 400 then, as for an invalid request. */
const accountDetails = /^(\w+_spend_limit_reached|organization_on_hold|cmek_key_(disabled|network_blocked))$/;
/** Moonshot and Z.ai send these with a 429. */
const accountCodes = /^(insufficient_quota|billing_hard_limit_reached|exceeded_current_quota_error|11(1\d|2[01]))$/;
const accountTexts =
  /^(your credit balance is too low|you have reached your specified (\w+ )?api usage limits|this organization has been disabled)/i;

/** OpenAI answers 429, but waiting does not help. */
const isOutOfCredit = (
  status: number,
  { code, message = "", detail = "" }: Pick<ReturnType<typeof readError>, "code" | "message" | "detail">,
): boolean =>
  status === 402 ||
  (typeof code === "string" && accountCodes.test(code)) ||
  (status < 500 && (accountDetails.test(detail) || accountTexts.test(message)));

/** Google and Azure answer 400 to a good key, too, if its account or its deployment is at fault. */
const isForbidden = (status: number, { code, type, message = "" }: ReturnType<typeof readError>): boolean =>
  status === 400 &&
  // Azure: the deployment is of a model without this endpoint.
  (code === "OperationNotSupported" || type === "FAILED_PRECONDITION" || /api version not supported/i.test(message));

function kindOf(status: number, error: ReturnType<typeof readError>, hasRetryAfter: boolean): FailureKind {
  const { code, message = "", detail = "" } = error;
  if (isOutOfCredit(status, error)) return "misconfigured";
  // Together's status for a prompt that is too long (https://docs.together.ai/docs/error-codes).
  if (status === 403 && isContextLimit(message)) return "refused";
  // Groq: more tokens than the operator's limit allows in a minute (https://github.com/sst/opencode/issues/38059).
  if (status === tooLarge && code === "rate_limit_exceeded") return "busy";
  if (status === 429 || status === overloaded || (status === 503 && hasRetryAfter)) return "busy";
  if (status === 504) return "timeout";
  if (status >= 500 || status === 408 || status === 409 || status === 425) return "unavailable";
  if (status === 400 || status === 413 || status === 415 || status === 422) {
    // Google answers 400 to a bad key.
    return isForbidden(status, error) ||
      code === "invalid_api_key" ||
      detail === "API_KEY_INVALID" ||
      /api[ _]key (not valid|invalid|expired)/i.test(message)
      ? "misconfigured"
      : "refused";
  }
  return "misconfigured";
}

/** Messages with which servers say that prompt and output cap exceed the context, most of them without a code. */
const contextTexts = [
  // OpenAI, vLLM, DeepSeek, Fireworks, Mistral, xAI.
  /maximum (context|prompt|input) length/,
  // Groq; Anthropic; Z.ai; MiniMax.
  /reduce the length of the messages/,
  /prompt (is too long|exceeds max length)|input length and `?max_tokens`? exceed/,
  /context (length|window|limit) (is |was )?exceed|exceeds? (the )?(context|limit of context)/,
  // Google; Moonshot; Together.
  /input token count [^a-z]{0,40}exceeds/,
  /exceeded model token limit/,
  /tokens[^a-z]{1,8}(max_new_tokens[^a-z]{1,8})?must be <= ?\d/,
  // Bedrock.
  /input is too long for requested model/,
];

/** Limits of a server, not of the model: other servers of the same model may differ. */
const hostTexts = [
  /\bmax(_completion|_output|_new)?_tokens\b.{0,120}(less than|at most|up to|exceed|<=|too large|range|maximum)/,
  /\bmust be auto\b|\bmust have stream\b|\bunavailable now\b/,
  /\b(is|are) not supported\b|\bdoes(n't| not) support\b|\bunsupported\b/,
  /extra inputs are not permitted|unrecognized request argument|unknown (parameter|field)/,
  // Google; Claude at Google.
  /unknown name .{1,200} cannot find field|^unexpected value\(s\) .{1,400} for the `anthropic-beta` header/,
  /\btoo (large|long|many)\b|\bexceeds? the (size|maximum|(model )?limit)\b/,
  // Bedrock.
  /\binvalid beta flag\b|extraneous key \[.{1,100}\] is not permitted/,
];
const hostCodes: readonly unknown[] = [
  "context_length_exceeded",
  "string_above_max_length",
  "image_too_large",
  "unsupported_parameter",
  "unsupported_value",
  // The model's fault, not the caller's: another server may get a better answer from it.
  "tool_use_failed",
  "json_validate_failed",
];

const isIn = (texts: readonly RegExp[], message: string): boolean => {
  const lower = message.toLowerCase();
  return texts.some((each) => each.test(lower));
};

const isContextLimit = (message: string): boolean => isIn(contextTexts, message);

/** Verdicts on the content: such a request is not repeated at another server. */
const policyCodes: readonly unknown[] = [
  "content_policy_violation",
  "content_filter",
  "moderation_blocked",
  "invalid_prompt",
  "image_content_policy_violation",
];

/** The code of a provider's refusal for callers, and whether the limit is that host's own. */
function refusalOf(status: number, code: unknown, message: string): Pick<UpstreamFailure, "code" | "isHostLimit"> {
  const known = isProviderCode(code) ? code : isContextLimit(message) ? "context_length_exceeded" : undefined;
  const isLimit = status === 413 || hostCodes.includes(known) || isIn(hostTexts, message);
  return { code: known, isHostLimit: isLimit && !policyCodes.includes(known) };
}

/** The headers, with a delay in seconds that the provider reports elsewhere. */
export const withRetryAfter = (
  headers: IncomingHttpHeaders,
  seconds: string | string[] | number | undefined,
): IncomingHttpHeaders =>
  seconds === undefined || "retry-after" in headers ? headers : { ...headers, "retry-after": String(seconds) };

/** Reads `retry-after-ms`, or Retry-After in seconds or as a date. Returns undefined if it is absent or unreadable. */
export function retryAfter(headers: IncomingHttpHeaders, clock: Clock): number | undefined {
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
      .replace(/\b(ABSK|AKIA|ASIA|bedrock-api-key-)[\w+/=-]{12,}/g, "$1...")
      .replace(/\barn:aws[\w-]*:[\w:/.*-]+/g, "arn:...")
      // Keys of fal consist of an id and a secret.
      .replace(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:[\da-f]{8,}/g, "...")
  );
}
