import { isIP } from "node:net";
import { z } from "zod";

/**
 * Every environment variable of the service except the keys and addresses of upstreams, which the catalog names. The
 * table in docs/configuration.md is generated from this list. Durations end in _MS, sizes in _BYTES. Variables marked
 * as secret may come from a file (`secret-files.ts`) and are never shown.
 */
const count = (description: string, initial: number) =>
  z.coerce.number().int().positive().max(1e12).default(initial).describe(description);
const between = (description: string, min: number, max: number, initial: number) =>
  z.coerce.number().int().min(min).max(max).default(initial).describe(description);
const text = z.string().min(1);
/** Base58 of 32 bytes: a wallet or a mint on Solana. */
const solanaAddress = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, "must be a Solana address");
const usd = z.string().regex(/^\d{1,6}(\.\d{1,9})?$/, "must be a decimal amount in USD");
const address = z.url({ protocol: /^https?$/ });
/** Lists of names and values in the notation of OpenTelemetry's specification. */
const pairs = z
  .string()
  .regex(/^\s*[\w.!#$&'*+^`|~-]+\s*=([^,%]|%[0-9A-Fa-f]{2})*(,\s*[\w.!#$&'*+^`|~-]+\s*=([^,%]|%[0-9A-Fa-f]{2})*)*$/, {
    error: "must be name=value,name=value, with percent-encoded values",
  });
/** The standard values of OTEL_TRACES_SAMPLER. */
const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
const secret = { secret: true };
/** Accepts an address or a CIDR block. A block of all addresses would trust every caller. */
const isNetwork = (entry: string): boolean => {
  const [at = "", bits, ...more] = entry.trim().split("/");
  const version = isIP(at);
  const isLength = bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  return version !== 0 && isLength && more.length === 0;
};
/** Accepts `host:port,[2001:db8::1]:port`. */
const hosts = z
  .string()
  .regex(
    /^(\[[\da-f:.]+\]|[^\s:,[\]/@]+):\d{1,5}(,(\[[\da-f:.]+\]|[^\s:,[\]/@]+):\d{1,5})*$/i,
    "must be host:port, separated by commas",
  )
  .optional();

