import type { Model } from "#catalog";
import { noCapacity } from "#errors";
import type { Pool, WorkerRegistry } from "#jobs";

/** Refuses what nobody could take up soon. */
export function checkCapacity(
  deps: { registry: WorkerRegistry; backlogLimit: number },
  pool: Pool,
  model: Model,
): void {
  const { registry, backlogLimit } = deps;
  if (registry.serving(pool) === 0) throw noCapacity(`No worker serves the model '${model.id}' right now.`, 2);
  if (registry.backlog(pool) >= backlogLimit)
    throw noCapacity(`Too many calls wait for models like '${model.id}' right now.`, 5);
  if (!model.upstreams.some(({ upstream }) => registry.upstream(upstream) === "ready"))
    throw noCapacity(`No upstream of the model '${model.id}' can take a call right now.`, 10);
}
