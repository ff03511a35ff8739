import type { FailedTransactionMetadata } from "litesvm";
import internal from "litesvm/dist/internal.js";
import { instructionErrors, transactionErrors } from "./error-names.ts";

/** What a node answers for a transaction that failed: `"BlockhashNotFound"`, `{InstructionError: [2, {Custom: 1}]}`. */
export type TransactionError = string | Readonly<Record<string, unknown>>;

const nameIn = (names: readonly string[], value: number): string => names[value] ?? String(value);

export function errorOf(failed: FailedTransactionMetadata): TransactionError {
  const error = failed.err();
  if (typeof error === "number") return nameIn(transactionErrors, error);
  if (error instanceof internal.TransactionErrorInstructionError)
    return { InstructionError: [error.index, instructionError(error.err())] };
  if (error instanceof internal.TransactionErrorDuplicateInstruction) return { DuplicateInstruction: error.index };
  const kind =
    error instanceof internal.TransactionErrorInsufficientFundsForRent
      ? "InsufficientFundsForRent"
      : "ProgramExecutionTemporarilyRestricted";
  return { [kind]: { account_index: (error as { accountIndex: number }).accountIndex } };
}

type InstructionError = ReturnType<InstanceType<typeof internal.TransactionErrorInstructionError>["err"]>;

function instructionError(error: InstructionError): TransactionError {
  if (typeof error === "number") return nameIn(instructionErrors, error);
  return error instanceof internal.InstructionErrorCustom ? { Custom: error.code } : "BorshIoError";
}

/** Only a transaction whose instructions were run gets into a block; any other leaves no trace. */
export const leavesTrace = (error: TransactionError): boolean =>
  typeof error === "object" && "InstructionError" in error;

/** A JSON-RPC error. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
