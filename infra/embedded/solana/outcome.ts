import type { EncodedAccount } from "@solana/kit";
import { FailedTransactionMetadata, type LiteSVM, type TransactionMetadata } from "litesvm";
import { errorOf, type TransactionError } from "./failures.ts";

export interface Outcome {
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly units: bigint;
}

/** With the accounts that it would leave behind. */
export interface Simulated extends Outcome {
  readonly accounts: readonly EncodedAccount[];
}

export const refused = (err: TransactionError): Simulated => ({ err, logs: [], units: 0n, accounts: [] });

export function outcomeOf(result: FailedTransactionMetadata | TransactionMetadata): Outcome {
  const failed = result instanceof FailedTransactionMetadata;
  const meta = failed ? result.meta() : result;
  return { err: failed ? errorOf(result) : null, logs: meta.logs(), units: meta.computeUnitsConsumed() };
}

export function withoutSignatures<T>(svm: LiteSVM, run: () => T): T {
  svm.withSigverify(false);
  try {
    return run();
  } finally {
    svm.withSigverify(true);
  }
}