export const environment = z.object({
  REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe(
      "Redis or Valkey, version 7 or newer, with `maxmemory-policy noeviction`. **Required**: this, REDIS_SENTINELS or REDIS_CLUSTER_NODES",
    )
    .meta(secret),
  REDIS_SENTINELS: hosts.describe("Sentinels that monitor the primary, as a comma-separated list of host:port"),
  REDIS_SENTINEL_NAME: text.default("mymaster").describe("Name of the primary in the sentinels' configuration"),
  REDIS_SENTINEL_PASSWORD: text.optional().describe("Password of the sentinels").meta(secret),
  REDIS_CLUSTER_NODES: hosts.describe("Some nodes of a Redis Cluster, as a comma-separated list of host:port"),
  REDIS_USERNAME: text.optional().describe("Redis user, if REDIS_URL does not contain one"),
  REDIS_PASSWORD: text.optional().describe("Redis password, if REDIS_URL does not contain one").meta(secret),
  REDIS_TLS: z
    .stringbool()
    .default(false)
    .describe("`on`: TLS for Redis and its sentinels, like `rediss:` in REDIS_URL"),
  REDIS_DATABASE: between(
    "Database number, if REDIS_URL does not contain one. A cluster has only database 0, unless it supports several, as Valkey 9 can",
    0,
    65_535,
    0,
  ),
  // It is not parsed as a URL, because it may name every member of a replica set.
  MONGODB_URI: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\/[^\s/?#]+/, "must be a connection string")
    .describe("Connection string of a MongoDB replica set, version 6 or newer, including the database name")
    .meta(secret),
  S3_ENDPOINT: address.describe("Address of the S3-compatible object storage"),
  S3_PUBLIC_ENDPOINT: address
    .optional()
    .describe("Address of the same storage as callers and providers reach it, used in links for them"),
  S3_BUCKET: text.default("inference").describe("Bucket for uploads, generated files and large request bodies"),
  ARCHIVE_BUCKET: text
    .optional()
    .describe("Bucket for archived ledger entries; it should have versioning or object lock. Default: S3_BUCKET"),
  S3_REGION: text.default("us-east-1").describe("Region of the storage, used to sign requests"),
  S3_ACCESS_KEY_ID: text.describe("Access key of the storage").meta(secret),
  S3_SECRET_ACCESS_KEY: text.describe("Secret key of the storage").meta(secret),
  HOST: text.default("0.0.0.0").describe("Address that the API listens on"),
  PORT: between("Port of the API; 0 picks any free port", 0, 65535, 8080),
  METRICS_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65535)
    .optional()
    .describe(
      "Port of each process for `/metrics` and, in a worker, `/livez` and `/readyz`; 0 picks any free port. Default: 9464, or any free port if another process uses it",
    ),
  METRICS_HOST: text.default("127.0.0.1").describe("Address that METRICS_PORT listens on"),
  TRUSTED_PROXIES: text
    .refine(
      (given) => given.split(",").every(isNetwork),
      "must be addresses or CIDR blocks, other than /0, separated by commas",
    )
    .optional()
    .describe(
      "Proxies in front of the API, as a comma-separated list of addresses or CIDR blocks. The caller's address, by which sign-ins and requests without a key are limited, is the last one in `X-Forwarded-For` that is not a proxy's. If unset, the header is ignored and the connection's address is used",
    ),
  PUBLIC_URL: address
    .optional()
    .describe("Address of the API as callers reach it, used in absolute links. Default: http://127.0.0.1:PORT"),
  ADMIN_TOKEN: z
    .string()
    .regex(/^[^,]{32,}(,[^,]{32,})?$/, "must have at least 32 characters, or be two such tokens, separated by a comma")
    .optional()
    .describe(
      "Bearer token of the operator `admin` for the admin interface, at least 32 characters. If neither this nor ADMIN_TOKENS is set, the interface responds with 404. During a rotation it may be two tokens separated by a comma; both are accepted",
    )
    .meta(secret),
  ADMIN_TOKENS: z
    .string()
    .regex(
      /^[\w.-]{1,64}:[^,\s]{32,}(,[\w.-]{1,64}:[^,\s]{32,})*$/,
      "must be name:token,name:token, with tokens of at least 32 characters",
    )
    .optional()
    .describe(
      "Bearer tokens of individual operators, `name:token,name:token`. The audit log records changes under these names; `admin` is reserved for ADMIN_TOKEN",
    )
    .meta(secret),
  CATALOG_FILE: text.optional().describe("File with the catalog of models; default: the one shipped in shared/catalog"),
  CATALOG_OVERLAY: text
    .optional()
    .describe("JSON file that is merged into the catalog by id, to change prices or to add, change and remove models"),
  LOCAL_MODELS: z
    .stringbool()
    .default(false)
    .describe(
      "`on`: serve the `local/...` models, which run inside the workers and are meant for trying out the service; `npm start` sets it. Otherwise they are not listed, and calls to them get a 404. API and workers need the same value",
    ),
  LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Lowest level of log messages that are written"),
  OTEL_EXPORTER_OTLP_ENDPOINT: address
    .optional()
    .describe("Address of the trace collector (OTLP over HTTP), without `/v1/traces`. If unset, nothing is traced"),
  OTEL_EXPORTER_OTLP_HEADERS: pairs
    .optional()
    .describe("Headers for that collector, `name=value,name=value`, percent-encoded")
    .meta(secret),
  OTEL_SERVICE_NAME: text
    .optional()
    .describe("Name of the process in traces. Default: `inference-api` or `inference-worker`"),
  OTEL_RESOURCE_ATTRIBUTES: pairs
    .optional()
    .describe("Further resource attributes of the process in traces, such as `deployment.environment.name=production`"),
  OTEL_TRACES_SAMPLER: z
    .enum(samplers)
    .default("parentbased_always_on")
    .describe("Which calls are traced: one of OpenTelemetry's samplers. Unlike there, callers cannot force a trace"),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("Fraction of calls that `traceidratio` and `parentbased_traceidratio` trace"),
  OTEL_CAPTURE_CONTENT: z
    .stringbool()
    .default(false)
    .describe("`on`: traces of text calls contain the prompt and the response, truncated to 16,000 characters each"),
  BODY_LIMIT_BYTES: count("Maximum size of a JSON request body", 25 * 1024 * 1024),
  BODY_BUDGET_BYTES: count(
    "Memory of one API process for JSON bodies that it is reading or has not queued yet, including their parsed values, and for streams that callers have not read. When it is used up, new calls get a 503 and callers who read nothing for 2 s are disconnected. Requests without a key share an eighth of it. At least 8 times BODY_LIMIT_BYTES",
    200 * 1024 * 1024,
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
  JOB_LOCK_MS: between(
    "Duration of a worker's lock on its jobs, which it renews four times in this time. If a worker dies or stalls, another one takes over its jobs after at most 1.5 times this duration",
    1_000,
    60_000,
    10_000,
  ),
  API_TIMEOUT_MS: between(
    "Time after which an API instance that shows no sign of life counts as dead: the holds of its calls are ended, and the JSON responses that it had not delivered are refunded. The same value in all processes",
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
  LEDGER_RETENTION_DAYS: z.coerce
    .number()
    .int()
    .min(35)
    .max(36_500)
    .optional()
    .describe(
      "Days for which ledger entries of calls and uploads stay in MongoDB; months that ended longer ago are moved to ARCHIVE_BUCKET. If unset, all entries stay",
    ),
  X402_PAY_TO: solanaAddress
    .optional()
    .describe(
      "Wallet that receives x402 payments; it must own a token account for USDC. If unset, payments are disabled",
    ),
  X402_NETWORK: z
    .string()
    .regex(
      /^(mainnet|devnet|testnet|solana:[1-9A-HJ-NP-Za-km-z]{32})$/,
      "must be mainnet, devnet, testnet or solana:<genesis hash>",
    )
    .default("mainnet")
    .describe("Solana network of the payments: mainnet, devnet, testnet, or the CAIP-2 id of another one"),
  X402_ASSET: solanaAddress.optional().describe("Mint of the token that payments use; default: USDC of the network"),
  SOLANA_RPC_URL: address.optional().describe("RPC URL of that network for payments and buybacks").meta(secret),
  X402_FEE_PAYER_KEY: text
    .optional()
    .describe("Secret key of the wallet that submits payments and pays their fees: base58, or the JSON of a key file")
    .meta(secret),
  X402_FACILITATOR_URL: address
    .optional()
    .describe("Address of a facilitator that settles payments, instead of X402_FEE_PAYER_KEY"),
  X402_FACILITATOR_TOKEN: text.optional().describe("Bearer token for the facilitator").meta(secret),
  X402_MAX_COMPUTE_UNITS: count("Maximum compute units that a payment may request", 200_000),
  X402_MAX_PRIORITY_FEE: count("Maximum micro-lamports per compute unit that a payment may offer", 50_000),
  X402_QUOTE_SECONDS: between("Seconds for which a quote can be paid", 60, 3_600, 300),
  X402_REQUESTS_PER_MINUTE: count(
    "Requests without a key that one IP address (for IPv6, one /64) may make per minute",
    600,
  ),
  SIGN_IN_FAILURES_PER_MINUTE: count(
    "Failed dashboard sign-ins and requests with a wrong admin token that one IP address (for IPv6, one /64) may make per minute",
    10,
  ),
  BUYBACK_BPS: between(
    "Share of each charge that is used for buybacks, in basis points; 0 disables them",
    0,
    10_000,
    100,
  ),
  BUYBACK_TOKEN: solanaAddress
    .default("So11111111111111111111111111111111111111112")
    .describe("Mint of the token that is bought back unless another one is chosen; default: wrapped SOL"),
  BUYBACK_TOKENS: z
    .string()
    .optional()
    .describe(
      "Comma-separated list of mints that a caller may choose with `buyback_token`, in addition to BUYBACK_TOKEN",
    ),
  BUYBACK_MINIMUM_USD: usd.default("10.00").describe("USD that must accrue for a token before it is bought"),
  BUYBACK_EXECUTOR: z
    .enum(["record", "jupiter"])
    .default("record")
    .describe(
      "How tokens are bought: `record` only records the amounts that are due, `jupiter` swaps USDC from a wallet",
    ),
  BUYBACK_WALLET_KEY: text
    .optional()
    .describe(
      "Secret key of the wallet that `jupiter` swaps from, with USDC and SOL: base58, or the JSON of a key file",
    )
    .meta(secret),
  BUYBACK_SLIPPAGE_BPS: between(
    "Maximum price impact of a swap, and maximum shortfall of its proceeds against the quote, in basis points",
    1,
    5_000,
    100,
  ),
  JUPITER_BASE_URL: address
    .default("https://api.jup.ag/swap/v2")
    .describe("URL of Jupiter's swap API, with its version"),
  JUPITER_API_KEY: text.optional().describe("API key for Jupiter").meta(secret),
  JUPITER_PROGRAMS: text
    .default("JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4")
    .describe(
      "Comma-separated list of on-chain programs that swaps may call; a transaction that calls any other is not signed",
    ),
  WORKER_PAYLOAD_BUDGET_BYTES: count(
    "Memory of one worker process for large request bodies, uploads sent inline (each counts as four times its size) and images in responses. One account may take half of what is free; calls that need more get a 503",
    1024 * 1024 * 1024,
  ),
  WORKER_POOLS: z
    .string()
    .regex(/^[a-z]+(,[a-z]+)*$/)
    .default("chat,embeddings,image,media,maintenance")
    .describe("Comma-separated list of pools that this worker process serves"),
  WORKER_CONCURRENCY_CHAT: count("Chat calls that one worker process runs concurrently", 500),
  WORKER_CONCURRENCY_EMBEDDINGS: count("Embeddings calls that one worker process runs concurrently", 200),
  WORKER_CONCURRENCY_IMAGE: count("Image calls that one worker process runs concurrently", 50),
  WORKER_CONCURRENCY_MEDIA: count("Media calls that one worker process runs concurrently", 50),
  WORKER_CONCURRENCY_MAINTENANCE: count("Scheduled jobs that one worker process runs concurrently", 10),
});

export type Config = Readonly<z.infer<typeof environment>>;

export const secretVariables: readonly string[] = Object.entries(environment.shape).flatMap(([name, schema]) =>
  schema.meta()?.["secret"] === true ? [name] : [],
);

/** Names each variable that is missing or invalid. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];

  constructor(message: string, faults: readonly string[] = [message]) {
    super(message);
    this.faults = faults;
  }
}

export const configError = (...faults: readonly string[]): ConfigError =>
  new ConfigError(`The configuration is not valid.\n  ${faults.join("\n  ")}`, faults);

const redisAddresses = ["REDIS_URL", "REDIS_SENTINELS", "REDIS_CLUSTER_NODES"] as const;

/** Exactly one way to reach Redis must be configured. */
function redisFaults(given: Readonly<Record<string, unknown>>): string[] {
  const named = redisAddresses.filter((name) => given[name] !== undefined);
  if (named.length === 1) return [];
  return [
    named.length === 0
      ? `REDIS_URL is missing: set it or ${redisAddresses.slice(1).join(" or ")}`
      : `${named.join(" and ")} are set, but only one of them may be`,
  ];
}

/** If two operators shared a name or a token, the audit log could not tell them apart. */
function operatorFaults({ ADMIN_TOKEN, ADMIN_TOKENS }: Config): string[] {
  const named = (ADMIN_TOKENS?.split(",") ?? []).map((each) => each.split(/:(.*)/s));
  const names = ["admin", ...named.map(([name]) => name)];
  const tokens = [...(ADMIN_TOKEN?.split(",") ?? []), ...named.map(([, token]) => token)];
  const repeated = names.find((name, at) => names.indexOf(name) !== at);
  return [
    ...(repeated === "admin" ? ["ADMIN_TOKENS: the name admin is reserved for ADMIN_TOKEN"] : []),
    ...(repeated !== undefined && repeated !== "admin" ? [`ADMIN_TOKENS: the name ${repeated} occurs twice`] : []),
    ...(new Set(tokens).size < tokens.length ? ["ADMIN_TOKENS: two operators have the same token"] : []),
  ];
}

/** An empty variable counts as not set, as in Compose files. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const parsed = environment.safeParse(given);
  const faults = redisFaults(given);
  if (parsed.success) faults.push(...operatorFaults(parsed.data));
  if (parsed.success && faults.length === 0) return parsed.data;
  const lines = (parsed.error?.issues ?? []).map((issue) => {
    const name = issue.path.join(".");
    return given[name] === undefined
      ? `${name} is missing: ${environment.shape[name as keyof Config].description}`
      : `${name}: ${issue.message}`;
  });
  throw configError(...faults, ...lines);
}
