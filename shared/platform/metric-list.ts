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
    help: "Calls that ended (499: disconnected), and requests that were refused: those have the model `other`. `code` is that of the error, or `none`",
  },
  inference_call_duration_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["endpoint", "model"],
    help: "Time from the end of an admitted call's body to the end of its answer",
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  },
  inference_time_to_first_byte_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["model"],
    help: "Of streams: time from the end of the call's body to the first event, pings aside",
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  inference_queue_wait_seconds: {
    type: "histogram",
    of: ["worker"],
    labels: ["pool"],
    help: "Time from the end of a call's body to its start in this worker",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60],
  },
  inference_overhead_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["endpoint"],
    help: "Duration of a call less the time of its attempts at upstreams: admission, queue, conversion, settlement, and a caller who reads slowly. Without calls whose caller disconnected",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
  },
  inference_endpoint_open_calls: {
    type: "gauge",
    of: ["api"],
    labels: ["endpoint"],
    help: "Of `inference_open_calls`, those of each endpoint that has any",
  },
  inference_upstream_attempts_total: {
    type: "counter",
    of: ["worker"],
    labels: ["upstream", "model", "outcome"],
    help: "Attempts at upstreams that ended. `outcome`: succeeded, failed, refused, busy (429, 503), timeout, cancelled",
  },
  inference_upstream_attempt_seconds: {
    type: "histogram",
    of: ["worker"],
    labels: ["upstream"],
    help: "Provider time: duration of an attempt that succeeded, to the last byte of its answer",
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
    help: "Attempts that run at the upstream, of this worker; its `concurrency` in the catalog bounds them",
  },
  inference_upstream_waiting: {
    type: "gauge",
    of: ["worker"],
    labels: ["upstream"],
    help: "Calls of this worker that wait for a slot of the upstream, because all that could serve them are full",
  },
  inference_charged_nanousd_total: {
    type: "counter",
    of: both,
    labels: ["model"],
    help: "Nano-USD (10^-9 USD) charged by the captures of this process, before refunds. Uploads have the model `other`",
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
    help: "Calls that cost more than was held: the difference is not charged. Should stay 0",
  },
  inference_shortfall_nanousd_total: {
    type: "counter",
    of: both,
    labels: [],
    help: "Nano-USD that were not charged because calls cost more than was held",
  },
  inference_late_entries_total: {
    type: "counter",
    of: ["worker"],
    labels: [],
    help: "Leases with calls that were captured after the lease was closed: their costs were settled afterwards. Should stay 0",
  },
  inference_holds_open: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Holds of calls that have one of their own (images, media, uploads, x402), in all accounts",
  },
  inference_hold_oldest_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Age of the oldest of these holds; 0 if there is none",
  },
  inference_leases_open: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Holds that API instances share among text calls, in all accounts",
  },
  inference_lease_oldest_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Age of the oldest lease; 0 if there is none. One is closed when it has grown for a minute and its last call has ended",
  },
  inference_undecided_calls: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Calls whose hold has expired and that are not captured: the sweeper waits for their job, or cannot end them. Should be 0",
  },
  inference_ledger_difference_usd: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Sum of the absolute differences between accounts and ledger, found by the last complete check or the one under way. Must be 0",
  },
  inference_ledger_faults: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Accounts that the same check found wrong in any way. Must be 0",
  },
  inference_ledger_check_age_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Time since a check of all accounts was last complete; absent until the first one is",
  },
  inference_group_size: {
    type: "histogram",
    of: both,
    labels: ["group"],
    help: "Items in one write: `jobs` calls in a job, `frames` in an entry of a reply stream, `limits` checks in a script (Redis); `ledger` entries, `holds`, `applications` of costs, `leases` calls that share a turn (MongoDB)",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  inference_group_write_seconds: {
    type: "histogram",
    of: both,
    labels: ["group"],
    help: "Latency of these writes, so that of Redis and MongoDB as calls see it. `leases` includes waiting for other instances to return what they do not use",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  },
  inference_reply_round_trip_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Time from writing into this instance's reply stream to reading it there: how far replies lag behind",
  },
  inference_memory_budget_used_bytes: {
    type: "gauge",
    of: both,
    labels: ["budget"],
    help: "In use of `BODY_BUDGET_BYTES` (`body`), `UPLOAD_BUDGET_BYTES` (`upload`: on disk) or `WORKER_PAYLOAD_BUDGET_BYTES` (`payload`). What does not fit is answered 503",
  },
  inference_memory_budget_limit_bytes: {
    type: "gauge",
    of: both,
    labels: ["budget"],
    help: "The budget itself",
  },
  inference_uploads: {
    type: "gauge",
    of: ["api"],
    labels: ["state"],
    help: "Uploads: `pending` are being sent, `active` can be used, `due` wait for the deletion of their object. Counted up to 100,000 each",
  },
  inference_file_expiry_lag_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "For how long the upload or generated file that is due first has been due. Expiry runs once a minute",
  },
  inference_x402_payments_total: {
    type: "counter",
    of: both,
    labels: ["outcome"],
    help: "Requests that pay by x402. `outcome`: quoted (402, no payment), settled, repeated (a payment that was settled before), refused, failed (not decided yet, or not a payment). Of a worker, payments that it decided from the chain: settled, reopened (nothing was paid)",
  },
  inference_topups_total: {
    type: "counter",
    of: ["worker"],
    labels: ["outcome"],
    help: "Of top-ups by Solana Pay: `credited` payments, and looks at the chain that `failed` and are repeated",
  },
  inference_buyback_batches: {
    type: "gauge",
    of: ["api"],
    labels: ["state"],
    help: "Buybacks: `open` collect charges, `due` wait for their execution, `done` were executed",
  },
  inference_gathered_age_seconds: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Time since a maintenance worker last counted what is stored: holds, leases, uploads, buybacks. They are absent when it is more than two minutes",
  },
  inference_build_info: {
    type: "gauge",
    of: both,
    labels: ["process", "version", "node"],
    help: "1, with the version that runs",
  },
  inference_catalog_info: {
    type: "gauge",
    of: both,
    labels: ["hash"],
    help: "1, with the hash of this process's catalog",
  },
  inference_catalog_differs: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "1 while a worker has another catalog than this API instance, else 0",
  },
  inference_open_calls: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Paid calls that this instance has admitted and not ended",
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
    help: "Calls that run in the workers of the pool",
  },
  inference_pool_free: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls that its workers could run in addition",
  },
  inference_pool_waiting: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls that wait in the queue of the pool",
  },
  inference_pool_oldest_waiting_seconds: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Time for which the oldest job in the queue has waited; 0 if none waits",
  },
  inference_upstream_state: {
    type: "gauge",
    of: both,
    labels: ["upstream"],
    help: "2 ready, 1 circuit breaker open, 0 no key: in this worker; for the API the best state among the workers",
  },
  inference_store_ping_seconds: {
    type: "gauge",
    of: both,
    labels: ["store"],
    help: "Time in which `mongodb`, `redis` or (API only) `s3` answered a ping; absent if it did not within a second",
  },
} as const satisfies Record<`inference_${string}`, Definition>;

/** The values of `inference_upstream_state`. */
export const upstreamStates = { "no key": 0, open: 1, ready: 2 } as const;

/** The values of `group`. */
export const groups = ["jobs", "frames", "limits", "ledger", "holds", "applications", "leases"] as const;
