import { Router } from "express";
import { callPools, type WorkerRegistry } from "#jobs";
import type { Probe } from "#platform/observability/probe";

interface Deps {
  readonly probes: Readonly<Record<"mongodb" | "redis" | "s3" | "descriptors", Probe>>;
  readonly registry: WorkerRegistry;
  readonly draining: () => boolean;
}

/**
 * `/healthz` answers while the process runs. `/readyz` answers 200 if it can take calls, otherwise 503 with what is missing.
 * It is 200 and `degraded` without S3, since most calls can still be served, and while catalogs differ, as during a rollout.
 */
export function healthRoutes({ probes, registry, draining }: Deps): Router {
  const router = Router();
  const replies = async (probe: Probe) => (await probe()) !== undefined;
  router.get("/healthz", (_req, res) => void res.json({ status: "ok" }));
  router.get("/readyz", async (_req, res) => {
    const [mongodb, redis, s3, descriptors] = await Promise.all(
      [probes.mongodb, probes.redis, probes.s3, probes.descriptors].map(replies),
    );
    const workers = Object.fromEntries(callPools.map((pool) => [pool, registry.serving(pool)]));
    const catalog = registry.catalog();
    const isReady = mongodb && redis && descriptors && !draining() && Object.values(workers).some((count) => count > 0);
    const whenReady = s3 && !catalog.differs ? "ready" : "degraded";
    const status = isReady ? whenReady : "not ready";
    res.status(isReady ? 200 : 503).json({ status, mongodb, redis, s3, descriptors, workers, catalog });
  });
  return router;
}
