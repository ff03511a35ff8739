import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Config } from "./config.ts";
import type { Logger } from "./logger.ts";

/**
 * `fail-fast`: commands of the API. They fail immediately while Redis is unavailable, and after about half a second
 * without a reply.
 * `waiting`: commands of workers, and BullMQ. They wait until Redis has recovered.
 * `blocking`: one blocking command at a time (XREAD). Waits like `waiting`.
 * `subscribing`: a subscriber. Waits like `waiting`. Its user subscribes again whenever it is ready, because ioredis
 * leaves the promise of a subscription alone that it repeats itself: one that fails would end the process.
 */
export type RedisMode = "fail-fast" | "waiting" | "blocking" | "subscribing";

/** One server, the primary that sentinels name, or a cluster. Keys of one command or script share a hash tag. */
export type RedisClient = Redis | Cluster;

/** Overrides whether the commands of a turn of the event loop share a write. */
type Batching = Pick<RedisOptions, "enableAutoPipelining">;

export type RedisConfig = Pick<Config, keyof Config & `REDIS_${string}`>;

/**
 * Errors of a server that is no longer the primary, including errors from within a script. It does not close
 * connections, so only a new connection reaches the server that took over.
 */
const demoted = /^(READONLY|UNBLOCKED|MASTERDOWN|LOADING) /;
const reconnect = true;
const reconnectAndResend = 2;
const retryDelayMs = (times: number) => Math.min(50 * times, 500);
const betweenTriesMs = 100;

const piping = (mode: RedisMode) => ({
  autoResubscribe: false,
  enableOfflineQueue: mode !== "fail-fast",
  enableAutoPipelining: mode === "waiting",
  // Frames are already batched, so a pipeline would only delay them.
  autoPipeliningIgnoredCommands: ["XADD"],
});

const connectionOptions = (config: RedisConfig, mode: RedisMode) =>
  ({
    maxRetriesPerRequest: mode === "fail-fast" ? 0 : null,
    // Detects a server that hangs. Longer than a blocking read, which lasts 5 s.
    ...(mode === "fail-fast" ? { connectTimeout: 1_000 } : { socketTimeout: 20_000 }),
    keepAlive: 10_000,
    // A refused command changed nothing, so it may be resent. BullMQ duplicates this connection with its options.
    reconnectOnError: ({ message }) => demoted.test(message) && (mode === "fail-fast" ? reconnect : reconnectAndResend),
    ...(config.REDIS_USERNAME !== undefined && { username: config.REDIS_USERNAME }),
    ...(config.REDIS_PASSWORD !== undefined && { password: config.REDIS_PASSWORD }),
    ...(config.REDIS_TLS && { tls: {} }),
    ...(config.REDIS_DATABASE > 0 && { db: config.REDIS_DATABASE }),
  }) satisfies RedisOptions;

/** Options of a cluster, which queries another node where a connection to a single node would reconnect. */
const clusterOptions = (config: RedisConfig, mode: RedisMode) => ({
  ...piping(mode),
  redisOptions: connectionOptions(config, mode),
  clusterRetryStrategy: retryDelayMs,
  // A command whose connection ended may have run. In the API it fails, as with a single server.
  retryDelayOnFailover: mode === "fail-fast" ? 0 : betweenTriesMs,
  retryDelayOnClusterDown: mode === "fail-fast" ? 0 : betweenTriesMs,
  ...(mode !== "fail-fast" && { maxRedirections: Number.POSITIVE_INFINITY, retryDelayOnMoved: betweenTriesMs / 2 }),
});

const nodesOf = (list: string) =>
  list.split(",").map((node) => {
    const at = node.lastIndexOf(":");
    return { host: node.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(node.slice(at + 1)) };
  });

const silenceTickMs = 200;
const silentTicks = 2;

/**
 * Ends a connection whose server hangs. It counts ticks, because a timeout would also end a healthy one after a pause
 * of this process: of the ticks that a pause delays, only one runs before the replies that have arrived are read.
 */
function endWhenSilent(redis: Redis): void {
  const { stream } = redis;
  let ticks = 0;
  stream.on("data", () => {
    ticks = 0;
  });
  const timer = setInterval(() => {
    if (ticks++ === silentTicks) stream.destroy(new Error("Redis does not reply."));
    else if (redis.status === "ready") redis.ping().catch(() => {});
  }, silenceTickMs);
  stream.once("close", () => clearInterval(timer));
}

/**
 * Connects immediately, in the background. `lazyConnect` is not used: BullMQ copies the options for its blocking
 * connections, and a connection whose first, lazy `connect()` fails would never take a job although ioredis connects it
 * later.
 */
export function connectRedis(config: RedisConfig, mode: RedisMode, log: Logger, more: Batching = {}): RedisClient {
  const redis = open(config, mode, more);
  const prepare = (connection: Redis) => {
    // Several commands that are refused together each add listeners when they end the connection.
    connection.on("connect", () => connection.stream.setMaxListeners(0));
    if (mode === "fail-fast") connection.on("connect", () => endWhenSilent(connection));
  };
  if (redis instanceof Redis) prepare(redis);
  else redis.on("+node", prepare);
  // Without a listener ioredis prints to the console. It reconnects automatically.
  const onError = (error: Error) => log.warn({ err: error.message, mode }, "error of the Redis connection");
  redis.on("error", onError).on("node error", onError);
  return redis;
}

/**
 * Connects to the server of the response cache in the mode `fail-fast`; returns undefined if none is configured. Do not
 * wait for it with `startRedis`: while it is down, its commands fail, and ioredis reconnects in the background.
 */
