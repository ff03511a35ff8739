import { z } from "zod";

/** Headers of requests and answers. Those of answers are components of the document, each described once. */

export const idempotencyKey = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "For 24 hours, a request with the same key and body waits for the running call or gets its stored response; a different body gets a 409. Ignored for streams",
    ),
});

const header = <Id extends string, Schema extends z.ZodType>(id: Id, description: string, schema: Schema) =>
  ({ [id]: schema.meta({ description, header: { id } }) }) as Readonly<Record<Id, Schema>>;

const text = z.string();
const quantity = z.int().min(0).optional();
const seconds = z
  .string()
  .regex(/^\d+s$/)
  .optional();

export const requestId = header("x-request-id", "The id of the request, also in its ledger entry and log lines", text);

/** Clients of the Messages format read it. */
export const messagesRequestId = header("request-id", "The same as `x-request-id`", text);

/** Sent with every call that was admitted, however it ended, and with one that is over a limit. */
export const rateLimits = {
  ...header("x-ratelimit-limit-requests", "The key's limit of requests per minute", quantity),
  ...header("x-ratelimit-remaining-requests", "Requests that the key may make right now", quantity),
  ...header("x-ratelimit-reset-requests", "Time until all requests are available again, such as `12s`", seconds),
  ...header("x-ratelimit-limit-tokens", "The key's limit of tokens per minute", quantity),
  ...header("x-ratelimit-remaining-tokens", "Tokens that the key may use right now", quantity),
  ...header("x-ratelimit-reset-tokens", "Time until all tokens are available again, such as `12s`", seconds),
};

export const retryAfter = header("Retry-After", "Seconds to wait before a retry", z.int().min(1).max(60));

export const shouldRetry = header(
  "x-should-retry",
  "Sent if a retry cannot succeed or would be charged twice; official clients obey it",
  z.literal("false").optional(),
);

export const authenticate = header("www-authenticate", "How to send a key", z.literal("Bearer"));

const replayed = header(
  "idempotent-replayed",
  "Sent with the stored response of an earlier request with the same Idempotency-Key. `x-request-id` is then the id of that request, and rate limits are absent",
  z.literal("true").optional(),
);

const cost = header(
  "x-xm-cost-usd",
  "Cost of the request as an exact decimal; absent on streams",
  z
    .string()
    .regex(/^\d+\.\d{2,9}$/)
    .optional(),
);

export const ignoredParams = header(
  "x-ignored-params",
  "Optional parameters of the request that the model or its upstream does not support",
  z.string().optional(),
);

/** Sent where a call may name several models. */
export const answeringModel = header(
  "x-xm-model",
  "The model that responded, if the request had a list of models",
  z.string().optional(),
);

/** Sent where provider keys of the account may serve a call. */
const upstreamKey = header(
  "x-xm-upstream-key",
  "With whose key the upstream was called, if provider keys of the account could serve the call",
  z.enum(["own", "shared"]).optional(),
);

/** Sent where answers may be stored in the response cache. */
export const cached = {
  ...header(
    "x-xm-cache",
    "Sent if the request asked for the response cache: the answer comes from it, is new, is new by request, or the cache was not used",
    z.enum(["hit", "miss", "refresh", "bypass"]).optional(),
  ),
  ...header("x-xm-cache-age", "Seconds since the answer was stored; sent with a hit", quantity),
  ...header("x-xm-cache-ttl", "Seconds for which the answer remains stored", quantity),
  ...header("x-xm-cache-source", "The id of the request that stored the answer; sent with a hit", text.optional()),
  ...header(
    "x-xm-cache-coalesced",
    "Sent with a hit that waited for an equal request in progress",
    z.literal("true").optional(),
  ),
};

/** Sent with the 202 answer of a call that becomes a job. */
export const acceptedHeaders = z.object({
  ...requestId,
  ...rateLimits,
  ...header("Location", "The address of the job", z.url()),
  ...header("Preference-Applied", "What was done of `Prefer`", z.literal("respond-async")),
  ...retryAfter,
  ...replayed,
});

/** Sent with the 200 answer of a call. */
const callHeaders = z.object({ ...requestId, ...cost, ...rateLimits, ...upstreamKey });

/** Like `callHeaders`, where the answer is stored for an `Idempotency-Key`. */
export const storedCallHeaders = callHeaders.extend(replayed);
export const cachedCallHeaders = storedCallHeaders.extend(cached);

export const streamHeaders = z.object({
  ...requestId,
  ...rateLimits,
  ...ignoredParams,
  ...answeringModel,
  ...upstreamKey,
  ...cached,
});

/** Sent where a call may be converted to the upstream's format. */
const convertedHeaders = callHeaders.extend(ignoredParams);
export const storedConvertedHeaders = storedCallHeaders.extend(ignoredParams);
/** Like `convertedHeaders`, where a call may name several models and answers may be cached. */
export const routedHeaders = convertedHeaders.extend({ ...answeringModel, ...cached });
export const storedRoutedHeaders = storedConvertedHeaders.extend({ ...answeringModel, ...cached });

/** Sent with uploads, and with the result of a job. */
export const costHeaders = z.object({ ...requestId, ...cost });
export const storedUploadHeaders = costHeaders.extend(replayed);

/** Sent with an object that is created once for an `Idempotency-Key`. */
export const createdOnceHeaders = z.object({ ...requestId, ...replayed });

export const countHeaders = z
  .object({ ...requestId, ...cost, ...rateLimits })
  .extend(header("x-xm-token-count", "Source of the count", z.enum(["provider", "estimate"])));
