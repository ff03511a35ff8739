import { loadCatalog } from "#catalog";
import { attemptOutcomes } from "#money";
import { systemClock } from "#platform/clock";
import { createMetrics, type Metrics } from "#platform/observability/metrics";
import { createTrafficCounter } from "#traffic";
import { createCallObserver } from "../../api/metrics.ts";
import { createProcessObservers } from "../../shared/process-metrics.ts";
import { createAttemptObserver } from "../../workers/metrics.ts";
import { runBench } from "./bench.ts";
import { gatewayCpu } from "./measure.ts";
import { median } from "./table.ts";

/**
 * The cost of metrics: `npm run bench:metrics`. Measures the processor time of all observations of a call, alongside
 * that of a whole call in the same run, and the cost of a scrape with every series that callers can create for the
 * shipped catalog's models.
 */
const observedCalls = 200_000;
const scrapes = 10;
const endpoints = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1beta/models"];
const codes = ["none", "invalid_value", "no_capacity", "upstream_error", "upstream_timeout"];

const catalog = loadCatalog(undefined);
const models = catalog.list().map(({ id, upstreams }) => ({ id, upstreams: upstreams.map((each) => each.upstream) }));

/** All observations of one call, as if it shared no write with another call. */
function createObservations(api: Metrics, worker: Metrics) {
  const traffic = createTrafficCounter();
  const observeCall = createCallObserver(api, catalog, traffic);
  const ofApi = createProcessObservers(api, catalog, traffic);
  const ofWorker = createProcessObservers(worker, catalog, traffic);
  const attempts = createAttemptObserver(worker, traffic);
  const observeWait = worker.histogram("inference_queue_wait_seconds");
  return (at: number, model: (typeof models)[number], endpoint: string, code: string): void => {
    const ms = 1 + (at % 1_000);
    for (const write of ["limits", "leases", "jobs", "limits"] as const) ofApi.writes[write](1, ms / 1e4);
    observeWait({ pool: "chat" }, ms / 1e4);
    const upstream = model.upstreams[at % model.upstreams.length] ?? "other";
    const outcome = attemptOutcomes[code === "none" ? 0 : at % attemptOutcomes.length] ?? "failed";
    const attempt = { upstream, model: model.id, isOwn: false };
    attempts.firstEvent(attempt, ms);
    attempts.ended(attempt, outcome, ms);
    const usage = { input: 25, cached_input: 5, output: 40 };
    ofWorker.money.captured(
      { model: model.id, usage, status: "succeeded" },
      { chargedNanoUsd: 1_000n, shortfallNanoUsd: 0n },
    );
    ofWorker.writes.ledger(1, ms / 1e4);
    for (const write of ["frames", "frames"] as const) ofWorker.writes[write](1, ms / 1e4);
    const admitted = { model: model.id, totalMs: ms, firstEventMs: ms / 2, providerMs: ms / 3 };
    observeCall({ endpoint, admitted, status: code === "none" ? 200 : 502, code });
  };
}

const cpuMs = (since?: NodeJS.CpuUsage) => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
};

async function measureObservations() {
  const [api, worker] = [createMetrics("api", systemClock), createMetrics("worker", systemClock)];
  const observe = createObservations(api, worker);
  const round = (from: number) => {
    for (let at = from; at < from + observedCalls; at++) {
      const model = models[at % models.length];
      if (model)
        observe(
          at,
          model,
          endpoints[at % endpoints.length] ?? "",
          codes[at % 20 === 0 ? at % codes.length : 0] ?? "none",
        );
    }
  };
  round(0);
  const before = process.cpuUsage();
  round(observedCalls);
  const perCallMs = cpuMs(before) / observedCalls;

  // Every model at every endpoint with every outcome, as hostile callers could create them.
  for (const model of models)
    for (const endpoint of endpoints)
      for (const [nth, code] of codes.entries())
        for (const at of attemptOutcomes.keys()) observe(nth * 6 + at, model, endpoint, code);
  const measureScrape = async (metrics: Metrics) => {
    const started = process.cpuUsage();
    let text = "";
    for (let made = 0; made < scrapes; made++) text = await metrics.text();
    const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
    return { series, mebi: text.length / 1024 ** 2, ms: cpuMs(started) / scrapes };
  };
  return { perCallMs, api: await measureScrape(api), worker: await measureScrape(worker) };
}

await runBench("bench-metrics", async ({ run, scenarios, gateways, say }) => {
  const rows: string[] = [];
  for (const stream of [false, true]) {
    await run(scenarios.warmUp(stream), gateways);
    const scenario = scenarios.closed(stream, 50);
    const rounds = await run(scenario, gateways);
    const callMs = median(rounds.map(gatewayCpu));
    const { perCallMs, api, worker } = await measureObservations();
    const percent = ((100 * perCallMs) / callMs).toFixed(2);
    rows.push(
      `${scenario.title}: a call ${callMs.toFixed(2)} ms of processor time, its observations ${(perCallMs * 1_000).toFixed(1)} µs: ${percent} %`,
    );
    for (const [name, { series, mebi, ms }] of Object.entries({ api, worker }))
      rows.push(
        `scrape of the ${name}: ${series} series, ${mebi.toFixed(1)} MiB, ${ms.toFixed(0)} ms of processor time`,
      );
  }
  for (const row of rows) say(row);
});