export function connectCacheRedis(config: Config, log: Logger): RedisClient | undefined {
  if (config.CACHE_REDIS_URL === undefined) return undefined;
  const address = { REDIS_URL: config.CACHE_REDIS_URL, REDIS_SENTINEL_NAME: "", REDIS_TLS: false, REDIS_DATABASE: 0 };
  // The lookups of a turn of the event loop share one write.
  return connectRedis(address, "fail-fast", log.child({ redis: "cache" }), { enableAutoPipelining: true });
}

function open(config: RedisConfig, mode: RedisMode, more: Batching): RedisClient {
  const { REDIS_URL, REDIS_SENTINELS, REDIS_CLUSTER_NODES } = config;
  const options = { ...piping(mode), ...connectionOptions(config, mode), retryStrategy: retryDelayMs, ...more };
  if (REDIS_CLUSTER_NODES !== undefined) {
    const nodes = nodesOf(REDIS_CLUSTER_NODES);
    return mode === "subscribing" ? subscribeAtAny(nodes, options) : new Cluster(nodes, clusterOptions(config, mode));
  }
  if (REDIS_SENTINELS === undefined) return new Redis(REDIS_URL ?? "", options);
  return new Redis({
    ...options,
    sentinels: nodesOf(REDIS_SENTINELS),
    name: config.REDIS_SENTINEL_NAME,
    // After the timeout, the next sentinel is queried.
    sentinelCommandTimeout: 1_000,
    ...(config.REDIS_SENTINEL_PASSWORD !== undefined && { sentinelPassword: config.REDIS_SENTINEL_PASSWORD }),
    ...(config.REDIS_TLS && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
  });
}

/**
 * A cluster forwards messages to all of its nodes. A single connection that moves from node to node reports
 * interruptions; the subscriber inside `Cluster` does not, and never detects a node that hangs.
 */
function subscribeAtAny(nodes: readonly { host: string; port: number }[], options: RedisOptions): Redis {
  let next = Math.floor(Math.random() * nodes.length);
  const following = () => nodes[next++ % nodes.length];
  const retryStrategy = (times: number) => {
    Object.assign(redis.options, following());
    return retryDelayMs(times);
  };
  const redis: Redis = new Redis({ ...(options as object), ...following(), retryStrategy });
  return redis;
}

/** The primaries that serve slots, as far as this client knows. */
const primariesOf = (cluster: Cluster) => new Set(cluster.slots.flatMap((nodes) => nodes[0] ?? []));

/** Rejects if the connection to any primary is missing, in which case a worker's command would wait. */
export async function pingRedis(redis: RedisClient): Promise<void> {
  if (redis.status !== "ready") throw new Error(`The connection to Redis is ${redis.status}.`);
  if (redis instanceof Redis) return void (await redis.ping());
  const connections = new Map<string, Redis>();
  for (const node of redis.nodes("master")) connections.set(`${node.options.host}:${node.options.port}`, node);
  for (const primary of primariesOf(redis))
    if (!connections.has(primary)) {
      // Otherwise only a command for one of its slots would find out which node serves them now.
      redis.refreshSlotsCache();
      throw new Error(`There is no connection to ${primary}.`);
    }
  await Promise.all([...connections.values()].map((node) => node.ping()));
}

const startTimeoutMs = 10_000;

/** Waits at most ten seconds for the first connection: startup is not latency-critical. ioredis retries. */
export async function startRedis(redis: RedisClient): Promise<void> {
  if (redis.status !== "ready") await firstConnection(redis);
  // The nodes of a cluster are connected only when they are first needed.
  if (redis instanceof Cluster) await Promise.all(redis.nodes("master").map((node) => node.ping()));
}

async function firstConnection(redis: RedisClient): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let failure = new Error("Redis does not reply.");
  const onError = (error: Error) => {
    failure = error;
  };
  const timer = setTimeout(() => {
    redis.disconnect();
    reject(failure);
  }, startTimeoutMs);
  redis.on("error", onError).once("ready", resolve);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off("error", onError).off("ready", resolve);
  }
}

/**
 * Calls `listener` whenever a server may have taken over, or started without the latest data: after each connection to
 * it, and when the primaries of a cluster change. Returns a function that stops this.
 */
export function onReconnect(redis: RedisClient, listener: () => void): () => void {
  if (redis instanceof Redis) {
    redis.on("ready", listener);
    return () => redis.off("ready", listener);
  }
  let stopped = false;
  const call = () => {
    if (!stopped) listener();
  };
  const watch = (node: Redis) => node.on("ready", call);
  const watched = redis.nodes();
  for (const node of watched) watch(node);
  let known = primariesOf(redis);
  const compare = () => {
    const primaries = primariesOf(redis);
    const isSame = primaries.size === known.size && primaries.isSubsetOf(known);
    known = primaries;
    if (!isSame) call();
  };
  redis.on("+node", watch).on("refresh", compare);
  return () => {
    stopped = true;
    redis.off("+node", watch).off("refresh", compare);
  };
}

/**
 * A connection that only reads receives no error when its server is demoted, so it reconnects whenever a writing
 * connection has reconnected. Returns a function that stops this.
 */
export function reconnectTogether(writing: RedisClient, reading: RedisClient): () => void {
  return onReconnect(writing, () => {
    const connections = reading instanceof Redis ? [reading] : reading.nodes();
    // A cluster reconnects automatically, to the node that it finds.
    for (const connection of connections)
      if (connection.status === "ready") connection.disconnect(reading instanceof Redis);
  });
}
