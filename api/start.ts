import { once } from "node:events";
import type { Owner } from "#idempotency";
import { createQueues, createReplyReader, createWorkerRegistry, isPool } from "#jobs";
import { createKeys } from "#keys";
import { createRecalls } from "#money";
import { createByteBudget } from "#platform/byte-budget";
import { atMost } from "#platform/clock";
import { newId } from "#platform/ids";
import { listen } from "#platform/listen";
import { serveMetrics } from "#platform/metrics-server";
import { createProbes } from "#platform/probe";
import { connectRedis, onReconnect, pingRedis, reconnectTogether, startRedis } from "#platform/redis";
import { retry } from "#platform/retry";
import { createServices, type ProcessDeps } from "../shared/process.ts";
import { createApp } from "./app.ts";
import { createBodyReader } from "./http/body.ts";
import { createListener } from "./http/listener.ts";
import { createCallObserver, observe } from "./metrics.ts";
import { createOpenCalls } from "./open-calls/index.ts";

const startTimeoutMs = 10_000;
const startBackoff = { firstMs: 100, maxMs: 100 };
/** While MongoDB is unavailable a settlement does not end: after this the sweeper has to make it. */
const lastSettlementsMs = 10_000;
/** Then connections are cut whose last bytes were not read. */
const lastBytesMs = 1_000;

/** Connects to the stores and listens. Returns the steps of the shutdown: listen -> drain -> flush -> close. */
export async function startApi(deps: ProcessDeps) {
  const { config, clock, log, metrics } = deps;
  const metricsServer = await serveMetrics({ config, metrics, log });
  const { mongo, background, settled, ...common } = await createServices(deps);
  const { money, payments } = common;
  const redis = connectRedis(config, "fail-fast", log);
  const blocking = connectRedis(config, "blocking", log);
  const subscriber = connectRedis(config, "subscribing", log);

  const keys = createKeys({
    mongo,
    redis,
    money,
    clock,
    log,
    defaults: {
      requestsPerMinute: config.RATE_LIMIT_REQUESTS_PER_MINUTE,
      tokensPerMinute: config.RATE_LIMIT_TOKENS_PER_MINUTE,
      concurrentRequests: config.RATE_LIMIT_CONCURRENT_REQUESTS,
    },
    uploads: { perMinute: config.RATE_LIMIT_UPLOADS_PER_MINUTE, concurrent: config.RATE_LIMIT_CONCURRENT_UPLOADS },
    addressRequestsPerMinute: config.X402_REQUESTS_PER_MINUTE,
  });
  await keys.prepare();
  await payments.x402?.start();
  await Promise.all([redis, blocking, subscriber].map(startRedis));

  const queues = createQueues({ redis, log, chatShards: config.CHAT_SHARDS });
  const registry = createWorkerRegistry({ redis, queues, catalog: common.catalog.hash, clock, log });
  const reader = createReplyReader({ instance: newId("api"), reader: blocking, commands: redis, clock, log });
  // Without an offline queue a connection that drops right after it was opened fails its first command.
  const atStart = <T>(work: () => Promise<T>) =>
    retry({ clock, signal: AbortSignal.timeout(startTimeoutMs), backoff: startBackoff }, work);
  await atStart(() => reader.start());
  await registry.start();
  await atStart(() => queues.emptySince());
  const { registration } = reader;
  const unfollow = reconnectTogether(redis, subscriber);
  const recalls = await createRecalls({ instance: reader.instance, subscriber, commands: redis, log });
  const leases = money.createLeases({ registration, recalls });

  const services = { ...common, registry, queues, reader, keys, leases };
  const bodyBudget = createByteBudget(config.BODY_BUDGET_BYTES);
  const observeCall = createCallObserver(metrics);
  const openCalls = createOpenCalls({
    ...services,
    background,
    observeCall,
    pingIntervalMs: config.PING_INTERVAL_MS,
    memory: bodyBudget,
  });
  onReconnect(redis, () => openCalls.reconnected());
  const probes = createProbes(
    { clock, metrics },
    { mongodb: () => mongo.ping(), redis: () => pingRedis(redis), s3: () => common.files.ping() },
  );
  observe({ metrics, registry, queues, openCalls, catalog: common.catalog, clock });
  const isAlive = async ({ instance, requestId, pool }: Owner) =>
    instance === reader.instance ||
    (await reader.instanceLives(instance)) ||
    (isPool(pool) && (await queues.isPending(pool, requestId)));
  const state = { draining: false, publicUrl: "" };
  const app = createApp({
    ...services,
    config,
    isAlive,
    openCalls,
    observeCall,
    background,
    bodyBudget,
    spoolBudget: createByteBudget(config.UPLOAD_BUDGET_BYTES),
    bodyLimitBytes: config.BODY_LIMIT_BYTES,
    readBody: createBodyReader({ limitBytes: config.BODY_LIMIT_BYTES, budget: bodyBudget, clock }),
    instance: reader.instance,
    backlogLimit: config.BACKLOG_LIMIT,
    random: Math.random,
    nativeFormatsAnyModel: config.NATIVE_FORMATS_ANY_MODEL,
    callTimeoutMs: config.CALL_TIMEOUT_MS,
    syncTimeoutMs: config.MEDIA_SYNC_TIMEOUT * 1_000,
    probes,
    draining: () => state.draining,
    publicUrl: () => state.publicUrl,
  });

  const server = createListener(app, clock);
  const port = await listen(server, { variable: "PORT", port: config.PORT, host: config.HOST });
  const closed = once(server, "close");
  state.publicUrl = config.PUBLIC_URL?.replace(/\/+$/, "") ?? `http://127.0.0.1:${port}`;

  return {
    port,
    publicUrl: state.publicUrl,
    metricsPort: metricsServer.port,
    shutdown: [
      {
        name: "listen",
        run: () => {
          state.draining = true;
          server.close();
          server.closeIdleConnections();
        },
      },
      { name: "drain", run: () => openCalls.drain(config.SHUTDOWN_GRACE_MS) },
      {
        name: "settle",
        run: () =>
          atMost(
            clock,
            lastSettlementsMs,
            settled().then(() => leases.stop()),
          ),
      },
      {
        name: "close",
        run: async () => {
          registry.stop();
          server.closeIdleConnections();
          const cancel = clock.after(lastBytesMs, () => server.closeAllConnections());
          await closed;
          cancel();
          await reader.stop();
          await queues.close();
          redis.disconnect();
          unfollow();
          subscriber.disconnect();
          leases.abandon();
          await mongo.close();
          metricsServer.close();
        },
      },
    ],
  };
}
