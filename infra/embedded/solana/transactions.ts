import {
  type Address,
  type CompiledTransactionMessage,
  type CompiledTransactionMessageWithLifetime,
  getAccountMetasFromCompiledTransactionMessage,
  getBase64Codec,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  getTransactionMessageComputeUnitLimit,
  getTransactionMessageComputeUnitPrice,
  type ReadonlyUint8Array,
  type Signature,
  type Transaction,
} from "@solana/kit";
import type { tokenBalances } from "./accounts.ts";

/** An error as JSON-RPC represents it: `"BlockhashNotFound"`, `{InstructionError: [2, {Custom: 1}]}`. */
export type TransactionError = string | Readonly<Record<string, unknown>>;

export interface Outcome {
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly units: bigint;
}

type Message = Exclude<CompiledTransactionMessage, { version: 1 }> & CompiledTransactionMessageWithLifetime;

export interface DecodedTransaction {
  readonly transaction: Transaction;
  readonly message: Message;
}

/** Balances of a transaction's accounts, in the order of the accounts. */
export interface Balances {
  readonly lamports: readonly bigint[];
  readonly tokens: ReturnType<typeof tokenBalances>;
}

/** A transaction in a block, whether its instructions succeeded or failed. */
export interface LandedTransaction extends DecodedTransaction, Outcome {
  readonly signature: Signature;
  readonly slot: bigint;
  readonly blockTime: number;
  readonly before: Balances;
  readonly after: Balances;
}

/** Throws for version 1 and for messages without a blockhash. */
function decodeMessage(bytes: ReadonlyUint8Array): Message {
  const message = getCompiledTransactionMessageDecoder().decode(bytes);
  if (message.version === 1 || !("lifetimeToken" in message)) throw new Error("unsupported transaction version");
  return message;
}

/** Decodes base64. Throws when the bytes are not a transaction. */
export function decodeTransaction(wire: string): DecodedTransaction {
  const transaction = getTransactionDecoder().decode(getBase64Codec().encode(wire));
  return { transaction, message: decodeMessage(transaction.messageBytes) };
}

/** Omits the accounts that are in lookup tables. */
export function instructionsOf(message: Message) {
  const known = getAccountMetasFromCompiledTransactionMessage(message);
  return message.instructions.map(({ programAddressIndex, accountIndices = [], data = new Uint8Array() }) => ({
    programAddress: message.staticAccounts[programAddressIndex] as Address,
    accounts: accountIndices.flatMap((index) => known[index] ?? []),
    data,
  }));
}

const computeBudgetProgram = "ComputeBudget111111111111111111111111111111";
const signatureLamports = 5_000n;
const unitsPerInstruction = 200_000;
const maxUnits = 1_400_000;
const microLamports = 1_000_000n;

/** Returns the network's fee in lamports: signatures plus the priority fee for the requested compute units. */
export function feeOf(message: Message): bigint {
  const budget = { version: message.version, instructions: instructionsOf(message) };
  const others = budget.instructions.filter(({ programAddress }) => programAddress !== computeBudgetProgram);
  const units = getTransactionMessageComputeUnitLimit(budget) ?? others.length * unitsPerInstruction;
  const price = getTransactionMessageComputeUnitPrice(budget) ?? 0n;
  const priorityMicroLamports = BigInt(Math.min(units, maxUnits)) * price;
  const priority = (priorityMicroLamports + microLamports - 1n) / microLamports;
  return BigInt(message.header.numSignerAccounts) * signatureLamports + priority;
}

export const systemProgram = "11111111111111111111111111111111" as Address;
