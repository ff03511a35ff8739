import type { Usage } from "#catalog";
import type { ObserveWrite } from "#platform/group-commit";
import type { Uses } from "#platform/uses";
import type { Accounts } from "./accounts.ts";
import type { Ledger } from "./ledger.ts";

/** Learns what happens to the money, for metrics. */
export interface MoneyObserver {
  /** This process made the entry. The model is that of the decision. */
  decided(
    call: { model?: string | null | undefined; usage: Usage },
    amounts: { chargedNanoUsd: bigint; shortfallNanoUsd: bigint },
  ): void;
  /** This many leases had calls that were decided after they were closed. */
  late(leases: number): void;
  readonly writes: Readonly<Record<"ledger" | "holds" | "applications" | "leases", ObserveWrite>>;
}

/** The parts of this module share these. */
export interface MoneyDeps extends Uses<"mongo" | "clock" | "log"> {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly observer?: MoneyObserver | undefined;
}
