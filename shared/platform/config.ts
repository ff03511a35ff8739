import { z } from "zod";
import { addressLimits, limits } from "./config/limits.ts";
import { observability } from "./config/observability.ts";
import { ownKeys } from "./config/own-keys.ts";
import { buybacks, x402 } from "./config/payments.ts";
import { service } from "./config/service.ts";
import { stores } from "./config/stores.ts";
import { workers } from "./config/workers.ts";
import { configError } from "./config-error.ts";

/**
 * Every environment variable of the service except the keys and addresses of upstreams, which the catalog names. The
 * table in docs/configuration.md is generated from this list. Durations end in _MS, sizes in _BYTES.
 */
export const environment = z.object({
  ...stores,
  ...service,
  ...observability,
  ...limits,
  ...x402,
  ...addressLimits,
  ...buybacks,
  ...ownKeys,
  ...workers,
});

export type Config = Readonly<z.infer<typeof environment>>;

export const secretVariables: readonly string[] = Object.entries(environment.shape).flatMap(([name, schema]) =>
  schema.meta()?.["secret"] === true ? [name] : [],
);

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

const serverOf = (url: string) => {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 6379}`;
};

/** A server has one eviction policy for all of its databases, and queues must not be evicted. */
const cacheFaults = ({ CACHE_REDIS_URL, REDIS_URL, REDIS_CLUSTER_NODES }: Config): string[] =>
  CACHE_REDIS_URL !== undefined &&
  (REDIS_CLUSTER_NODES?.split(",") ?? (REDIS_URL ? [serverOf(REDIS_URL)] : [])).includes(serverOf(CACHE_REDIS_URL))
    ? ["CACHE_REDIS_URL: must be another server than that of the queues, because it evicts"]
    : [];

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

/** Names are not resolved here if a proxy does, so allowed networks could not be told apart. */
const webhookFaults = ({ WEBHOOK_PROXY_URL, WEBHOOK_ALLOWED_NETWORKS }: Config): string[] =>
  WEBHOOK_PROXY_URL !== undefined && WEBHOOK_ALLOWED_NETWORKS !== undefined
    ? ["WEBHOOK_PROXY_URL and WEBHOOK_ALLOWED_NETWORKS are set, but only one of them may be: the proxy decides instead"]
    : [];

/** An empty variable counts as not set, as in Compose files. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const parsed = environment.safeParse(given);
  const faults = redisFaults(given);
  if (parsed.success)
    faults.push(...cacheFaults(parsed.data), ...operatorFaults(parsed.data), ...webhookFaults(parsed.data));
  if (parsed.success && faults.length === 0) return parsed.data;
  const lines = (parsed.error?.issues ?? []).map((issue) => {
    const name = issue.path.join(".");
    return given[name] === undefined
      ? `${name} is missing: ${environment.shape[name as keyof Config].description}`
      : `${name}: ${issue.message}`;
  });
  throw configError(...faults, ...lines);
}
