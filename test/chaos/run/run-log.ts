import type { Behavior, CallKind } from "./plan.ts";

/** The log of a run. Amounts are nano-USD. */

/** The outcome of a call from its caller's view. */
export type Outcome =
  /** A complete response. */
  | "answered"
  /** An error, before or inside the response. */
  | "refused"
  /** The connection ended, or was never established, without a response or an error. */
  | "none"
  /** The caller disconnected, as planned. */
  | "disconnected"
  /** No response or error came within the caller's patience. */
  | "hung";

export interface CallRecord {
  readonly marker: string;
  readonly kind: CallKind;
  readonly account: string;
  /** The API process that received the call. */
  readonly instance: string;
  readonly behavior: Behavior;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly outcome: Outcome;
  readonly requestId?: string;
  readonly status?: number;
  readonly code?: string;
  readonly message?: string;
  /** The connection's own error. */
  readonly failure?: string;
  /** True if part of the response came before the error. */
  readonly begun: boolean;
  readonly idempotencyKey?: string;
  /** True for the response of an earlier call under the same key. */
  readonly replayed: boolean;
}

/** A request to a mock provider. */
export interface ProviderRun {
  readonly marker: string;
  readonly upstream: string;
  readonly atMs: number;
  readonly behavior: Behavior;
  /** 0 for an invalid response. */
  readonly billNanoUsd: bigint;
  /** The most that such a response may cost: one that breaks off costs its delivered part. */
  readonly mayBillNanoUsd: bigint;
}

export interface FaultRecord {
  readonly kind: string;
  /** An API process whose callers may get no response. */
  readonly instance?: string;
  readonly startedMs: number;
  readonly endedMs: number;
}

/** An entry of the ledger. */
export interface BookEntry {
  readonly id: string;
  readonly account: string;
  readonly kind: string;
  readonly amountNanoUsd: bigint;
  readonly shortfallNanoUsd: bigint;
  /** The API instance that had to deliver a JSON response that is not stored. */
  readonly deliveredBy?: string;
}

export interface Balance {
  readonly account: string;
  readonly availableNanoUsd: bigint;
  readonly heldNanoUsd: bigint;
}

/** The state of the stores after the load, once everything open has had its time to end. */
export interface Aftermath {
  readonly entries: readonly BookEntry[];
  readonly balances: readonly Balance[];
  /** Includes leases. */
  readonly openHolds: number;
  readonly undecided: number;
  /** Waiting and running jobs of paid calls. */
  readonly openJobs: number;
  /** The service's own check of its books. */
  readonly checkOk: boolean;
  readonly checkDifferenceNanoUsd: bigint;
  /** Objects without a record that says when they are deleted, and multipart uploads. */
  readonly strayObjects: readonly string[];
}

export interface RunLog extends Aftermath {
  readonly calls: readonly CallRecord[];
  readonly runs: readonly ProviderRun[];
  /** Requests that only count a prompt's tokens, to charge a stream that broke off. */
  readonly counts: readonly ProviderRun[];
  readonly faults: readonly FaultRecord[];
  /** Processes that ended without a fault. */
  readonly crashes: readonly string[];
  /** Each process's peak memory. */
  readonly peakBytes: ReadonlyMap<string, number>;
}
