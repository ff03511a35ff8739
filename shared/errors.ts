/**
 * Every error of the public API: each code has one row in `errorKinds` and one named function that creates it. Formats
 * only render them. Sources: docs/api/inference.md, docs/api/wire-details.md ("Error types by format").
 */

interface ErrorKind {
  readonly status: number;
  readonly type: string;
  /** The condition under which the error occurs. docs/errors.md and the OpenAPI document are generated from it. */
  readonly when: string;
}

const invalid = "invalid_request_error";
const missing = "not_found_error";
const unauthenticated = "authentication_error";
const unpaid = "insufficient_quota";
const forbidden = "permission_error";
const failure = "server_error";

const kind = (status: number, type: string, when: string): ErrorKind => ({ status, type, when });

/** Codes of provider refusals that clients act on. Any other provider code becomes `invalid_value`. */
const providerKinds = {
  context_length_exceeded: kind(400, invalid, "the prompt plus the output limit exceeds the model's context length"),
  string_above_max_length: kind(400, invalid, "a text is longer than the provider accepts"),
  content_policy_violation: kind(400, invalid, "the provider's content policy forbids the request"),
  content_filter: kind(400, invalid, "the provider's content filter stopped the request"),
  invalid_prompt: kind(400, invalid, "the provider's usage policy forbids the prompt"),
  invalid_image: kind(400, invalid, "the provider cannot read an image"),
  invalid_image_format: kind(400, invalid, "the provider does not accept an image's format"),
  invalid_image_url: kind(400, invalid, "the provider cannot fetch an image"),
  invalid_base64_image: kind(400, invalid, "an image's base64 cannot be decoded"),
  image_too_large: kind(400, invalid, "an image is larger than the provider accepts"),
  image_too_small: kind(400, invalid, "an image is smaller than the provider accepts"),
  image_content_policy_violation: kind(400, invalid, "the provider's content policy forbids an image"),
  unsupported_parameter: kind(400, invalid, "the provider's model does not support a parameter"),
  unsupported_value: kind(400, invalid, "the provider's model does not support a parameter's value"),
  invalid_function_parameters: kind(400, invalid, "a tool's schema is not valid for the provider"),
  invalid_json_schema: kind(400, invalid, "the schema of the response is not valid for the provider"),
  invalid_encrypted_content: kind(400, invalid, "the provider cannot read reasoning sent back to it"),
  tool_use_failed: kind(400, invalid, "the model called a tool in a way that the provider rejects"),
  json_validate_failed: kind(400, invalid, "the model's response does not match the requested schema"),
  moderation_blocked: kind(400, "image_generation_user_error", "the provider's moderation blocked an image"),
};

