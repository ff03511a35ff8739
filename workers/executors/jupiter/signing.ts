import {
  type Address,
  type Base64EncodedWireTransaction,
  decompileTransactionMessageFetchingLookupTables,
  getBase64Codec,
  getBase64EncodedWireTransaction,
  getCompiledTransactionMessageDecoder,
  getSignatureFromTransaction,
  getTransactionDecoder,
  type Instruction,
  isWritableRole,
  type KeyPairSigner,
  partiallySignTransaction,
  type Signature,
} from "@solana/kit";
import type { Rpc } from "#payments";

export interface Signed {
  readonly wire: Base64EncodedWireTransaction;
  readonly signature: Signature;
  /** Every account that it may change. */
  readonly writable: readonly Address[];
}

/**
 * Signs a transaction of somebody else's making: one that the wallet pays for, so that the wallet's signature names it; that
 * nobody else has to sign any more; and that lives by a blockhash (one that lives by a nonce never expires).
 */
export async function signFor(wallet: KeyPairSigner, base64: string, rpc: Rpc, signal: AbortSignal): Promise<Signed> {
  const transaction = getTransactionDecoder().decode(getBase64Codec().encode(base64));
  const compiled = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  if (compiled.version === 1 || !("lifetimeToken" in compiled)) throw new Error("The swap is of an unknown version");
  if (compiled.staticAccounts[0] !== wallet.address) throw new Error("The swap is not paid by our wallet");
  const waiting = Object.entries(transaction.signatures).filter(([, signature]) => !signature);
  if (waiting.some(([address]) => address !== wallet.address)) throw new Error("The swap needs another signature");

  const message = await decompileTransactionMessageFetchingLookupTables(compiled, rpc, { abortSignal: signal });
  if (!("blockhash" in message.lifetimeConstraint)) throw new Error("The swap lives by a nonce");
  const signed = await partiallySignTransaction([wallet.keyPair], transaction);
  const named = (message.instructions as readonly Instruction[]).flatMap(({ accounts = [] }) => accounts);
  const writable = named.filter(({ role }) => isWritableRole(role)).map(({ address }) => address);
  return {
    wire: getBase64EncodedWireTransaction(signed),
    signature: getSignatureFromTransaction(signed),
    writable: [...new Set([wallet.address, ...writable])],
  };
}
