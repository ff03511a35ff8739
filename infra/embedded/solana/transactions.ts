import {
  AccountRole,
  type Address,
  appendTransactionMessageInstruction,
  type Blockhash,
  type CompiledTransactionMessage,
  type CompiledTransactionMessageWithLifetime,
  createTransactionMessage,
  getBase58Codec,
  getBase64Codec,
  getBase64EncodedWireTransaction,
  getCompiledTransactionMessageDecoder,
  getPublicKeyFromAddress,
  getSignatureFromTransaction,
  getTransactionDecoder,
  type KeyPairSigner,
  pipe,
  type Signature,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type Transaction,
  verifySignature,
} from "@solana/kit";
import type { TokenBalance } from "./accounts.ts";

/** As in JSON-RPC: `"BlockhashNotFound"`, `{InstructionError: [2, {Custom: 1}]}`. */
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

export interface SentTransaction extends DecodedTransaction {
  readonly signature: Signature;
  /** Base64. */
  readonly wire: string;
}

/** Balances of a transaction's accounts, in their order. */
export interface Balances {
  readonly lamports: readonly bigint[];
  readonly tokens: readonly TokenBalance[];
}

/** A transaction in a block, whether its instructions succeeded or failed. */
export interface LandedTransaction extends SentTransaction, Outcome {
  readonly slot: bigint;
  readonly blockTime: number;
  readonly before: Balances;
  readonly after: Balances;
}

/** Throws for version 1 and for messages without a blockhash. */
export function decodeMessage(bytes: Parameters<ReturnType<typeof getCompiledTransactionMessageDecoder>["decode"]>[0]) {
  const message = getCompiledTransactionMessageDecoder().decode(bytes);
  if (message.version === 1 || !("lifetimeToken" in message)) throw new Error("unsupported transaction version");
  return message;
}

/** Throws when the bytes are not a transaction. */
export function decodeTransaction(wire: string, encoding: "base58" | "base64" = "base64"): DecodedTransaction {
  const bytes = (encoding === "base64" ? getBase64Codec() : getBase58Codec()).encode(wire);
  const transaction = getTransactionDecoder().decode(bytes);
  return { transaction, message: decodeMessage(transaction.messageBytes) };
}

/** Undefined without the fee payer's signature: it is the first one, and it identifies the transaction. */
export function asSent(decoded: DecodedTransaction): SentTransaction | undefined {
  const { transaction } = decoded;
  if (!Object.values(transaction.signatures)[0]) return undefined;
  const signature = getSignatureFromTransaction(transaction);
  return { ...decoded, signature, wire: getBase64EncodedWireTransaction(transaction) };
}

export async function isSigned({ transaction }: DecodedTransaction): Promise<boolean> {
  const checks = Object.entries(transaction.signatures).map(async ([address, signature]) => {
    if (!signature) return false;
    return verifySignature(await getPublicKeyFromAddress(address as Address), signature, transaction.messageBytes);
  });
  return (await Promise.all(checks)).every(Boolean);
}

const computeBudgetProgram = "ComputeBudget111111111111111111111111111111";
const signatureLamports = 5_000n;
const unitsPerInstruction = 200_000n;
const maxUnits = 1_400_000n;
const microLamports = 1_000_000n;

/** The network's fee in lamports: for the signatures, and the priority fee for the requested compute units. */
export function feeOf({ header, instructions, staticAccounts }: Message): bigint {
  const isBudget = (index: number) => staticAccounts[index] === computeBudgetProgram;
  const others = instructions.filter(({ programAddressIndex }) => !isBudget(programAddressIndex)).length;
  let [units, price] = [BigInt(others) * unitsPerInstruction, 0n];
  for (const { programAddressIndex, data } of instructions) {
    if (!isBudget(programAddressIndex)) continue;
    const bytes = Buffer.from(new Uint8Array(data ?? []));
    if (bytes[0] === 2 && bytes.length === 5) units = BigInt(bytes.readUInt32LE(1));
    if (bytes[0] === 3 && bytes.length === 9) price = bytes.readBigUInt64LE(1);
  }
  const priorityMicroLamports = (units < maxUnits ? units : maxUnits) * price;
  const priority = (priorityMicroLamports + microLamports - 1n) / microLamports;
  return BigInt(header.numSignerAccounts) * signatureLamports + priority;
}

const systemProgram = "11111111111111111111111111111111" as Address;
const transferInstruction = 2;

/** A signed transfer of SOL. */
export async function signTransfer(
  from: KeyPairSigner,
  to: Address,
  amount: bigint,
  lifetime: { readonly blockhash: Blockhash; readonly lastValidBlockHeight: bigint },
): Promise<Transaction> {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(transferInstruction);
  data.writeBigUInt64LE(amount, 4);
  const accounts = [
    { address: from.address, role: AccountRole.WRITABLE_SIGNER },
    { address: to, role: AccountRole.WRITABLE },
  ];
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (tx) => setTransactionMessageFeePayerSigner(from, tx),
    (tx) => setTransactionMessageLifetimeUsingBlockhash(lifetime, tx),
    (tx) => appendTransactionMessageInstruction({ programAddress: systemProgram, accounts, data }, tx),
  );
  return signTransactionMessageWithSigners(message);
}
