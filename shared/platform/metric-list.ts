export type MetricType = "gauge" | "counter" | "histogram";

interface Definition {
  readonly type: MetricType;
  /** The processes that export the metric. */
  readonly of: readonly ("api" | "worker")[];
  readonly labels: readonly string[];
  readonly help: string;
  /** The upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

const both = ["api", "worker"] as const;

/**
 * Every metric of the service. The table in docs/operations/metrics.md is generated from this list. The values of a
 * label come from a fixed list or from the catalog, never from a caller.
 */
export const metricList = {
  inference_calls_total: {
    type: "counter",
    of: ["api"],
    labels: ["endpoint", "model", "status", "code"],
    help: "Finished calls (499: the caller disconnected) and refused requests, which have the model `other`. `code` is the error code, or `none`",
  },
  inference_call_duration_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["endpoint", "model"],
    help: "Time from the end of an admitted call's body to the end of its response",
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  },
  inference_time_to_first_byte_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["model"],
    help: "Streams only: time from the end of the call's body to the first event, excluding pings",
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  inference_queue_wait_seconds: {
    type: "histogram",
    of: ["worker"],
    labels: ["pool"],
    help: "Time from the end of a call's body until this worker starts it",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60],
  },
  inference_overhead_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["endpoint"],
    help: "Duration of a call minus its attempts at upstreams: admission, queueing, conversion, settlement, and slow reading by the caller. Excludes calls whose caller disconnected",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
  },
  inference_endpoint_open_calls: {
    type: "gauge",
    of: ["api"],
    labels: ["endpoint"],
    help: "`inference_open_calls` by endpoint; endpoints without open calls are absent",
  },
  inference_upstream_attempts_total: {
    type: "counter",
    of: ["worker"],
    labels: ["upstream", "model", "outcome"],
    help: "Finished attempts at upstreams. `outcome`: succeeded, failed, refused, busy (429, 503), timeout, cancelled",
  },
  inference_upstream_attempt_seconds: {
    type: "histogram",
    of: ["worker"],
    labels: ["upstream"],
    help: "Provider time: duration of a successful attempt, up to the last byte of its response",
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  },
  inference_upstream_first_byte_seconds: {
    type: "histogram",
    of: ["worker"],
    labels: ["upstream"],
    help: "Provider time: from the start of an attempt to the first event of its stream",
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  inference_upstream_running: {
    type: "gauge",
    of: ["worker"],
    labels: ["upstream"],
    help: "Attempts of this worker that are running at the upstream; limited by the upstream's `concurrency` in the catalog",
  },
  inference_upstream_waiting: {
    type: "gauge",
    of: ["worker"],
    labels: ["upstream"],
    help: "Calls of this worker that wait for a slot of the upstream because every upstream that could serve them is full",
  },
  inference_charged_nanousd_total: {
    type: "counter",
    of: both,
    labels: ["model"],
    help: "Nano-USD (10^-9 USD) of costs captured by this process, before refunds. Uploads have the model `other`",
  },
  inference_tokens_total: {
    type: "counter",
    of: both,
    labels: ["model", "kind"],
    help: "Tokens billed. `kind` is a price key of the catalog: `input` (uncached), `cached_input`, `cache_write`, `output` and so on",
  },
  inference_shortfalls_total: {
    type: "counter",
    of: both,
    labels: [],
    help: "Calls that cost more than was held; the difference is not charged. Should stay 0",
  },
  inference_shortfall_nanousd_total: {
    type: "counter",
    of: both,
    labels: [],
    help: "Nano-USD not charged because calls cost more than was held",
  },
  inference_late_entries_total: {
    type: "counter",
    of: ["worker"],
    labels: [],
    help: "Leases with calls whose costs were captured after the lease was closed, and settled later. Should stay 0",
  },
  inference_holds_open: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Open holds of calls with a hold of their own (images, media, uploads, x402), over all accounts",
  },
  inference_hold_oldest_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Age of the oldest of these holds; 0 if there are none",
  },
  inference_leases_open: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Open leases, over all accounts. A lease is a hold that text calls of an account share on one API instance",
  },
  inference_lease_oldest_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Age of the oldest lease; 0 if there are none. A lease is closed once it has grown for a minute and its last call has ended",
  },
  inference_undecided_calls: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Calls whose hold has expired and whose cost is not captured: the sweeper waits for their job, or cannot capture them. Should be 0",
  },
  inference_ledger_difference_usd: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Sum of the absolute differences between account balances and ledger, found by the last complete check or the current one. Must be 0",
  },
  inference_ledger_faults: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Accounts with any fault found by the same check. Must be 0",
  },
  inference_ledger_check_age_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Time since the last complete check of all accounts; absent until the first one is complete",
  },
  inference_group_size: {
    type: "histogram",
    of: both,
    labels: ["group"],
    help: "Items per write. In Redis: `jobs` (calls in a queue job), `frames` (in an entry of a reply stream), `limits` (checks in a script). In MongoDB: `ledger` (entries), `holds`, `applications` (settled costs), `leases` (calls that take from a lease together)",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  inference_group_write_seconds: {
    type: "histogram",
    of: both,
    labels: ["group"],
    help: "Latency of these writes, which is the latency of Redis and MongoDB that calls see. `leases` includes waiting for other instances to return unused amounts",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  },
  inference_reply_round_trip_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Time from writing to this instance's reply stream to reading from it: how far replies lag behind",
  },
  inference_memory_budget_used_bytes: {
    type: "gauge",
    of: both,
    labels: ["budget"],
    help: "Bytes in use of `BODY_BUDGET_BYTES` (`body`), `UPLOAD_BUDGET_BYTES` (`upload`, on disk) or `WORKER_PAYLOAD_BUDGET_BYTES` (`payload`). Requests that do not fit get a 503",
  },
  inference_memory_budget_limit_bytes: {
    type: "gauge",
    of: both,
    labels: ["budget"],
    help: "Size of the budget",
  },
  inference_uploads: {
    type: "gauge",
    of: ["api"],
    labels: ["state"],
    help: "Uploads by state: `pending` are being sent, `active` can be used, `due` wait for the deletion of their object. Each is counted up to 100,000",
  },
  inference_file_expiry_lag_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "How long the most overdue upload or generated file has been due for deletion. Expiry runs once a minute",
  },
  inference_x402_payments_total: {
    type: "counter",
    of: both,
    labels: ["outcome"],
    help: "Requests that pay by x402. `outcome`: quoted (402, no payment), settled, repeated (the payment was settled before), refused, failed (outcome not known yet, or not a payment). Workers count payments whose outcome they read from the chain: settled, reopened (nothing was paid)",
  },
  inference_topups_total: {
    type: "counter",
    of: ["worker"],
    labels: ["outcome"],
    help: "Top-ups by Solana Pay: `credited` payments, and polls of the chain that `failed` and are retried",
  },
  inference_buyback_batches: {
    type: "gauge",
    of: ["api"],
    labels: ["state"],
    help: "Batches of buybacks: `open` collect shares of charges, `due` wait for execution, `done` were executed",
  },
  inference_gathered_age_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Time since a maintenance worker last counted stored holds, leases, uploads and buybacks. Their metrics are absent after more than two minutes",
  },
  inference_build_info: {
    type: "gauge",
    of: both,
    labels: ["process", "version", "node"],
    help: "Always 1; the labels name the running version",
  },
  inference_catalog_info: {
    type: "gauge",
    of: both,
    labels: ["hash"],
    help: "Always 1; the label is the hash of this process's catalog",
  },
  inference_catalog_differs: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "1 while a worker has a different catalog than this API instance, otherwise 0",
  },
  inference_open_calls: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Paid calls that this instance has admitted and that have not ended",
  },
  inference_pool_workers: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Worker processes that serve the pool",
  },
  inference_pool_running: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls running in the pool's workers",
  },
  inference_pool_free: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Additional calls that the pool's workers could run now",
  },
  inference_pool_waiting: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls waiting in the pool's queue",
  },
  inference_pool_oldest_waiting_seconds: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "How long the oldest job in the queue has waited; 0 if none is waiting",
  },
  inference_upstream_state: {
    type: "gauge",
    of: both,
    labels: ["upstream"],
    help: "2: ready, 1: circuit breaker open, 0: no key. In a worker its own state, in the API the best state among the workers",
  },
  inference_store_ping_seconds: {
    type: "gauge",
    of: both,
    labels: ["store"],
    help: "Time that `mongodb`, `redis` or (API only) `s3` took to answer a ping; absent after a second without an answer",
  },
} as const satisfies Record<`inference_${string}`, Definition>;

/** The values of `inference_upstream_state`. */
export const upstreamStates = { "no key": 0, open: 1, ready: 2 } as const;

/** The values of `group`. */
export const groups = ["jobs", "frames", "limits", "ledger", "holds", "applications", "leases"] as const;
