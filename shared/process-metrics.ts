import { type Catalog, tokenKeys } from "#catalog";
import type { MoneyObserver } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import { groups, type Metrics } from "#platform/observability/metrics";
import type { TrafficCounter } from "#traffic";

type Writes = Readonly<Record<(typeof groups)[number], ObserveWrite>>;

/** The model as a label value. Calls and stored entries may name a model that this process's catalog does not have. */
export const modelLabel = (catalog: Catalog, model: string | null | undefined): string =>
  model != null && catalog.find(model) ? model : "other";

/** Observers of writes and charges, for both the API and the workers. */
export function createProcessObservers(metrics: Metrics, catalog: Catalog, traffic: Pick<TrafficCounter, "charged">) {
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
  const money: MoneyObserver = {
    writes,
    captured({ model: id, usage }, { chargedNanoUsd, shortfallNanoUsd }) {
      const model = modelLabel(catalog, id);
      traffic.charged(chargedNanoUsd);
      if (chargedNanoUsd > 0n) countCharged({ model }, Number(chargedNanoUsd));
      for (const kind of tokenKeys) if (usage[kind]) countTokens({ model, kind }, usage[kind]);
      if (shortfallNanoUsd === 0n) return;
      countShortfall({});
      addShortfall({}, Number(shortfallNanoUsd));
    },
    late: (leases) => countLate?.({}, leases),
  };
  return { writes, money };
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
