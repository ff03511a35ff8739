/**
 * What `npm run check:alerts` holds the rules of alerts.yml to: series of a healthy service, in which nothing fires, and for each
 * alert the series that differ when it should fire. Values are in promtool's notation: `0+6x240` is 0, 6, 12 ..., one a minute.
 */

type Series = Readonly<Record<string, string>>;

const flat = (value: number) => `${value}x240`;
const rising = (perMinute: number) => `0+${perMinute}x240`;
const absent = "_x240";

const processes = ['process="api", job="api", instance="a1"', 'process="worker", job="worker", instance="w1"'];
const info = (which: number, version: string) => `inference_build_info{${processes[which]}, version="${version}"}`;
const ping = (store: string, instance = "a1") =>
  `inference_store_ping_seconds{store="${store}", instance="${instance}"}`;
const pool = (value: string, name = "chat") => `inference_pool_${value}{pool="${name}"}`;
const state = (upstream: string) => `inference_upstream_state{upstream="${upstream}"}`;
const attempts = (outcome: string) =>
  `inference_upstream_attempts_total{upstream="openai", model="openai/gpt-5.4", outcome="${outcome}"}`;
const calls = (model: string, status: number) => `inference_calls_total{model="${model}", status="${status}"}`;
const overhead = (le: string) => `inference_overhead_seconds_bucket{endpoint="chat", le="${le}"}`;
const payments = (outcome: string) => `inference_x402_payments_total{outcome="${outcome}"}`;
const topups = (outcome: string) => `inference_topups_total{outcome="${outcome}"}`;
const budget = (value: string) => `inference_memory_budget_${value}_bytes{budget="body", instance="a1"}`;

export const healthy: Series = {
  inference_ledger_difference_usd: flat(0),
  inference_ledger_faults: flat(0),
  inference_ledger_check_age_seconds: flat(120),
  inference_shortfalls_total: flat(0),
  inference_late_entries_total: flat(0),
  inference_undecided_calls: flat(0),
  inference_hold_oldest_seconds: flat(300),
  inference_lease_oldest_seconds: flat(900),
  inference_gathered_age_seconds: flat(60),
  [pool("workers")]: flat(4),
  [pool("free")]: flat(100),
  [pool("oldest_waiting_seconds")]: flat(0),
  [pool("workers", "maintenance")]: flat(1),
  [budget("used")]: flat(10),
  [budget("limit")]: flat(100),
  [state("local")]: flat(2),
  [state("openai")]: flat(2),
  // Has no key.
  [state("xai")]: flat(0),
  [attempts("succeeded")]: rising(600),
  [attempts("failed")]: rising(6),
  // Callers who disconnect are no failures of the upstream.
  [attempts("cancelled")]: rising(600),
  'inference_upstream_waiting{upstream="openai"}': flat(0),
  [calls("openai/gpt-5.4", 200)]: rising(600),
  [calls("openai/gpt-5.4", 502)]: rising(6),
  // Bad requests, of which anybody can send any number.
  [calls("other", 401)]: rising(6000),
  [overhead("0.1")]: rising(600),
  [overhead("0.25")]: rising(600),
  [overhead("0.5")]: rising(600),
  [overhead("+Inf")]: rising(630),
  [ping("mongodb")]: flat(0.002),
  [ping("redis")]: flat(0.001),
  [ping("s3")]: flat(0.02),
  [ping("mongodb", "w1")]: flat(0.002),
  [ping("redis", "w1")]: flat(0.001),
  'inference_reply_round_trip_seconds{instance="a1"}': flat(0.003),
  inference_file_expiry_lag_seconds: flat(60),
  [payments("quoted")]: rising(600),
  [payments("settled")]: rising(60),
  [payments("failed")]: rising(1),
  [topups("credited")]: rising(6),
  // A node that is behind for a moment.
  [topups("failed")]: "0x30 2x210",
  'inference_buyback_batches{state="open"}': flat(3),
  'inference_buyback_batches{state="due"}': flat(0),
  'nodejs_eventloop_lag_p99_seconds{job="api", instance="a1"}': flat(0.02),
  // Another service that the same Prometheus scrapes.
  'nodejs_eventloop_lag_p99_seconds{job="other", instance="o1"}': flat(3),
  inference_catalog_differs: flat(0),
  [info(0, "1.0.0")]: flat(1),
  [info(1, "1.0.0")]: flat(1),
};

