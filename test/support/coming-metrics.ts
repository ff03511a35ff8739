/**
 * Metrics that dashboards and alerts use and that `metricList` does not declare yet, with their labels; `_total` and the like are
 * in the name, histograms are marked. Delete this file when it is empty.
 */
export const comingMetrics: Readonly<
  Record<`inference_${string}`, { type: "gauge" | "counter" | "histogram"; labels: readonly string[] }>
> = {
  inference_overhead_seconds: { type: "histogram", labels: ["endpoint"] },
  inference_endpoint_open_calls: { type: "gauge", labels: ["endpoint"] },
  inference_upstream_attempts_total: { type: "counter", labels: ["upstream", "model", "outcome"] },
  inference_upstream_attempt_seconds: { type: "histogram", labels: ["upstream"] },
  inference_upstream_first_byte_seconds: { type: "histogram", labels: ["upstream"] },
  inference_upstream_running: { type: "gauge", labels: ["upstream"] },
  inference_upstream_waiting: { type: "gauge", labels: ["upstream"] },
  inference_charged_nanousd_total: { type: "counter", labels: ["model"] },
  inference_tokens_total: { type: "counter", labels: ["model", "kind"] },
  inference_shortfalls_total: { type: "counter", labels: [] },
  inference_shortfall_nanousd_total: { type: "counter", labels: [] },
  inference_late_entries_total: { type: "counter", labels: [] },
  inference_holds_open: { type: "gauge", labels: [] },
  inference_hold_oldest_seconds: { type: "gauge", labels: [] },
  inference_leases_open: { type: "gauge", labels: [] },
  inference_lease_oldest_seconds: { type: "gauge", labels: [] },
  inference_undecided_calls: { type: "gauge", labels: [] },
  inference_ledger_difference_usd: { type: "gauge", labels: [] },
  inference_ledger_faults: { type: "gauge", labels: [] },
  inference_ledger_check_age_seconds: { type: "gauge", labels: [] },
  inference_group_size: { type: "histogram", labels: ["group"] },
  inference_group_write_seconds: { type: "histogram", labels: ["group"] },
  inference_reply_round_trip_seconds: { type: "gauge", labels: [] },
  inference_memory_budget_used_bytes: { type: "gauge", labels: ["budget"] },
  inference_memory_budget_limit_bytes: { type: "gauge", labels: ["budget"] },
  inference_uploads: { type: "gauge", labels: ["state"] },
  inference_file_expiry_lag_seconds: { type: "gauge", labels: [] },
  inference_x402_payments_total: { type: "counter", labels: ["outcome"] },
  inference_buyback_batches: { type: "gauge", labels: ["state"] },
  inference_gathered_age_seconds: { type: "gauge", labels: [] },
};
