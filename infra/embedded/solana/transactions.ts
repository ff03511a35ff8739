import {
  type Address,
  type CompiledTransactionMessage,
  type CompiledTransactionMessageWithLifetime,
  getBase58Codec,
  getBase58Decoder,
  getBase64Codec,
  getBase64EncodedWireTransaction,
  getCompiledTransactionMessageDecoder,
  getPublicKeyFromAddress,
  getSignatureFromTransaction,
  getTransactionDecoder,
  type Signature,
  type Transaction,
  verifySignature,
} from "@solana/kit";
import { RpcError, type TransactionError } from "./failures.ts";
import type { TokenBalance } from "./tokens.ts";

const memoPrograms = ["MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr", "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"];
export const isMemoProgram = (program: string): boolean => memoPrograms.includes(program);

export type Message = Exclude<CompiledTransactionMessage, { version: 1 }> & CompiledTransactionMessageWithLifetime;

/** How a transaction is written. */
export type Encoding = "base58" | "base64";

export interface Unsigned {
  readonly transaction: Transaction;
  readonly message: Message;
}

export interface Sent extends Unsigned {
  readonly signature: Signature;
  readonly wire: string;
}

/** A transaction that is in a block, run to its end or not. */
export interface Landed extends Sent {
  readonly slot: bigint;
  readonly blockTime: number;
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly units: bigint;
  readonly lamports: { readonly before: readonly bigint[]; readonly after: readonly bigint[] };
  readonly tokens: { readonly before: readonly TokenBalance[]; readonly after: readonly TokenBalance[] };
}

export function decodeMessage(bytes: Parameters<ReturnType<typeof getCompiledTransactionMessageDecoder>["decode"]>[0]) {
  const message = getCompiledTransactionMessageDecoder().decode(bytes);
  if (message.version === 1 || !("lifetimeToken" in message)) throw new Error("not of a version that is served here");
  return message;
}

/** A node simulates a transaction also before its fee payer has signed it. */
export function decodeUnsigned(wire: string, encoding: Encoding = "base64"): Unsigned {
  try {
    const bytes = encoding === "base64" ? getBase64Codec().encode(wire) : getBase58Codec().encode(wire);
    const transaction = getTransactionDecoder().decode(bytes);
    return { transaction, message: decodeMessage(transaction.messageBytes) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new RpcError(-32602, `failed to deserialize transaction: ${why}`);
  }
}

export function decodeSent(text: string, encoding?: Encoding): Sent {
  const decoded = decodeUnsigned(text, encoding);
  const wire = getBase64EncodedWireTransaction(decoded.transaction);
  // The fee payer signs first, and its signature names the transaction.
  const [first] = Object.values(decoded.transaction.signatures);
  if (!first) throw new RpcError(-32003, "Transaction signature verification failure");
  return { ...decoded, signature: getSignatureFromTransaction(decoded.transaction), wire };
}

export async function isSigned({ transaction }: Unsigned): Promise<boolean> {
  const each = Object.entries(transaction.signatures).map(async ([address, signature]) => {
    if (!signature) return false;
    return verifySignature(await getPublicKeyFromAddress(address as Address), signature, transaction.messageBytes);
  });
  return (await Promise.all(each)).every(Boolean);
}

/** As lists of signatures show it: "[12] hello there!". */
export function memoOf({ message }: Unsigned): string | null {
  const texts = message.instructions.flatMap(({ programAddressIndex, data }) => {
    if (!isMemoProgram(message.staticAccounts[programAddressIndex] ?? "")) return [];
    const bytes = data ?? new Uint8Array();
    return `[${bytes.length}] ${new TextDecoder().decode(new Uint8Array(bytes))}`;
  });
  return texts.length === 0 ? null : texts.join("; ");
}

const base58 = (bytes: Parameters<ReturnType<typeof getBase58Decoder>["decode"]>[0] | undefined): string =>
  bytes === undefined ? "" : getBase58Decoder().decode(bytes);

/** The form that `encoding: "json"` asks for. */
export const asJson = ({ transaction, message }: Landed) => ({
  signatures: Object.values(transaction.signatures).map((signature) => base58(signature ?? new Uint8Array(64))),
  message: {
    header: {
      numRequiredSignatures: message.header.numSignerAccounts,
      numReadonlySignedAccounts: message.header.numReadonlySignerAccounts,
      numReadonlyUnsignedAccounts: message.header.numReadonlyNonSignerAccounts,
    },
    accountKeys: message.staticAccounts,
    recentBlockhash: message.lifetimeToken,
    instructions: message.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
      programIdIndex: programAddressIndex,
      accounts: accountIndices ?? [],
      data: base58(data),
      stackHeight: 1,
    })),
    ...(message.version === 0 && { addressTableLookups: [] }),
  },
});
