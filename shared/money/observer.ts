import type { Usage } from "#catalog";
import type { ObserveWrite } from "#platform/group-commit";

/** Learns what happens to the money, for metrics. */
export interface MoneyObserver {
  /** This process made the entry. The model is that of the decision. */
  decided(
    call: { model?: string | null | undefined; usage: Usage },
    amounts: { chargedNanoUsd: bigint; shortfallNanoUsd: bigint },
  ): void;
  /** So many leases had calls that were decided after they were closed. */
  late(leases: number): void;
  readonly writes: Readonly<Record<"ledger" | "holds" | "applications" | "leases", ObserveWrite>>;
}
