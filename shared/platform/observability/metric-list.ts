export type MetricType = "gauge" | "counter" | "histogram";

/** The processes that export a metric. */
type Processes = readonly ("api" | "worker")[];
const api: Processes = ["api"];
const worker: Processes = ["worker"];
const both: Processes = ["api", "worker"];

const gauge = <const Labels extends readonly string[]>(of: Processes, labels: Labels, help: string) =>
  ({ type: "gauge", of, labels, help }) as const;
const counter = <const Labels extends readonly string[]>(of: Processes, labels: Labels, help: string) =>
  ({ type: "counter", of, labels, help }) as const;
/** `buckets` are their upper bounds. */
const histogram = <const Labels extends readonly string[]>(
  of: Processes,
  labels: Labels,
  help: string,
  buckets: readonly number[],
) => ({ type: "histogram", of, labels, help, buckets }) as const;

/**
 * Every metric of the service. The table in docs/operations/metrics.md is generated from this list. The values of a
 * label come from a fixed list or from the catalog, never from a caller.
 */
export const metricList = {
  inference_calls_total: counter(
    api,
    ["endpoint", "model", "status", "code"],
    "Finished calls (499: the caller disconnected) and refused requests, which have the model `other`. `code` is the error code, or `none`",
  ),
  inference_call_duration_seconds: histogram(
    api,
    ["endpoint", "model"],
    "Time from the end of an admitted call's body to the end of its response",
    [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  ),
  inference_time_to_first_byte_seconds: histogram(
    api,
    ["model"],
    "Streams only: time from the end of the call's body to the first event, excluding pings",
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  ),
  inference_queue_wait_seconds: histogram(
    worker,
    ["pool"],
    "Time from the end of a call's body until this worker starts it",
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60],
  ),
  inference_overhead_seconds: histogram(
    api,
    ["endpoint"],
    "Duration of a call minus its attempts at upstreams: admission, queueing, conversion, settlement, and slow reading by the caller. Excludes calls whose caller disconnected",
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
  ),
  inference_endpoint_open_calls: gauge(
    api,
    ["endpoint"],
    "`inference_open_calls` by endpoint; endpoints without open calls are absent",
  ),
  inference_upstream_attempts_total: counter(
    worker,
    ["upstream", "model", "outcome"],
    "Finished attempts at upstreams. `outcome`: succeeded, failed, refused, busy (429, 503), timeout, cancelled",
  ),
  inference_upstream_attempt_seconds: histogram(
    worker,
    ["upstream"],
    "Provider time: duration of a successful attempt, up to the last byte of its response",
    [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  ),
  inference_upstream_first_byte_seconds: histogram(
    worker,
    ["upstream"],
    "Provider time: from the start of an attempt to the first event of its stream",
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  ),
  inference_upstream_running: gauge(
    worker,
    ["upstream"],
    "Attempts of this worker that are running at the upstream; limited by the upstream's `concurrency` in the catalog",
  ),
  inference_upstream_waiting: gauge(
    worker,
    ["upstream"],
    "Calls of this worker that wait for a slot of the upstream because every upstream that could serve them is full",
  ),
  inference_charged_nanousd_total: counter(
    both,
    ["model"],
    "Nano-USD (10^-9 USD) of costs captured by this process, before refunds. Uploads have the model `other`",
  ),
  inference_tokens_total: counter(
    both,
    ["model", "kind"],
    "Tokens billed. `kind` is a price key of the catalog: `input` (uncached), `cached_input`, `cache_write`, `output` and so on",
  ),
  inference_shortfalls_total: counter(
    both,
    [],
    "Calls that cost more than was held; the difference is not charged. Should stay 0",
  ),
  inference_shortfall_nanousd_total: counter(both, [], "Nano-USD not charged because calls cost more than was held"),
  inference_late_entries_total: counter(
    worker,
    [],
    "Leases with calls whose costs were captured after the lease was closed, and settled later. Should stay 0",
  ),
  inference_lost_responses_total: counter(
    worker,
    ["outcome"],
    "Charged responses that were lost when an API instance died: `refunded`, and `waiting` for an operator",
  ),
  inference_holds_open: gauge(
    api,
    [],
    "Open holds of calls with a hold of their own (images, media, uploads, x402), over all accounts",
  ),
  inference_hold_oldest_seconds: gauge(api, [], "Age of the oldest of these holds; 0 if there are none"),
  inference_leases_open: gauge(
    api,
    [],
    "Open leases, over all accounts. A lease is a hold that text calls of an account share on one API instance",
  ),
  inference_lease_oldest_seconds: gauge(
    api,
    [],
    "Age of the oldest lease; 0 if there are none. A lease is closed once it has grown for a minute and its last call has ended",
  ),
  inference_undecided_calls: gauge(
    api,
    [],
    "Calls whose hold has expired and whose cost is not captured: the sweeper waits for their job, or cannot capture them. Should be 0",
  ),
  inference_ledger_difference_usd: gauge(
    api,
    [],
    "Sum of the absolute differences between account balances and ledger, found by the last complete check or the current one. Must be 0",
  ),
  inference_ledger_faults: gauge(api, [], "Accounts with any fault found by the same check. Must be 0"),
  inference_ledger_check_age_seconds: gauge(
    api,
    [],
    "Time since the last complete check of all accounts; absent until the first one is complete",
  ),
  inference_group_size: histogram(
    both,
    ["group"],
    "Items per write. In Redis: `jobs` (calls in a queue job), `frames` (in an entry of a reply stream), `limits` (checks in a script). In MongoDB: `ledger` (entries), `holds`, `applications` (settled costs), `leases` (calls that take from a lease together)",
    [1, 2, 4, 8, 16, 32, 64, 128, 256],
  ),
  inference_group_write_seconds: histogram(
    both,
    ["group"],
    "Latency of these writes, which is the latency of Redis and MongoDB that calls see. `leases` includes waiting for other instances to return unused amounts",
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  ),
  inference_reply_round_trip_seconds: gauge(
    api,
    [],
    "Time from writing to this instance's reply stream to reading from it: how far replies lag behind",
  ),
  inference_memory_budget_used_bytes: gauge(
    both,
    ["budget"],
    "Bytes in use of `BODY_BUDGET_BYTES` (`body`), `RESPONSE_BUDGET_BYTES` (`response`), `UPLOAD_BUDGET_BYTES` (`upload`, on disk) or `WORKER_PAYLOAD_BUDGET_BYTES` (`payload`). Requests that do not fit get a 503",
  ),
  inference_memory_budget_limit_bytes: gauge(both, ["budget"], "Size of the budget"),
  inference_uploads: gauge(
    api,
    ["state"],
    "Uploads by state: `pending` are being sent, `active` can be used, `due` wait for the deletion of their object. Each is counted up to 100,000",
  ),
  inference_file_expiry_lag_seconds: gauge(
    api,
    [],
    "How long the most overdue upload or generated file has been due for deletion. Expiry runs once a minute",
  ),
  inference_x402_payments_total: counter(
    both,
    ["outcome"],
    "Requests that pay by x402. `outcome`: quoted (402, no payment), settled, repeated (the payment was settled before), refused, failed (outcome not known yet, or not a payment). Workers count payments whose outcome they read from the chain: settled, reopened (nothing was paid)",
  ),
  inference_topups_total: counter(
    worker,
    ["outcome"],
    "Top-ups by Solana Pay: `credited` payments, and polls of the chain that `failed` and are retried",
  ),
  inference_buyback_batches: gauge(
    api,
    ["state"],
    "Batches of buybacks: `open` collect shares of charges, `due` wait for execution, `done` were executed",
  ),
  inference_webhook_attempts_total: counter(
    worker,
    ["outcome"],
    "Attempts to send a webhook. `outcome`: delivered, retry, failed (it was the last attempt, or a test), gone (410, which disables the endpoint)",
  ),
  inference_webhook_attempt_seconds: histogram(
    worker,
    [],
    "Duration of an attempt to send a webhook, up to its timeout of 15 seconds",
    [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
  ),
  inference_webhook_oldest_pending_seconds: gauge(
    api,
    [],
    "How long the most overdue webhook has been due. Receivers whose last attempt failed get one at a time, so a dead one makes this grow",
  ),
  inference_webhook_endpoints_disabled_total: counter(
    worker,
    ["reason"],
    "Webhook endpoints that the service has disabled. `reason`: gone (410), failing (five days without a success)",
  ),
  inference_gathered_age_seconds: gauge(
    api,
    [],
    "Time since a maintenance worker last counted stored holds, leases, uploads, buybacks and batches. Their metrics are absent after more than two minutes",
  ),
  inference_build_info: gauge(both, ["process", "version", "node"], "Always 1; the labels name the running version"),
  inference_catalog_info: gauge(both, ["hash"], "Always 1; the label is the hash of this process's catalog"),
  inference_catalog_differs: gauge(
    api,
    [],
    "1 while a worker has a different catalog than this API instance, otherwise 0",
  ),
  inference_open_calls: gauge(api, [], "Paid calls that this instance has admitted and that have not ended"),
  inference_pool_workers: gauge(api, ["pool"], "Worker processes that serve the pool"),
  inference_pool_running: gauge(api, ["pool"], "Calls running in the pool's workers"),
  inference_pool_free: gauge(api, ["pool"], "Additional calls that the pool's workers could run now"),
  inference_pool_waiting: gauge(
    api,
    ["pool"],
    "Calls waiting in the pool's queue whose callers wait, and scheduled work",
  ),
  inference_pool_oldest_waiting_seconds: gauge(
    api,
    ["pool"],
    "How long the oldest of these calls has waited; 0 if none is waiting",
  ),
  inference_jobs_submitted_total: counter(
    api,
    ["endpoint"],
    "Jobs: calls accepted with `Prefer: respond-async`, after which nobody waits",
  ),
  inference_jobs_ended_total: counter(
    both,
    ["status"],
    "Jobs that ended. `status`: completed, failed, cancelled, expired. A worker counts what it ran or found overdue, an API instance what it cancelled",
  ),
  inference_jobs_waiting: gauge(api, ["pool"], "Jobs waiting in the pool's queue"),
  inference_jobs_oldest_waiting_seconds: gauge(
    api,
    ["pool"],
    "How long the oldest job in the queue has waited; 0 if none is waiting. It may wait for `ASYNC_MAX_QUEUE_SECONDS`",
  ),
  inference_jobs_recovered_total: counter(
    worker,
    ["outcome"],
    "Jobs that maintenance ended or continued in place of a process that died: `ended` (its cost was captured, or it was cancelled), `enqueued` (no queue had it), `lost` (no worker and no queue had it while it ran; it costs nothing). `expired` ones waited too long, which is no failure of a process",
  ),
  inference_cache_calls_total: counter(
    api,
    ["outcome"],
    "Calls that asked for the response cache. `outcome`: hit, coalesced (a hit that waited for an equal call), miss, refresh, bypass (the cache could not be used)",
  ),
  inference_cache_saved_nanousd_total: counter(
    api,
    [],
    "Nano-USD (10^-9 USD) that the calls answered from the response cache would have cost",
  ),
  inference_cache_available: gauge(
    api,
    [],
    "1 if this instance reaches the Redis of the response cache, else 0; absent if none is configured",
  ),
  inference_batches_created_total: counter(
    api,
    ["kind"],
    "Batches created. `kind`: `openai` (`/v1/batches`), `anthropic` (`/v1/messages/batches`)",
  ),
  inference_batches_ended_total: counter(
    both,
    ["status"],
    "Batches that ended. `status`: completed, failed (the file was refused; counted by a worker), expired, cancelled",
  ),
  inference_batch_lines_total: counter(
    api,
    ["outcome"],
    "Lines whose result was recorded. `outcome`: succeeded, failed, and those that were not run: expired, cancelled",
  ),
  inference_batch_lines_retried_total: counter(
    api,
    [],
    "Tries of lines after their first: the one before had failed for a reason that may pass",
  ),
  inference_batch_lines_in_flight: gauge(
    api,
    ["pool"],
    "Lines that this instance has admitted and that have not ended; pools without batches are absent",
  ),
  inference_provider_batch_lines_total: counter(
    worker,
    ["upstream", "outcome"],
    "Lines in batches of providers that have ended. `outcome`: answered, failed (with the provider's error), not_run",
  ),
  inference_batch_oldest_seconds: gauge(
    api,
    ["status"],
    "Time since the creation of the oldest batch that is validating, in_progress (paused ones too), cancelling or finalizing; 0 if there is none",
  ),
  inference_batch_stalled_seconds: gauge(
    api,
    [],
    "How long a batch in progress has recorded no line, at most; without those that are paused, and without those that wait for their turn as long as any is worked at",
  ),
  inference_upstream_state: gauge(
    both,
    ["upstream"],
    "3: key refused, 2: ready, 1: circuit breaker open, 0: no key. In a worker its own state, in the API the best state among the workers",
  ),
  inference_store_ping_seconds: gauge(
    both,
    ["store"],
    "Time that `mongodb`, `redis` or (API only) `s3` took to answer a ping; absent after a second without an answer",
  ),
};

/** The values of `inference_upstream_state`. */
export const upstreamStateValues = { "no key": 0, open: 1, ready: 2, "key refused": 3 } as const;

/** The values of `group`. */
export const groups = ["jobs", "frames", "limits", "ledger", "holds", "applications", "leases"] as const;