export const errorKinds = {
  invalid_value: kind(400, invalid, "a field, header, path or body is malformed or out of range"),
  invalid_webhook_url: kind(400, invalid, "webhooks are not sent to the URL's scheme, port, host or address"),
  provider_key_invalid: kind(400, invalid, "the provider does not accept the credential of a provider key"),
  file_quota_exceeded: kind(400, invalid, "the account's files for batches would be more than it may store"),
  model_not_supported: kind(400, invalid, "the model exists, but not for this endpoint or feature"),
  ...providerKinds,
  invalid_api_key: kind(401, unauthenticated, "the API key is missing, unknown or revoked"),
  key_expired: kind(401, unauthenticated, "the API key's `expires_at` has passed"),
  insufficient_balance: kind(402, unpaid, "the balance does not cover the maximum cost of the call"),
  budget_exceeded: kind(402, unpaid, "the remaining budget of the API key does not cover the maximum cost of the call"),
  account_frozen: kind(403, forbidden, "the account is frozen"),
  insufficient_scope: kind(
    403,
    forbidden,
    "the API key lacks the scope that the route requires, or would grant another key more rights than it has",
  ),
  model_not_allowed: kind(403, forbidden, "the API key is limited to other models"),
  cross_site_request: kind(403, forbidden, "a write under `/dashboard` does not come from the dashboard's own page"),
  model_not_found: kind(404, missing, "no such model is listed"),
  unknown_url: kind(404, missing, "no such route"),
  not_found: kind(404, missing, "no such account, key, request or other object of the account"),
  upload_not_found: kind(404, missing, "this account has no such upload"),
  file_not_found: kind(404, missing, "this account has no such file for batches"),
  method_not_allowed: kind(405, missing, "the route exists, but not for this method"),
  request_timeout: kind(408, invalid, "the body took longer than 60 seconds to arrive"),
  conflict: kind(
    409,
    "conflict_error",
    "an idempotency key was reused with a different body, or a deduction or refund exceeds the available amount",
  ),
  stream_not_resumable: kind(
    409,
    "conflict_error",
    "the events of a response in the background are not kept: it was created without `stream`, they are over 8 MB, or Redis has lost them",
  ),
  upload_expired: kind(410, missing, "the upload's 24 hours, or the time to complete it, have passed"),
  upload_deleted: kind(410, missing, "the upload was deleted"),
  job_expired: kind(410, missing, "the 24 hours of the job's result have passed"),
  file_expired: kind(410, missing, "the generated file's 24 hours have passed"),
  batch_file_expired: kind(410, missing, "the file for batches expired within the last 24 hours"),
  length_required: kind(411, invalid, "a raw upload has no Content-Length"),
  request_too_large: kind(413, invalid, "the body is over the limit"),
  unsupported_media_type: kind(415, invalid, "the body or file is not of an accepted type or encoding"),
  expectation_failed: kind(417, invalid, "`Expect` asks for something other than `100-continue`"),
  byok_authentication_failed: kind(
    424,
    invalid,
    "only the account's own provider keys may be used, and the provider does not accept them",
  ),
  byok_quota_exceeded: kind(
    424,
    invalid,
    "only the account's own provider keys may be used, and the account at the provider has no credit left",
  ),
  upgrade_required: kind(426, invalid, "a WebSocket was requested, but every route is plain HTTP"),
  rate_limit_exceeded: kind(
    429,
    "rate_limit_error",
    "a limit of the key, the limit of 2,000 open calls per account, or the number of tokens that the upstream accepts at once is reached",
  ),
  byok_rate_limited: kind(
    429,
    "rate_limit_error",
    "only the account's own provider keys may be used, and the provider limits their requests",
  ),
  headers_too_large: kind(431, invalid, "the URL and the headers are over 16 KB"),
  internal_error: kind(500, failure, "an unexpected failure of the service"),
  not_configured: kind(501, failure, "the operator has not set up what the feature needs"),
  upstream_error: kind(502, failure, "every upstream of the model failed"),
  no_capacity: kind(503, failure, "no worker, upstream or store can take the call right now, or its worker died"),
  generation_in_progress: kind(
    503,
    failure,
    "the request with this Idempotency-Key is still in progress; repeat it to wait for the response",
  ),
  upstream_timeout: kind(504, failure, "the upstream or the call ran out of time"),
};

export type ErrorCode = keyof typeof errorKinds;
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorKinds, code);

interface Details {
  /** The field, header or path segment at fault. */
  readonly param?: string | undefined;
  /** Sent as `Retry-After`: whole seconds, 1 to 60. */
  readonly retryAfterSeconds?: number | undefined;
  /** `false` is sent as `x-should-retry: false`: a retry cannot succeed, or would be charged twice. */
  readonly shouldRetry?: false | undefined;
}

/** The serialized form in which a worker sends an error to the API. */
export interface ErrorFields extends Details {
  readonly code: ErrorCode;
  readonly message: string;
}

export class ServiceError extends Error implements ErrorFields {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: string;
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  readonly shouldRetry?: false;

  constructor(fields: ErrorFields, cause?: unknown) {
    super(fields.message, cause === undefined ? undefined : { cause });
    this.code = fields.code;
    this.status = errorKinds[fields.code].status;
    this.type = errorKinds[fields.code].type;
    if (fields.param !== undefined) this.param = fields.param;
    if (fields.shouldRetry !== undefined) this.shouldRetry = fields.shouldRetry;
    if (fields.retryAfterSeconds !== undefined) {
      this.retryAfterSeconds = Math.min(60, Math.max(1, Math.ceil(fields.retryAfterSeconds)));
      // Clients do not wait longer than 60 seconds, so a retry would fail.
      if (fields.retryAfterSeconds > 60) this.shouldRetry = false;
    }
  }

