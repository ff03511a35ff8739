import { Router } from "express";
import { pools, type WorkerRegistry } from "#jobs";

interface Deps {
  readonly ping: Readonly<Record<"mongodb" | "redis", () => Promise<unknown>>>;
  readonly registry: WorkerRegistry;
  readonly draining: () => boolean;
}

const callPools = pools.filter((pool) => pool !== "maintenance");

/** `/healthz`: the process runs. `/readyz`: it can take calls; otherwise 503 with what is missing. */
export function healthRoutes({ ping, registry, draining }: Deps): Router {
  const router = Router();
  const isReachable = async (check: () => Promise<unknown>) => {
    const timeout = new Promise((_, reject) => setTimeout(reject, 1_500).unref());
    return Promise.race([check(), timeout]).then(
      () => true,
      () => false,
    );
  };
  router.get("/healthz", (_req, res) => void res.json({ status: "ok" }));
  router.get("/readyz", async (_req, res) => {
    const [mongodb, redis] = await Promise.all([isReachable(ping.mongodb), isReachable(ping.redis)]);
    const workers = Object.fromEntries(callPools.map((pool) => [pool, registry.serving(pool)]));
    const ready = mongodb && redis && !draining() && Object.values(workers).some((count) => count > 0);
    res.status(ready ? 200 : 503).json({ status: ready ? "ready" : "not ready", mongodb, redis, workers });
  });
  return router;
}
