import type { Model } from "#catalog";
import { noCapacity } from "#errors";
import type { Picture, Pool } from "#jobs";

/** Refuses what nobody could take up soon. */
export function checkCapacity(deps: { picture: Picture; backlogLimit: number }, pool: Pool, model: Model): void {
  const { picture, backlogLimit } = deps;
  if (picture.serving(pool) === 0) throw noCapacity(`No worker serves the model '${model.id}' right now.`, 2);
  if (picture.backlog(pool) >= backlogLimit)
    throw noCapacity(`Too many calls wait for models like '${model.id}' right now.`, 5);
  if (!model.upstreams.some(({ upstream }) => picture.upstream(upstream) === "ready"))
    throw noCapacity(`No upstream of the model '${model.id}' can take a call right now.`, 10);
}