  /** Without the details that the error does not have: MongoDB would store them as null. */
  fields(): ErrorFields {
    const { code, message, param, retryAfterSeconds, shouldRetry } = this;
    return {
      code,
      message,
      ...(param !== undefined && { param }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      ...(shouldRetry !== undefined && { shouldRetry }),
    };
  }
}

const make = (code: ErrorCode, message: string, details: Details = {}, cause?: unknown) =>
  new ServiceError({ code, message, ...details }, cause);

export const invalidValue = (param: string | undefined, message: string) => make("invalid_value", message, { param });

export type ProviderCode = keyof typeof providerKinds;
export const isProviderCode = (code: unknown): code is ProviderCode =>
  typeof code === "string" && Object.hasOwn(providerKinds, code);
/** The provider refused the request. The error has the provider's message, and its code if clients know it. */
export const refusedByProvider = (code: ProviderCode | undefined, param: string | undefined, message: string) =>
  make(code ?? "invalid_value", message, { param });

export const modelNotSupported = (message: string, param = "model") => make("model_not_supported", message, { param });
export const invalidApiKey = (message = "Missing or invalid API key.") => make("invalid_api_key", message);
export const insufficientBalance = (message: string) =>
  make("insufficient_balance", `${message} Top up in the dashboard.`, { shouldRetry: false });
export const insufficientScope = (scope: string) =>
  make("insufficient_scope", `This API key lacks the scope '${scope}'.`, { shouldRetry: false });
/** A key cannot grant another key more than it has. */
export const beyondOwnKey = (param: string, why: string) =>
  make("insufficient_scope", `${param}: a key cannot grant more than it has; ${why}.`, { param, shouldRetry: false });
export const keyExpired = () => make("key_expired", "This API key has expired.");
export const budgetExceeded = (message: string) => make("budget_exceeded", message, { shouldRetry: false });
export const modelNotAllowed = (model: string, param = "model") =>
  make("model_not_allowed", `This API key may not call the model '${shorten(model)}'.`, { param, shouldRetry: false });
export const crossSiteRequest = () =>
  make("cross_site_request", "Only the dashboard's own page may send this request.", { shouldRetry: false });
export const accountFrozen = () => make("account_frozen", "This account is frozen.");
const shorten = (text: string) => text.slice(0, 200);

const didYouMean = (names: readonly string[]) =>
  names.length === 0 ? "" : ` Did you mean ${names.map((name) => `'${name}'`).join(" or ")}?`;

/** `similar` contains the ids of models that the caller may have meant. */
export const modelNotFound = (model: string, similar: readonly string[] = [], param = "model") =>
  make("model_not_found", `The model '${shorten(model)}' does not exist.${didYouMean(similar)}`, { param });
export const unknownUrl = (method: string, path: string) =>
  make("unknown_url", `Unknown URL: ${method} ${shorten(path)}.`);
export const notFound = (what: string) => make("not_found", `No such ${what}.`);
export const uploadNotFound = (id: string, param?: string) =>
  make("upload_not_found", `There is no upload '${id}'.`, { param });
export const uploadExpired = (id: string, param?: string) =>
  make("upload_expired", `The upload '${id}' has expired.`, { param });
export const uploadDeleted = (id: string, param?: string) =>
  make("upload_deleted", `The upload '${id}' was deleted.`, { param });
/** `why` continues the sentence "The address ...". */
export const invalidWebhookUrl = (param: string, why: string) =>
  make("invalid_webhook_url", `${param}: the address ${why}.`, { param });
export const jobExpired = () => make("job_expired", "This job's result has expired; results are stored for 24 hours.");
export const fileExpired = () => make("file_expired", "This file has expired; files are stored for 24 hours.");
export const fileQuotaExceeded = (limit: string) =>
  make(
    "file_quota_exceeded",
    `An account may store ${limit} of files for batches. Delete some, or wait until they expire.`,
  );
export const fileNotFound = (id: string, param?: string) =>
  make("file_not_found", `There is no file '${shorten(id)}'.`, { param });
export const batchFileExpired = (id: string, param?: string) =>
  make("batch_file_expired", `The file '${id}' has expired.`, { param });
/** `message` is the provider's, without any part of the credential. */
export const providerKeyInvalid = (message: string) =>
  make("provider_key_invalid", `The provider does not accept the credential: ${message}`, { param: "credential" });

/** How the errors of calls name a provider key. */
interface OwnKey {
  readonly upstream: string;
  readonly label: string;
}
/** It is not a 401, because the caller's key for this service is valid. */
export const byokAuthenticationFailed = ({ upstream, label }: OwnKey, cause?: unknown) =>
  make(
    "byok_authentication_failed",
    `The provider '${upstream}' does not accept your key ${label}. Replace it, or check its permissions.`,
    { shouldRetry: false },
    cause,
  );
/** The key was deleted or disabled, or belongs to something else, after the call had been admitted with it. */
export const byokKeyGone = (id: string) =>
  make("byok_authentication_failed", `The provider key '${id}' was deleted or disabled. Nothing was charged.`, {
    shouldRetry: false,
  });
export const byokQuotaExceeded = ({ upstream, label }: OwnKey, cause?: unknown) =>
  make(
    "byok_quota_exceeded",
    `Your account with the provider '${upstream}', of the key ${label}, has no credit left.`,
    { shouldRetry: false },
    cause,
  );
export const byokRateLimited = ({ upstream, label }: OwnKey, retryAfterSeconds: number, cause?: unknown) =>
  make(
    "byok_rate_limited",
    `The provider '${upstream}' limits the requests of your key ${label}.`,
    { retryAfterSeconds },
    cause,
  );
export const lengthRequired = () =>
  make("length_required", "A raw upload requires a Content-Length header.", { param: "content-length" });
export const methodNotAllowed = (method: string, path: string) =>
  make("method_not_allowed", `${method} is not allowed on ${path}.`);
export const requestTimeout = (message = "The body took longer than 60 seconds to arrive.") =>
  make("request_timeout", message);
export const conflict = (message: string) => make("conflict", message, { shouldRetry: false });
export const idempotencyKeyReused = () => conflict("This Idempotency-Key was used with another request.");
/** Throws 400 for an `Idempotency-Key` that is too short or too long. */
export function checkIdempotencyKey({ length }: string): void {
  if (length < 1 || length > 255)
    throw invalidValue("idempotency-key", "Idempotency-Key must have 1 to 255 characters.");
}
export const streamNotResumable = (why = "Its events are not kept.") =>
  make("stream_not_resumable", `This stream cannot be read from here. ${why} Poll the response.`, {
    shouldRetry: false,
  });
export const requestTooLarge = (limitBytes: number, param?: string) =>
  make("request_too_large", `${param ?? "The body"} is over the limit of ${limitBytes} bytes.`, { param });
export const tooManyInline = (param: string, limit: number) =>
  make("request_too_large", `${param}: has more than ${limit} items.`, { param });
export const unsupportedMediaType = (message: string, param?: string) =>
  make("unsupported_media_type", message, { param });
export const expectationFailed = () =>
  make("expectation_failed", "Expect: only 100-continue is supported.", { param: "expect" });
export const noWebSocket = () =>
  make("upgrade_required", "WebSockets are not supported: send a POST request, and stream with server-sent events.");
export const headersTooLarge = () => make("headers_too_large", "The URL and the headers are over the limit of 16 KB.");
export const rateLimited = (message: string, retryAfterSeconds: number) =>
  make("rate_limit_exceeded", message, { retryAfterSeconds });
/** A retry cannot succeed: the upstream accepts fewer tokens per minute than this one call needs. */
export const tooManyTokens = () =>
  make(
    "rate_limit_exceeded",
    "This request needs more tokens than the model's upstream accepts per minute. Shorten the prompt or lower the output limit.",
    { retryAfterSeconds: 60, shouldRetry: false },
  );
const internalError = (cause?: unknown) => make("internal_error", "The service failed unexpectedly.", {}, cause);
/** `message` names the setting that is missing. */
export const notConfigured = (message: string) => make("not_configured", message, { shouldRetry: false });
export const upstreamError = (message: string, cause?: unknown) => make("upstream_error", message, {}, cause);
export const noCapacity = (message: string, retryAfterSeconds = 5, cause?: unknown) =>
  make("no_capacity", message, { retryAfterSeconds }, cause);
export const generationInProgress = () =>
  make(
    "generation_in_progress",
    "The request is still in progress. Repeat it with the same Idempotency-Key or payment to get its response.",
    { retryAfterSeconds: 5 },
  );
export const upstreamTimeout = (message: string, details: Pick<Details, "shouldRetry"> = {}) =>
  make("upstream_timeout", message, details);

/** Converts any thrown value. Unexpected errors become 500; their message goes only to the log. */
export const toServiceError = (thrown: unknown): ServiceError =>
  thrown instanceof ServiceError ? thrown : internalError(thrown);
