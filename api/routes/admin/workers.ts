import { z } from "zod";
import type { Catalog, Model, Upstream } from "#catalog";
import { noCapacity } from "#errors";
import type { WorkerRegistry } from "#jobs";
import { isListed } from "../../admission/model.ts";
import { parse } from "../../http/input.ts";
import type { Handler } from "../../http/json-routes.ts";

const noQuery = z.strictObject({});
/** These lists are as long as the catalog, or as there are processes, so they have no pages. */
const list = (data: readonly object[]) => ({ object: "list", data, has_more: false, next: null });

/** Worker processes, the upstreams that they call, and the models that those serve: as each worker says every second. */
export function workerHandlers({ registry, catalog }: { registry: WorkerRegistry; catalog: Catalog }) {
  function liveWorkers() {
    const workers = registry.workers();
    if (!workers) throw noCapacity("The workers cannot be read right now: Redis does not answer.", 1);
    return workers;
  }

  const served = Map.groupBy(
    catalog.list().flatMap((model) => model.upstreams.map(({ upstream }) => ({ upstream, id: model.id }))),
    ({ upstream }) => upstream,
  );

  function showUpstream({ id, provider, baseUrl, concurrency }: Upstream) {
    const states = liveWorkers().flatMap(({ upstreams }) => upstreams[id] ?? []);
    const count = (state: string) => states.filter((each) => each === state).length;
    return {
      id,
      object: "upstream",
      provider,
      state: registry.upstream(id),
      workers: { ready: count("ready"), open: count("open"), no_key: count("no key") },
      models: served.get(id)?.map((model) => model.id) ?? [],
      base_url: baseUrl ?? null,
      concurrency: concurrency ?? null,
    };
  }

  const showModel = (model: Model) => ({
    id: model.id,
    object: "catalog_model",
    name: model.name,
    owned_by: model.ownedBy,
    type: model.type,
    endpoint: model.endpoint,
    listed: isListed(registry, model),
    deprecated_at: model.deprecatedAt,
    elite_discount_bps: model.eliteDiscountBps,
    pricing: catalog.pricing(model),
    upstreams: model.upstreams.map((each) => ({
      id: each.upstream,
      model: each.model,
      state: registry.upstream(each.upstream),
    })),
  });

  return {
    list: async (req) => {
      parse(noQuery, req.query);
      const { hash } = registry.catalog();
      return list(
        liveWorkers().map((worker) => ({
          id: worker.id,
          object: "worker",
          version: worker.version ?? null,
          started_at: worker.startedAt === undefined ? null : Math.floor(worker.startedAt / 1_000),
          catalog: worker.catalog,
          same_catalog: worker.catalog === hash,
          pools: worker.pools,
          upstreams: worker.upstreams,
        })),
      );
    },
    upstreams: async (req) => {
      parse(noQuery, req.query);
      return list([...catalog.upstreams.values()].map(showUpstream));
    },
    catalog: async (req) => {
      parse(noQuery, req.query);
      return list(catalog.list().map(showModel));
    },
  } satisfies Record<string, Handler>;
}
