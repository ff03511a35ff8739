import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { onTestFinished } from "vitest";
import { auditSchema, createAudit } from "../../api/audit/index.ts";
import { errorHandler, noSuchRoute } from "../../api/http/errors.ts";
import { requestId } from "../../api/http/headers.ts";
import { createRefusals } from "../../api/refusals/index.ts";
import { createAdminRouter, createAdminTokens, identifyByToken } from "../../api/routes/admin/index.ts";
import { loadCatalog } from "../../shared/catalog/index.ts";
import { createClusterStats } from "../../shared/cluster-stats/index.ts";
import { createQueues, createWorkerRegistry } from "../../shared/jobs/index.ts";
import { createPayments, type Payments, paymentsSchema } from "../../shared/payments/index.ts";
import { createByteBudget } from "../../shared/platform/byte-budget.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createMetrics } from "../../shared/platform/metrics.ts";
import { createProbes } from "../../shared/platform/probe.ts";
import { pingRedis } from "../../shared/platform/redis.ts";
import { createTrafficCounter, startTraffic, type TrafficCounter } from "../../shared/traffic/index.ts";
import { type Instance, startInstance } from "./keys-instance.ts";
import { leasesOf } from "./money-setup.ts";
import { migrated } from "./schema.ts";
import { type Stores, testStores } from "./servers.ts";

export const adminToken = "admin-token-of-the-tests-of-32-characters";

/** The fields that tests read one by one. */
interface Body {
  readonly id: string;
  readonly key: string;
  readonly data: readonly { readonly id: string; readonly created_at: number }[];
  readonly has_more: boolean;
  readonly next: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface AdminServer extends Instance {
  readonly payments: Payments;
  /** The paths of all routes, as OpenAPI writes them. */
  readonly routes: readonly string[];
  readonly counter: TrafficCounter;
  /** Writes the counters. */
  readonly flush: () => Promise<void>;
  readonly url: string;
  /** A string body is sent unchanged. */
  readonly ask: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
}

/** The admin interface alone, over HTTP. It ends with the test, or through `onEnd`. */
export async function startAdminServer(
  config: { ADMIN_TOKEN?: string; ADMIN_TOKENS?: string } = { ADMIN_TOKEN: adminToken },
  stores?: Stores,
  onEnd: (stop: () => Promise<void>) => void = onTestFinished,
): Promise<AdminServer> {
  const own = stores ?? (await testStores());
  const instance = await startInstance(own, systemClock, onEnd);
  const log = createLogger("test", "silent");
  const given = { mongo: instance.mongo, money: instance.money, clock: systemClock, log };
  const payments = createPayments({ config: loadConfig({ ...own }), ...given });
  await migrated(instance.mongo, [paymentsSchema, auditSchema]);
  const app = express();
  app.disable("etag").set("query parser", "simple");
  app.use(requestId(systemClock));
  const http = { clock: systemClock, log, bodyBudget: createByteBudget(1024 * 1024) };
  const { mongo, redis } = instance;
  const catalog = loadCatalog(undefined);
  const queues = createQueues({ redis, log });
  const registry = createWorkerRegistry({ redis, queues, catalog: catalog.hash, clock: systemClock, log });
  await registry.start();
  const counter = createTrafficCounter();
  const traffic = startTraffic({ counter, redis, clock: systemClock, log });
  onEnd(async () => {
    registry.stop();
    await traffic.stop();
    await queues.close();
  });
  const refusals = createRefusals({ mongo, clock: systemClock, log });
  onEnd(() => refusals.stop());
  const deps = {
    ...instance,
    refusals,
    ...http,
    payments,
    leases: leasesOf(instance.money),
    catalog,
    registry,
    queues,
    traffic,
    clusterStats: createClusterStats({ redis, clock: systemClock }),
    audit: createAudit({ mongo, clock: systemClock, log }),
    probes: createProbes(
      { clock: systemClock, metrics: createMetrics("api", systemClock) },
      { mongodb: () => mongo.ping(), redis: () => pingRedis(redis), s3: () => Promise.reject(new Error("no storage")) },
    ),
  };
  const tokens = createAdminTokens({ ADMIN_TOKEN: config.ADMIN_TOKEN, ADMIN_TOKENS: config.ADMIN_TOKENS });
  const router = tokens && createAdminRouter(deps, identifyByToken({ ...deps, keys: instance.keys, tokens }));
  if (router) app.use("/admin/v1", router);
  app.use(
    "/session/admin/v1",
    createAdminRouter(deps, () => "operator-of-a-session"),
  );
  app.use(noSuchRoute);
  app.use(errorHandler(http));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  onEnd(async () => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...instance,
    payments,
    routes: (router?.stack ?? []).flatMap(({ route }) => (route ? [route.path.replaceAll(/:(\w+)/g, "{$1}")] : [])),
    counter,
    flush: () => traffic.stop(),
    url,
    async ask(method, path, body, headers = { authorization: `Bearer ${adminToken}` }) {
      const response = await fetch(`${url}/admin/v1${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
    },
  };
}

/** A call whose hold was captured and settled, as by a worker. */
export async function settledCall({ money }: Instance, account: string, requestId: string): Promise<void> {
  const held = { account, requestId, maxNanoUsd: 2_000_000n, minNanoUsd: 2_000_000n };
  await money.hold({ ...held, expiresAt: Date.now() + 60_000 });
  await money.charge({
    account,
    requestId,
    key: "key_1",
    endpoint: "/v1/chat/completions",
    model: "local/chat",
    heldNanoUsd: 2_000_000n,
    costNanoUsd: 1_234_567n,
    upstreamCostNanoUsd: 1_100_000n,
    status: "succeeded",
    upstream: "local",
    attempts: [{ upstream: "local", startedMs: 1, durationMs: 40, outcome: "succeeded" }],
    usage: { input: 12, output: 30 },
    estimated: false,
    queueMs: 3,
    firstTokenMs: 20,
    totalMs: 340,
  });
}
