import { getBase64EncodedWireTransaction } from "@solana/kit";
import { base58 } from "./accounts.ts";
import type { Chain } from "./chain.ts";
import { feeOf, instructionsOf, type LandedTransaction } from "./transactions.ts";

const memoPrograms = ["MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr", "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"];
const isMemo = ({ programAddress }: Instruction) => memoPrograms.includes(programAddress);

type Instruction = ReturnType<typeof instructionsOf>[number];

/** Formats the memos as validators do: "[12] hello there!". */
function memoOf({ message }: LandedTransaction): string | null {
  const memos = instructionsOf(message).filter(isMemo);
  return (
    memos.map(({ data }) => `[${data.length}] ${new TextDecoder().decode(new Uint8Array(data))}`).join("; ") || null
  );
}

const compiledMessage = ({ message }: LandedTransaction) => ({
  header: {
    numRequiredSignatures: message.header.numSignerAccounts,
    numReadonlySignedAccounts: message.header.numReadonlySignerAccounts,
    numReadonlyUnsignedAccounts: message.header.numReadonlyNonSignerAccounts,
  },
  accountKeys: message.staticAccounts,
  instructions: message.instructions.map(({ programAddressIndex, accountIndices = [], data = new Uint8Array() }) => ({
    programIdIndex: programAddressIndex,
    accounts: accountIndices,
    data: base58(data),
    stackHeight: 1,
  })),
});

export const transactionEncodings = ["json", "base64"] as const;
type TransactionEncoding = (typeof transactionEncodings)[number];

function encoded(landed: LandedTransaction, encoding: TransactionEncoding) {
  const { transaction, message } = landed;
  if (encoding === "base64") return [getBase64EncodedWireTransaction(transaction), encoding];
  return {
    signatures: Object.values(transaction.signatures).map((bytes) => base58(bytes ?? new Uint8Array(64))),
    message: {
      ...compiledMessage(landed),
      recentBlockhash: message.lifetimeToken,
      ...(message.version === 0 && { addressTableLookups: [] }),
    },
  };
}

const statusOf = ({ err }: LandedTransaction) => (err === null ? { Ok: null } : { Err: err });

export function transactionJson(landed: LandedTransaction, encoding: TransactionEncoding) {
  const { message, slot, blockTime, err, logs, units, before, after } = landed;
  return {
    slot,
    blockTime,
    version: message.version,
    transaction: encoded(landed, encoding),
    meta: {
      err,
      status: statusOf(landed),
      fee: feeOf(message),
      preBalances: before.lamports,
      postBalances: after.lamports,
      preTokenBalances: before.tokens,
      postTokenBalances: after.tokens,
      logMessages: logs,
      innerInstructions: [],
      loadedAddresses: { writable: [], readonly: [] },
      rewards: [],
      computeUnitsConsumed: units,
    },
  };
}

export function statusJson({ blocks }: Chain, landed: LandedTransaction) {
  const { slot, err } = landed;
  const confirmationStatus = blocks.commitmentOf(slot);
  const confirmations = confirmationStatus === "finalized" ? null : blocks.slot("processed") - slot;
  return { slot, err, confirmations, confirmationStatus, status: statusOf(landed) };
}

export function signatureJson({ blocks }: Chain, landed: LandedTransaction) {
  const { signature, slot, err, blockTime } = landed;
  return { signature, slot, err, memo: memoOf(landed), blockTime, confirmationStatus: blocks.commitmentOf(slot) };
}
