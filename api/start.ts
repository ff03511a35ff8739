import { fileURLToPath } from "node:url";
import { createAudit } from "#audit";
import { createClusterStats } from "#cluster-stats";
import type { Owner } from "#idempotency";
import { createQueues, createReplyReader, createWorkerRegistry, isPool } from "#jobs";
import { createKeys } from "#keys";
import { createReturnRequests } from "#money";
import { createByteBudget } from "#platform/byte-budget";
import { atMost, sleep } from "#platform/clock";
import { retry } from "#platform/concurrency/retry";
import { newId } from "#platform/ids";
import { checkSchema } from "#platform/mongo/migrations";
import { serveMetrics } from "#platform/observability/metrics-server";
import { createProbe, createProbes } from "#platform/observability/probe";
import { startTracing } from "#platform/observability/tracing";
import { checkDescriptors } from "#platform/process/descriptors";
import { listen } from "#platform/process/listen";
import { createReceiverAddresses } from "#platform/receiver-addresses";
import {
  connectCacheRedis,
  connectRedis,
  onReconnect,
  pingRedis,
  reconnectTogether,
  startRedis,
} from "#platform/redis";
import { createRefusals } from "#refusals";
import { createCacheUsage, createResponseCache } from "#response-cache";
import { createSessions } from "#sessions";
import { createEventLogs } from "#stored-responses";
import { startTraffic } from "#traffic";
import { createServices, enqueueWhenDue, type ProcessDeps } from "../shared/process.ts";
import { observeBudgets } from "../shared/process-metrics.ts";
import { createApp } from "./app.ts";
import { createResponseReaders } from "./background/readers.ts";
import { createBatchFeeder } from "./batches/index.ts";
import { createUrlCheck } from "./check-webhook-url.ts";
import { createBodyReader } from "./http/body.ts";
import { createListener } from "./http/listener.ts";
import { createUnread } from "./http/unread.ts";
import { createCacheObserver, createCallObserver, createPaymentObserver, observe, observeLines } from "./metrics.ts";
import { apiSchemas } from "./migrations.ts";
import { createDeliveries, createOpenCalls } from "./open-calls/index.ts";
import { createProviderKeyManaging } from "./provider-keys/index.ts";
import { createCachedAnswers } from "./response-cache/index.ts";
import { paidRouteAt } from "./routes/paid.ts";

/** The dashboard's page, as `npm run build` creates it. */
const pages = fileURLToPath(new URL("../dashboard/dist", import.meta.url));
const startTimeoutMs = 10_000;
const startBackoff = { firstMs: 100, maxMs: 100 };
/** Requests that wait under an `Idempotency-Key` are answered this long before the grace period ends. */
const lastAnswersMs = 3_000;
/** Settlements cannot finish while MongoDB is unavailable. After this time they are left to the sweeper. */
const lastSettlementsMs = 10_000;
/** Connections whose clients have not read the last bytes by then are cut. */
const lastBytesMs = 1_000;

/**
 * Connects to the stores and listens. Returns the steps of the shutdown: fail readiness, stop listening and drain, abort,
 * settle, close, send traces.
 */
