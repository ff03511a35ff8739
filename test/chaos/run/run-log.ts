import type { Behavior, CallKind } from "./plan.ts";

/** What a run wrote down. Amounts are nano-USD. */

/** How a call ended, as its caller saw it. */
export type Outcome =
  /** The whole answer came. */
  | "answered"
  /** An error, before or inside the answer. */
  | "refused"
  /** The connection ended, or never was: no answer, no error. */
  | "none"
  /** The caller disconnected, as planned. */
  | "disconnected"
  /** Neither came within the caller's patience. */
  | "hung";

export interface CallRecord {
  readonly marker: string;
  readonly kind: CallKind;
  readonly account: string;
  /** The API process that was asked. */
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
  /** Of an error: some of the answer came before it. */
  readonly begun: boolean;
  readonly idempotencyKey?: string;
  /** The answer of an earlier call under the same key. */
  readonly replayed: boolean;
}

/** A request at the stand-in of a provider. */
export interface ProviderRun {
  readonly marker: string;
  readonly upstream: string;
  readonly atMs: number;
  readonly behavior: Behavior;
  /** 0 for an answer that is none. */
  readonly billNanoUsd: bigint;
  /** The most that such an answer may cost: one that breaks off costs what was delivered of it. */
  readonly mayBillNanoUsd: bigint;
}

export interface FaultRecord {
  readonly kind: string;
  /** An API process whose callers may get no answer. */
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
  /** Of JSON that is not stored: which API instance had to deliver it. */
  readonly deliveredBy?: string;
}

export interface Balance {
  readonly account: string;
  readonly availableNanoUsd: bigint;
  readonly heldNanoUsd: bigint;
}

/** What the stores have when the load has ended and what was open then has had its time. */
export interface Aftermath {
  readonly entries: readonly BookEntry[];
  readonly balances: readonly Balance[];
  /** Leases too. */
  readonly openHolds: number;
  readonly undecided: number;
  /** Jobs of paid calls that wait or run. */
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
  /** Requests that ask how many tokens a prompt has, and run nothing: for the charge of a stream that broke off. */
  readonly counts: readonly ProviderRun[];
  readonly faults: readonly FaultRecord[];
  /** Processes that ended, and not by a fault. */
  readonly crashes: readonly string[];
  /** The most memory that each process had. */
  readonly peakBytes: ReadonlyMap<string, number>;
}
