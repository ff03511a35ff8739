import type { Usage } from "#catalog";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import type { Uses } from "#platform/uses";
import type { Accounts } from "./accounts.ts";
import type { Ledger } from "./ledger.ts";

/** Receives money events, for metrics. */
export interface MoneyObserver {
  /** Called when this process made the entry. The model is that of the capture. */
  captured(
    call: { model?: string | null | undefined; usage: Usage; status: string },
    amounts: { chargedNanoUsd: bigint; shortfallNanoUsd: bigint },
  ): void;
  /** Called with the number of leases that had calls captured after they were closed. */
  late(leases: number): void;
  /** Called with the numbers of responses that were lost with an API instance, by what happens with their charges. */
  lost(responses: Readonly<Record<"refunded" | "waiting", number>>): void;
  /** Keyed by the label values of the metrics. `applications` counts settlements. */
  readonly writes: Readonly<Record<"ledger" | "holds" | "applications" | "leases", ObserveWrite>>;
}

export interface MoneyDeps extends Uses<"mongo" | "clock" | "log"> {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly observer?: MoneyObserver | undefined;
  /**
   * No call without a capture is ended before MongoDB has been up for this long. By then every living process has noticed,
   * which takes it three seconds, and has repeated the write that it waited with: four seconds until the last attempt has
   * timed out, a second between attempts, and two more to connect.
   */
  readonly recoveryMs: number;
}
