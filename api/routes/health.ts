import { Router } from "express";
import type { Pool, WorkerRegistry } from "#jobs";
import { pools } from "#jobs";

interface Deps {
  readonly ping: Readonly<Record<"mongodb" | "redis", () => Promise<unknown>>>;
  readonly registry: WorkerRegistry;
  readonly draining: () => boolean;
}

const callPools = pools.filter((pool) => pool !== "maintenance");

/** `/healthz`: the process answers. `/readyz`: it can take calls; 503 with what is missing otherwise. */
export function healthRoutes({ ping, registry, draining }: Deps): Router {
  const router = Router();
  const reach = async (check: () => Promise<unknown>) => {
    const late = new Promise((_, reject) => setTimeout(reject, 1_500).unref());
    return Promise.race([check(), late]).then(
      () => true,
      () => false,
    );
  };
  router.get("/healthz", (_req, res) => void res.json({ status: "ok" }));
  router.get("/readyz", async (_req, res) => {
    const [mongodb, redis] = await Promise.all([reach(ping.mongodb), reach(ping.redis)]);
    const workers = Object.fromEntries(callPools.map((pool: Pool) => [pool, registry.serving(pool)]));
    const ready = mongodb && redis && !draining() && Object.values(workers).some((count) => count > 0);
    res.status(ready ? 200 : 503).json({ status: ready ? "ready" : "not ready", mongodb, redis, workers });
  });
  return router;
}
