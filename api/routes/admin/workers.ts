import { z } from "zod";
import type { Catalog } from "#catalog";
import { noCapacity } from "#errors";
import { upstreamStates, type WorkerRegistry } from "#jobs";
import { isListed } from "../../admission/model.ts";
import { fields, orNull, tag, unixSecondsOfMs } from "../../http/fields.ts";
import { listOf, wholeList } from "../../http/page.ts";
import { route } from "./route.ts";

/** Worker processes, their upstreams and the models that these serve, as each worker reports every second. */

export const state = z
  .enum(upstreamStates)
  .describe("`open`: the circuit breaker is open. `key refused`: the provider does not accept the key");

/** The latest failure at an upstream that was not the fault of its request. */
export const lastFailure = fields({ at: unixSecondsOfMs, message: z.string() }).nullable();

const worker = fields({
  id: z.string(),
  object: tag("worker"),
  version: orNull(z.string()),
  started_at: orNull(unixSecondsOfMs),
  catalog: z.string(),
  same_catalog: z.boolean().describe("Its catalog is the same as that of this API instance"),
  pools: z.record(z.string(), z.object({ free: z.int(), running: z.int() })),
  upstreams: z.record(z.string(), state),
}).meta({ id: "Worker" });

const ms = z.int().nullable().describe("Milliseconds, within 5 %");
const attempts = fields({
  attempts: z
    .int()
    .describe("Attempts with the operator's key that ended, those of a call that went elsewhere included"),
  failed: z
    .int()
    .describe("Those that failed, timed out, or met a 429 or 503. Not those whose request the upstream refused"),
  first_token_p50_ms: ms.describe("The median time to the first event of a stream, within 5 %; null without streams"),
  first_token_p95_ms: ms,
  total_p50_ms: ms.describe("The median duration of attempts that succeeded"),
  total_p95_ms: ms,
}).meta({ id: "UpstreamAttempts" });

const upstream = fields({
  id: z.string(),
  object: tag("upstream"),
  provider: z.string(),
  state: state.describe("The best state among the workers"),
  workers: fields({ ready: z.int(), open: z.int(), key_refused: z.int(), no_key: z.int() }),
  models: z.array(z.string()),
  base_url: orNull(z.string()).describe("The address in the catalog"),
  addresses: z.array(z.string()).describe("Those that workers with its key call"),
  last_failure: lastFailure,
  traffic: orNull(fields({ last_5_minutes: attempts, last_hour: attempts, last_day: attempts })).describe(
    "Counts of all processes, up to 10 s old; null while Redis does not answer",
  ),
  concurrency: orNull(z.int()).describe("Maximum number of concurrent calls from one worker process"),
}).meta({ id: "Upstream" });

const catalogModel = fields({
  id: z.string(),
  object: tag("catalog_model"),
  name: z.string(),
  owned_by: z.string(),
  type: z.string(),
  endpoint: z.string(),
  listed: z.boolean().describe("At least one worker has an accepted key of one of its upstreams"),
  deprecated_at: z.int().describe("unix seconds").nullable(),
  elite_discount_bps: z.int(),
  pricing: z.record(z.string(), z.object({ unit: z.string(), list_usd: z.string(), elite_usd: z.string() })),
  upstreams: z
    .array(
      z.object({
        id: z.string(),
        model: z.string().describe("The model's name at the upstream"),
        state,
        cost: z
          .record(z.string(), z.object({ unit: z.string(), usd: z.string() }))
          .nullable()
          .describe("What the upstream charges us; null if the catalog does not have it"),
      }),
    )
    .describe("In the order in which they are tried"),
}).meta({ id: "CatalogModel" });

function liveWorkers(registry: WorkerRegistry) {
  const workers = registry.workers();
  if (!workers) throw noCapacity("The workers cannot be read right now: Redis does not answer.", 1);
  return workers;
}

const modelsByUpstream = (catalog: Catalog) =>
  Map.groupBy(
    catalog.list().flatMap((model) => model.upstreams.map((each) => ({ upstream: each.upstream, id: model.id }))),
    (each) => each.upstream,
  );

/** These lists are only as long as the catalog or the number of processes, so they have no pages. */
export const workerRoutes = [
  route({
    method: "get",
    path: "/workers",
    operationId: "listWorkers",
    summary: "Live worker processes",
    query: {},
    answers: { 200: "The complete list" },
    answer: listOf(worker).meta({ id: "WorkerList" }),
    async handle({ registry }) {
      const { hash } = registry.catalog();
      return wholeList(liveWorkers(registry).map((each) => ({ ...each, sameCatalog: each.catalog === hash })));
    },
  }),
  route({
    method: "get",
    path: "/upstreams",
    operationId: "listUpstreams",
    summary: "The catalog's upstreams, with their state",
    query: {},
    answers: { 200: "The complete list" },
    answer: listOf(upstream).meta({ id: "UpstreamList" }),
    async handle({ registry, catalog, upstreamTraffic }) {
      const workers = liveWorkers(registry);
      const trafficOf = await upstreamTraffic();
      const served = modelsByUpstream(catalog);
      const shown = [...catalog.upstreams.values()].map((each) => {
        const states = workers.flatMap(({ upstreams }) => upstreams[each.id] ?? []);
        const details = registry.details(each.id);
        const count = (wanted: string) => states.filter((one) => one === wanted).length;
        return {
          ...each,
          state: registry.upstream(each.id),
          workers: {
            ready: count("ready"),
            open: count("open"),
            keyRefused: count("key refused"),
            noKey: count("no key"),
          },
          addresses: details.addresses,
          lastFailure: details.lastFailure ?? null,
          traffic: trafficOf?.(each.id),
          models: served.get(each.id)?.map(({ id }) => id) ?? [],
        };
      });
      return wholeList(shown);
    },
  }),
  route({
    method: "get",
    path: "/catalog",
    operationId: "listCatalog",
    summary: "The catalog's models, with the state of their upstreams",
    query: {},
    answers: { 200: "The complete list" },
    answer: listOf(catalogModel).meta({ id: "CatalogModelList" }),
    async handle({ registry, catalog }) {
      const shown = catalog.list().map((model) => ({
        ...model,
        listed: isListed(registry, model),
        pricing: model.pricing,
        upstreams: model.upstreams.map((each) => ({
          id: each.upstream,
          model: each.model,
          state: registry.upstream(each.upstream),
          cost: each.cost?.lines ?? null,
        })),
      }));
      return wholeList(shown);
    },
  }),
];
