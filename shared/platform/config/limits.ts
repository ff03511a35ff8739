import { z } from "zod";
import { between, count, usd } from "./fields.ts";

/** Sizes, durations and numbers of calls, and how long they are kept. */
export const limits = {
  BODY_LIMIT_BYTES: count("Maximum size of a JSON request body", 25 * 1024 * 1024),
  BODY_BUDGET_BYTES: count(
    "Memory of one API process for JSON bodies that it is reading or has not queued yet, including their parsed values. When it is used up, new calls get a 503. Requests without a key share an eighth of it. At least 8 times BODY_LIMIT_BYTES",
    200 * 1024 * 1024,
  ),
  RESPONSE_BUDGET_BYTES: count(
    "Memory of one API process for streams and long responses that callers have not read. One account may take half of what is free. When its share is used up, its callers who read nothing for 2 s are disconnected, then those whose responses are the oldest; stored responses get a 503",
    128 * 1024 * 1024,
  ),
  NATIVE_FORMATS_ANY_MODEL: z
    .stringbool()
    .default(false)
    .describe(
      "`on`: the Messages and Responses formats accept every text model, as the Gemini format does, not only the models of their provider",
    ),
  CALL_TIMEOUT_MS: count("Maximum duration of a call, from the end of its body to its last byte", 900_000),
  MEDIA_SYNC_TIMEOUT: z.coerce
    .number()
    .positive()
    .max(86_400)
    .default(285)
    .describe(
      "Seconds that a caller waits for images, for media or for any call with an `Idempotency-Key`; with such a key the work continues afterwards",
    ),
  UPLOAD_USD_PER_GB_DAY: usd
    .default("0.10")
    .describe("Price of an upload in USD per 1,073,741,824 bytes, charged once for its 24 hours"),
  UPLOAD_BUDGET_BYTES: count(
    "Temporary disk space for forms that one API process is receiving; when it is used up, new forms get a 503",
    2 * 1024 * 1024 * 1024,
  ),
  BATCH_FILE_QUOTA_BYTES: count(
    "Bytes of files for batches that an account may store, inputs and outputs together; further uploads of such files get a 400",
    10 * 1024 * 1024 * 1024,
  ),
  JOB_LOCK_MS: between(
    "Duration of a worker's lock on its jobs, which it renews four times in this time. If a worker dies or stalls, another one takes over its jobs after at most 1.5 times this duration",
    1_000,
    60_000,
    10_000,
  ),
  LOST_RESPONSE_REFUNDS_USD: usd
    .default("5.00")
    .describe(
      "JSON responses that are lost when an API instance dies are refunded up to this amount for each account; the others wait for an operator",
    ),
  API_TIMEOUT_MS: between(
    "Time after which an API instance that shows no sign of life counts as dead: the holds of its calls are ended, and the JSON responses that it had not delivered are refunded. Holds are ended only once MongoDB has been up for twice this time. The same value in all processes",
    10_000,
    30_000,
    30_000,
  ),
  PING_INTERVAL_MS: count("Idle time after which a ping is sent on a stream", 15_000),
  DRAIN_DELAY: z.coerce
    .number()
    .min(0)
    .max(3_600)
    .default(10)
    .describe(
      "Seconds after SIGTERM during which the API reports that it is not ready but still accepts connections, so that load balancers can notice",
    ),
  DRAIN_GRACE: z.coerce
    .number()
    .min(0)
    .max(86_400)
    .default(900)
    .describe(
      "Seconds that open calls then have to finish; in a worker they count from SIGTERM. The default is the maximum duration of a call",
    ),
  RATE_LIMIT_REQUESTS_PER_MINUTE: count("Requests per minute for a key without limits of its own", 10_000),
  RATE_LIMIT_TOKENS_PER_MINUTE: count("Tokens per minute for a key without limits of its own", 50_000_000),
  RATE_LIMIT_CONCURRENT_REQUESTS: count("Calls in flight for a key without limits of its own", 1_000),
  RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: count(
    "Requests per minute of a key to the account endpoints: /v1/key, /v1/balance, /v1/usage and so on",
    300,
  ),
  RATE_LIMIT_UPLOADS_PER_MINUTE: count("Uploads that a key may start or complete per minute", 120),
  RATE_LIMIT_CONCURRENT_UPLOADS: count("Concurrent uploads of a key that are being received or completed", 10),
  CHAT_SHARDS: between(
    "Number of queues across which the chat pool's calls are distributed, by account. Workers serve all queues that API instances use",
    1,
    64,
    1,
  ),
  BACKLOG_LIMIT: count("Maximum number of calls waiting in one pool; further calls get a 503", 5_000),
  ASYNC_BACKLOG_LIMIT: count("Maximum number of jobs waiting in one pool; further jobs get a 503", 100_000),
  ASYNC_JOBS_PER_ACCOUNT: count(
    "Maximum number of jobs of one account that have not ended; further jobs get a 429",
    1_000,
  ),
  BATCH_CONCURRENCY_PER_ACCOUNT: count(
    "Maximum number of lines of an account's batches that run at once, in all API instances together",
    32,
  ),
  PROVIDER_BATCH_POLL_SECONDS: count("Seconds between two looks at a batch that runs at a provider", 60),
  BATCH_POOL_PERCENT: z.coerce
    .number()
    .int()
    .min(1)
    .max(100)
    .default(50)
    .describe("Part of each pool's slots, and of each upstream's, that lines of batches may take"),
  ASYNC_MAX_QUEUE_SECONDS: count("Seconds for which a job waits for a worker before it expires", 3_600),
  LEDGER_RETENTION_DAYS: z.coerce
    .number()
    .int()
    .min(35)
    .max(36_500)
    .optional()
    .describe(
      "Days for which ledger entries of calls and uploads stay in MongoDB; months that ended longer ago are moved to ARCHIVE_BUCKET. If unset, all entries stay",
    ),
};

/** Limits of one IP address. */
export const addressLimits = {
  X402_REQUESTS_PER_MINUTE: count(
    "Requests without a key that one IP address (for IPv6, one /64) may make per minute",
    600,
  ),
  SIGN_IN_FAILURES_PER_MINUTE: count(
    "Failed dashboard sign-ins and requests with a wrong admin token that one IP address (for IPv6, one /64) may make per minute",
    10,
  ),
};
