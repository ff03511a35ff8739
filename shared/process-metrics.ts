import type { BatchObserver } from "#batches";
import { type Catalog, tokenKeys } from "#catalog";
import type { JobObserver } from "#detached-calls";
import type { MoneyObserver } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import { groups, type Metrics } from "#platform/observability/metrics";
import type { TrafficCounter } from "#traffic";

type Writes = Readonly<Record<(typeof groups)[number], ObserveWrite>>;

/** The model as a label value. Calls and stored entries may name a model that this process's catalog does not have. */
export const modelLabel = (catalog: Catalog, model: string | null | undefined): string =>
  model != null && catalog.find(model) ? model : "other";

/** Observers of writes, charges, jobs and batches, for both the API and the workers. */
export function createProcessObservers(metrics: Metrics, catalog: Catalog, traffic: Pick<TrafficCounter, "ended">) {
  const observeSize = metrics.histogram("inference_group_size");
  const observeWrite = metrics.histogram("inference_group_write_seconds");
  const writes = Object.fromEntries(
    groups.map((group) => {
      const observe: ObserveWrite = (items, seconds) => {
        observeSize({ group }, items);
        observeWrite({ group }, seconds);
      };
      return [group, observe];
    }),
  ) as Writes;

  const countCharged = metrics.counter("inference_charged_nanousd_total");
  const countTokens = metrics.counter("inference_tokens_total");
  const countShortfall = metrics.counter("inference_shortfalls_total");
  const addShortfall = metrics.counter("inference_shortfall_nanousd_total");
  const countLate = metrics.process === "worker" ? metrics.counter("inference_late_entries_total") : undefined;
  const countLost = metrics.process === "worker" ? metrics.counter("inference_lost_responses_total") : undefined;
  const money: MoneyObserver = {
    writes,
    captured({ model: id, usage, status }, { chargedNanoUsd, shortfallNanoUsd }) {
      const model = modelLabel(catalog, id);
      traffic.ended(status, chargedNanoUsd);
      if (chargedNanoUsd > 0n) countCharged({ model }, Number(chargedNanoUsd));
      for (const kind of tokenKeys) if (usage[kind]) countTokens({ model, kind }, usage[kind]);
      if (shortfallNanoUsd === 0n) return;
      countShortfall({});
      addShortfall({}, Number(shortfallNanoUsd));
    },
    late: (leases) => countLate?.({}, leases),
    lost({ refunded, waiting }) {
      countLost?.({ outcome: "refunded" }, refunded);
      countLost?.({ outcome: "waiting" }, waiting);
    },
  };

  const countSubmitted = metrics.process === "api" ? metrics.counter("inference_jobs_submitted_total") : undefined;
  const countEnded = metrics.counter("inference_jobs_ended_total");
  const jobs: JobObserver = {
    submitted: (endpoint) => countSubmitted?.({ endpoint }),
    ended: (status) => countEnded({ status }),
  };

  const countEndedBatch = metrics.counter("inference_batches_ended_total");
  const ended: BatchObserver["ended"] = (status) => countEndedBatch({ status });
  const unseen = () => undefined;
  const batches: BatchObserver =
    metrics.process === "api"
      ? { ...feedingObserver(metrics), ended }
      : { created: unseen, recorded: unseen, retried: unseen, ended };
  return { writes, money, jobs, batches };
}

/** Only an API instance creates batches and records their lines. */
function feedingObserver(metrics: Metrics): Omit<BatchObserver, "ended"> {
  const countCreated = metrics.counter("inference_batches_created_total");
  const countLines = metrics.counter("inference_batch_lines_total");
  const countRetried = metrics.counter("inference_batch_lines_retried_total");
  return {
    created: (kind) => countCreated({ kind }),
    recorded(counts) {
      for (const [outcome, count] of Object.entries(counts)) if (count > 0) countLines({ outcome }, count);
    },
    retried: (lines) => countRetried({}, lines),
  };
}

/** Reports the usage of the limits on large content. */
export function observeBudgets(metrics: Metrics, budgets: Readonly<Record<string, ByteBudget>>): void {
  const of = Object.entries(budgets);
  metrics.gauge("inference_memory_budget_used_bytes", () =>
    of.map(([budget, { heldBytes }]) => [{ budget }, heldBytes]),
  );
  metrics.gauge("inference_memory_budget_limit_bytes", () =>
    of.map(([budget, { limitBytes }]) => [{ budget }, limitBytes]),
  );
}
