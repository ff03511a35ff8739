import {
  getAccountMetasFromCompiledTransactionMessage,
  getBase64EncodedWireTransaction,
  isSignerRole,
  isWritableRole,
} from "@solana/kit";
import {
  identifyTokenInstruction,
  parseTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
  TokenInstruction,
} from "@solana-program/token";
import { base58, tokenAmount } from "./accounts.ts";
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

/** Returns the `jsonParsed` form of memos and checked transfers; other instructions are shown in base58. */
function parsedInstruction(instruction: Instruction) {
  const { programAddress, accounts, data } = instruction;
  if (isMemo(instruction)) return { program: "spl-memo", parsed: new TextDecoder().decode(new Uint8Array(data)) };
  const isTransfer =
    programAddress === TOKEN_PROGRAM_ADDRESS &&
    data.length > 0 &&
    identifyTokenInstruction(data) === TokenInstruction.TransferChecked &&
    accounts.length >= 4;
  const addresses = accounts.map(({ address }) => address);
  if (!isTransfer) return { accounts: addresses, data: base58(data) };
  const { amount, decimals } = parseTransferCheckedInstruction(instruction).data;
  const [source, mint, destination, authority] = addresses;
  const info = { source, mint, destination, authority, tokenAmount: tokenAmount(amount, decimals) };
  return { program: "spl-token", parsed: { type: "transferChecked", info } };
}

const parsedMessage = ({ message }: LandedTransaction) => ({
  accountKeys: getAccountMetasFromCompiledTransactionMessage(message).map(({ address: pubkey, role }) => ({
    pubkey,
    signer: isSignerRole(role),
    writable: isWritableRole(role),
    source: "transaction",
  })),
  instructions: instructionsOf(message).map((each) => ({
    ...parsedInstruction(each),
    programId: each.programAddress,
    stackHeight: 1,
  })),
});

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

export const transactionEncodings = ["json", "jsonParsed", "base64", "base58"] as const;
type TransactionEncoding = (typeof transactionEncodings)[number];

function encoded(landed: LandedTransaction, encoding: TransactionEncoding) {
  const { transaction, message } = landed;
  const wire = getBase64EncodedWireTransaction(transaction);
  if (encoding === "base64") return [wire, encoding];
  if (encoding === "base58") return [base58(Buffer.from(wire, "base64")), encoding];
  return {
    signatures: Object.values(transaction.signatures).map((bytes) => base58(bytes ?? new Uint8Array(64))),
    message: {
      ...(encoding === "json" ? compiledMessage(landed) : parsedMessage(landed)),
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