export async function startApi(deps: ProcessDeps) {
  const { config, clock, log, metrics } = deps;
  const metricsServer = await serveMetrics({ config, metrics, log });
  const tracing = await startTracing(config, { process: "api", clock, log });
  const { mongo, background, settled, ...common } = await createServices(deps);
  await checkSchema(mongo, apiSchemas);
  const { money, payments } = common;
  const redis = connectRedis(config, "fail-fast", log);
  const blocking = connectRedis(config, "blocking", log);
  const subscriber = connectRedis(config, "subscribing", log);

  const keys = createKeys({
    mongo,
    redis,
    money,
    providerKeys: common.providerKeys,
    clock,
    log,
    defaults: {
      requestsPerMinute: config.RATE_LIMIT_REQUESTS_PER_MINUTE,
      tokensPerMinute: config.RATE_LIMIT_TOKENS_PER_MINUTE,
      concurrentRequests: config.RATE_LIMIT_CONCURRENT_REQUESTS,
    },
    uploads: { perMinute: config.RATE_LIMIT_UPLOADS_PER_MINUTE, concurrent: config.RATE_LIMIT_CONCURRENT_UPLOADS },
    addressRequestsPerMinute: config.X402_REQUESTS_PER_MINUTE,
    accountRequestsPerMinute: config.RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE,
    failedSignInsPerMinute: config.SIGN_IN_FAILURES_PER_MINUTE,
    observeLimits: common.writes.limits,
  });
  await payments.x402?.start();
  await Promise.all([redis, blocking, subscriber].map(startRedis));

  const queues = createQueues({ redis, observe: common.writes.jobs, log, chatShards: config.CHAT_SHARDS });
  enqueueWhenDue({ webhooks: common.webhooks, queues, background });
  const registry = createWorkerRegistry({ redis, queues, catalog: common.catalog.hash, clock, log });
  const reader = createReplyReader({
    instance: newId("api"),
    apiTimeoutMs: config.API_TIMEOUT_MS,
    reader: blocking,
    commands: redis,
    clock,
    log,
  });
  // Connections have no offline queue, so one that drops right after it was opened fails its first command.
  const atStart = <T>(work: () => Promise<T>) =>
    retry({ clock, signal: AbortSignal.timeout(startTimeoutMs), backoff: startBackoff }, work);
  await atStart(() => reader.start());
  await registry.start();
  await atStart(() => queues.emptySince());
  const { registration, instance } = reader;
  const unfollow = reconnectTogether(redis, subscriber);
  const returnRequests = await createReturnRequests({ instance, subscriber, commands: redis, clock, log });
  const leases = money.createLeases({ registration, returnRequests });

  const refusals = createRefusals({ mongo, clock, log });
  const cacheUsage = createCacheUsage({ mongo, clock, log });
  const responseCache = createResponseCache({ redis: connectCacheRedis(config, log), files: common.files, clock });
  const services = { ...common, refusals, cacheUsage, responseCache, registry, queues, reader, keys, leases };
  const bodyBudget = createByteBudget(config.BODY_BUDGET_BYTES);
  const responseBudget = createByteBudget(config.RESPONSE_BUDGET_BYTES);
  const unread = createUnread({ budget: responseBudget, clock, log });
  const observeCall = createCallObserver(metrics, common.catalog, common.traffic);
  const traffic = startTraffic({ counter: common.traffic, redis, clock, log });
  const deliveries = createDeliveries({ instance, money, redis, callTimeoutMs: config.CALL_TIMEOUT_MS, clock, log });
  await atStart(() => deliveries.note());
  const eventLogs = createEventLogs({ redis, clock, log });
  const responseReaders = createResponseReaders({
    ...common,
    eventLogs,
    memory: responseBudget,
    pingIntervalMs: config.PING_INTERVAL_MS,
  });
  const openCalls = createOpenCalls({
    ...services,
    deliveries,
    background,
    observeCall,
    pingIntervalMs: config.PING_INTERVAL_MS,
    memory: responseBudget,
    unread,
  });
  reader.onLapse(deliveries.confirm);
  deliveries.onDeath(openCalls.endRefunded);
  const stores = { mongodb: () => mongo.ping(), redis: () => pingRedis(redis), s3: () => common.files.ping() };
  const probes = {
    ...createProbes({ clock, metrics }, stores),
    descriptors: createProbe(clock, checkDescriptors),
  };
  const spoolBudget = createByteBudget(config.UPLOAD_BUDGET_BYTES);
  const clusterStats = createClusterStats({ redis, clock });
  observe({ metrics, registry, queues, openCalls, reader, clusterStats, catalog: common.catalog, clock });
  observeBudgets(metrics, { body: bodyBudget, response: responseBudget, upload: spoolBudget });
  const isAlive = async ({ instance, requestId, pool }: Owner) =>
    instance === reader.instance ||
    (await reader.instanceLives(instance)) ||
    (isPool(pool) && (await queues.isPending(pool, requestId)));
  const state = { draining: false, endsAt: Number.POSITIVE_INFINITY, publicUrl: "" };
  const [delayMs, graceMs] = [config.DRAIN_DELAY * 1_000, config.DRAIN_GRACE * 1_000];
  const limits = {
    backlogLimit: config.BACKLOG_LIMIT,
    random: Math.random,
    nativeFormatsAnyModel: config.NATIVE_FORMATS_ANY_MODEL,
    callTimeoutMs: config.CALL_TIMEOUT_MS,
    byokFeeBps: config.BYOK_FEE_BPS,
  };
  const ending = () => clock.now() >= state.endsAt - lastAnswersMs;
  const observeCacheUse = createCacheObserver(metrics, responseCache);
  const cachedAnswers = createCachedAnswers({
    ...services,
    ...limits,
    noteUse(use) {
      cacheUsage.note(use);
      observeCacheUse(use);
    },
    observeCall,
    memory: responseBudget,
    unread,
    background,
    pingIntervalMs: config.PING_INTERVAL_MS,
    ending,
  });
  const app = createApp({
    ...services,
    cachedAnswers,
    config,
    providerKeyManaging: createProviderKeyManaging(services),
    sessions: createSessions({ mongo, clock }),
    pages,
    eventLogs,
    responseReaders,
    clusterStats,
    traffic,
    audit: createAudit({ mongo, clock, log }),
    isAlive,
    openCalls,
    observeCall,
    tracing,
    background,
    bodyBudget,
    spoolBudget,
    unread,
    observePayment: createPaymentObserver(metrics),
    bodyLimitBytes: config.BODY_LIMIT_BYTES,
    readBody: createBodyReader({ limitBytes: config.BODY_LIMIT_BYTES, budget: bodyBudget, clock }),
    ...limits,
    instance,
    asyncLimits: {
      backlog: config.ASYNC_BACKLOG_LIMIT,
      jobsPerAccount: config.ASYNC_JOBS_PER_ACCOUNT,
      queueMs: config.ASYNC_MAX_QUEUE_SECONDS * 1_000,
    },
    syncTimeoutMs: config.MEDIA_SYNC_TIMEOUT * 1_000,
    probes,
    draining: () => state.draining,
    ending,
    publicUrl: () => state.publicUrl,
    invoiceIssuer: config.INVOICE_ISSUER?.split(";")
      .map((line) => line.trim())
      .filter(Boolean)
      .join("\n"),
    checkWebhookUrl: createUrlCheck(createReceiverAddresses(config)),
  });

  const feeder = createBatchFeeder({
    ...services,
    ...limits,
    instance,
    background,
    routeOf: paidRouteAt,
    publicUrl: () => state.publicUrl,
    liveCalls: openCalls.count,
    poolShare: config.BATCH_POOL_PERCENT / 100,
    linesPerAccount: config.BATCH_CONCURRENCY_PER_ACCOUNT,
  });
  observeLines(metrics, feeder.inFlight);
  const findLost = () => {
    openCalls.findLost();
    feeder.findLost();
  };
  onReconnect(redis, findLost);
  // Redis can also lose data without a disconnect.
  reader.onDataLoss(findLost);
  const { server, connections } = createListener(app, clock);
  const port = await listen(server, { variable: "PORT", port: config.PORT, host: config.HOST });
  state.publicUrl = config.PUBLIC_URL?.replace(/(?<!\/)\/+$/, "") ?? `http://127.0.0.1:${port}`;

  feeder.start();

  return {
    port,
    publicUrl: state.publicUrl,
    metricsPort: metricsServer.port,
    shutdown: [
      {
        // Load balancers need time to see the failed readiness. Until then calls are served, with `Connection: close`.
        name: "fail readiness",
        run: async () => {
          state.draining = true;
          connections.announceClose();
          if (delayMs > 0) await sleep(clock, delayMs);
        },
      },
      {
        name: "stop listening, then drain",
        run: () => {
          state.endsAt = clock.now() + graceMs;
          // What they read can be read on from another instance.
          responseReaders.stop();
          // Each open connection may still carry one more call.
          const drained = connections.close(delayMs).then(() => openCalls.idle());
          return atMost(clock, graceMs, Promise.all([drained, feeder.stop()]));
        },
      },
      { name: "abort", run: () => openCalls.abort() },
      {
        name: "settle",
        run: () =>
          atMost(
            clock,
            lastSettlementsMs,
            settled().then(() => Promise.all([leases.stop(), deliveries.stop()])),
          ),
      },
      {
        name: "close",
        run: async () => {
          registry.stop();
          await connections.end(lastBytesMs);
          await reader.stop();
          await queues.close();
          await traffic.stop();
          await refusals.stop();
          await cacheUsage.stop();
          cachedAnswers.stop();
          redis.disconnect();
          unfollow();
          subscriber.disconnect();
          leases.abandon();
          await mongo.close();
          metricsServer.close();
        },
      },
      { name: "send traces", run: () => tracing?.close() },
    ],
  };
}