interface Case {
  readonly alert: string;
  readonly series: Series;
  /** That the alert has beside its severity; a list if it fires for several. */
  readonly labels?: Series | readonly Series[];
  /** Minutes until it must fire, and until which it must not. */
  readonly by: number;
  readonly notBefore?: number;
}

export const cases: readonly Case[] = [
  {
    alert: "InferenceLedgerDifference",
    series: { inference_ledger_difference_usd: "0x9 0.000000001x240" },
    by: 10,
    notBefore: 9,
  },
  { alert: "InferenceLedgerDifference", series: { inference_ledger_faults: flat(1) }, by: 1 },
  {
    alert: "InferenceLedgerCheckOld",
    series: { inference_ledger_check_age_seconds: rising(60) },
    by: 95,
    notBefore: 88,
  },
  { alert: "InferenceLedgerCheckOld", series: { inference_ledger_check_age_seconds: absent }, by: 31, notBefore: 29 },
  { alert: "InferenceShortfall", series: { inference_shortfalls_total: "0x20 1x220" }, by: 22, notBefore: 20 },
  { alert: "InferenceLateEntries", series: { inference_late_entries_total: "0x20 1x220" }, by: 22, notBefore: 20 },
  { alert: "InferenceUndecidedCalls", series: { inference_undecided_calls: flat(1) }, by: 11, notBefore: 9 },
  { alert: "InferenceHoldOld", series: { inference_hold_oldest_seconds: flat(90_001) }, by: 6, notBefore: 4 },
  { alert: "InferenceLeaseOld", series: { inference_lease_oldest_seconds: flat(7_201) }, by: 6, notBefore: 4 },
  { alert: "InferenceCountsOld", series: { inference_gathered_age_seconds: absent }, by: 6, notBefore: 4 },
  { alert: "InferenceCountsOld", series: { inference_gathered_age_seconds: flat(301) }, by: 6, notBefore: 4 },
  {
    alert: "InferenceNoWorkers",
    series: { [pool("workers")]: flat(0) },
    labels: { pool: "chat" },
    by: 2,
    notBefore: 0,
  },
  {
    alert: "InferencePoolFull",
    series: { [pool("oldest_waiting_seconds")]: flat(20), [pool("free")]: flat(0) },
    labels: { pool: "chat" },
    by: 3,
    notBefore: 1,
  },
  {
    alert: "InferencePoolStuck",
    series: { [pool("oldest_waiting_seconds")]: flat(31) },
    labels: { pool: "chat" },
    by: 3,
    notBefore: 1,
  },
  {
    alert: "InferenceProcessesGone",
    series: { [info(1, "1.0.0")]: "1x9 _x230" },
    labels: { process: "worker" },
    by: 20,
    notBefore: 10,
  },
  // Without any process nothing else fires: the cause is one.
  {
    alert: "InferenceProcessesGone",
    series: Object.fromEntries(Object.keys(healthy).map((name) => [name, absent])),
    labels: [{ process: "api" }, { process: "worker" }],
    by: 120,
    notBefore: 1,
  },
  {
    alert: "InferenceMemoryBudget",
    series: { [budget("used")]: flat(91) },
    labels: { instance: "a1", budget: "body" },
    by: 3,
    notBefore: 1,
  },
  {
    alert: "InferenceBreakerOpen",
    series: { [state("openai")]: flat(1), [state("anthropic")]: flat(2) },
    labels: { upstream: "openai" },
    by: 6,
    notBefore: 4,
  },
  { alert: "InferenceAllBreakersOpen", series: { [state("openai")]: flat(1) }, by: 2, notBefore: 0 },
  {
    alert: "InferenceUpstreamFailures",
    series: { [attempts("failed")]: rising(400) },
    labels: { upstream: "openai" },
    by: 15,
    notBefore: 9,
  },
  {
    alert: "InferenceUpstreamFull",
    series: { 'inference_upstream_waiting{upstream="openai"}': flat(1) },
    labels: { upstream: "openai" },
    by: 6,
    notBefore: 4,
  },
  { alert: "InferenceErrorRate", series: { [calls("openai/gpt-5.4", 502)]: rising(500) }, by: 10, notBefore: 4 },
  {
    alert: "InferenceModelFailures",
    series: { [calls("xai/grok", 503)]: rising(6), [calls("xai/grok", 200)]: rising(3) },
    labels: { model: "xai/grok" },
    by: 15,
    notBefore: 9,
  },
  {
    alert: "InferenceOverhead",
    series: { [overhead("0.1")]: rising(60), [overhead("0.25")]: rising(200) },
    by: 15,
    notBefore: 9,
  },
  ...["mongodb", "redis"].map((store) => ({
    alert: "InferenceStoreUnavailable",
    series: { [ping(store)]: absent, [ping(store, "w1")]: absent },
    labels: { store },
    by: 2,
    notBefore: 0,
  })),
  {
    alert: "InferenceStoreUnavailable",
    series: { [ping("s3")]: absent },
    labels: { store: "s3" },
    by: 2,
    notBefore: 0,
  },
  {
    alert: "InferenceStoreUnreachable",
    series: { [ping("redis", "w1")]: absent },
    labels: { store: "redis" },
    by: 3,
    notBefore: 1,
  },
  {
    alert: "InferenceStoreSlow",
    series: { [ping("redis", "w1")]: flat(0.2) },
    labels: { store: "redis" },
    by: 6,
    notBefore: 4,
  },
  {
    alert: "InferenceRepliesLag",
    series: { 'inference_reply_round_trip_seconds{instance="a1"}': flat(0.6) },
    labels: { instance: "a1" },
    by: 3,
    notBefore: 1,
  },
  { alert: "InferenceExpiryLag", series: { inference_file_expiry_lag_seconds: flat(901) }, by: 6, notBefore: 4 },
  { alert: "InferenceX402Failures", series: { [payments("failed")]: rising(90) }, by: 10, notBefore: 4 },
  { alert: "InferenceTopupsNotRead", series: { [topups("failed")]: rising(6) }, by: 10, notBefore: 4 },
  {
    alert: "InferenceBuybackStuck",
    series: { 'inference_buyback_batches{state="due"}': flat(1) },
    by: 125,
    notBefore: 119,
  },
  {
    alert: "InferenceEventLoopLag",
    series: { 'nodejs_eventloop_lag_p99_seconds{job="api", instance="a1"}': flat(0.3) },
    labels: { job: "api", instance: "a1" },
    by: 6,
    notBefore: 4,
  },
  { alert: "InferenceCatalogDiffers", series: { inference_catalog_differs: flat(1) }, by: 16, notBefore: 14 },
  {
    alert: "InferenceVersionsDiffer",
    series: { [info(1, "1.0.0")]: absent, [info(1, "1.1.0")]: flat(1) },
    by: 61,
    notBefore: 59,
  },
];

/** Series that are close to an alert, and must not raise any. */
export const quiet: readonly { readonly what: string; readonly series: Series }[] = [
  {
    what: "a pool that is busy and keeps up",
    series: { [pool("free")]: flat(0), [pool("oldest_waiting_seconds")]: flat(5) },
  },
  { what: "one failed call of a model that nobody else calls", series: { [calls("xai/grok", 503)]: "0x30 1x210" } },
  {
    what: "one failed attempt at an upstream that is hardly used",
    series: { [attempts("succeeded")]: flat(0), [attempts("failed")]: "0x30 1x210" },
  },
  { what: "a late payment among few", series: { [payments("settled")]: flat(0), [payments("failed")]: "0x30 3x210" } },
  { what: "a rollout of half an hour", series: { [info(1, "1.0.0")]: "_x30 1x210", [info(1, "1.1.0")]: "1x29 stale" } },
];
