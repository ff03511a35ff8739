import {
  type Address,
  address,
  appendTransactionMessageInstructions,
  type Base64EncodedWireTransaction,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  fetchAddressesForLookupTables,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  getTransactionMessageComputeUnitPrice,
  isSignerRole,
  isWritableRole,
  type KeyPairSigner,
  pipe,
  type Signature,
  setTransactionMessageComputeUnitLimit,
  setTransactionMessageComputeUnitPrice,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransaction,
} from "@solana/kit";
import { ASSOCIATED_TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import type { Rpc } from "#payments";
import type { Swap } from "./api.ts";

export interface Signed {
  readonly wire: Base64EncodedWireTransaction;
  readonly signature: Signature;
  /** Every account that it may change. */
  readonly writable: readonly Address[];
  readonly lastValidBlockHeight: bigint;
}

const memos = address("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
/** The most that a transaction may have. */
const units = 1_400_000;
/** A thousandth of a SOL for all of them: the most to pay for being taken soon. */
const mostMicroLamports = 10n ** 12n / BigInt(units);

/**
 * Makes a transaction of instructions that somebody else proposes, and signs it: only of programs that a swap needs, so
 * that nothing else listens to the wallet's signature; signed by the wallet alone; and by the chain's own word for how long
 * it lives and what its lookup tables hold. The memo makes it another transaction than any other swap of the same amount:
 * two that are the same would land as one.
 */
export async function signFor(
  wallet: KeyPairSigner,
  swap: Swap,
  memo: string,
  programs: ReadonlySet<string>,
  rpc: Rpc,
  signal: AbortSignal,
): Promise<Signed> {
  for (const { programAddress } of swap.instructions)
    if (programAddress !== ASSOCIATED_TOKEN_PROGRAM_ADDRESS && !programs.has(programAddress))
      throw new Error(`The swap runs ${programAddress}, which is no program of Jupiter's`);
  const named = swap.instructions.flatMap(({ accounts = [] }) => accounts);
  if (named.some((each) => isSignerRole(each.role) && each.address !== wallet.address))
    throw new Error("The swap needs another signature");

  const asked = { abortSignal: signal };
  const tables = await fetchAddressesForLookupTables([...swap.tables], rpc, asked);
  const { value: lifetime } = await rpc.getLatestBlockhash({ commitment: "confirmed" }).send(asked);
  const noted = { programAddress: memos, data: Buffer.from(memo) };
  const empty = createTransactionMessage({ version: 0 });
  const price = getTransactionMessageComputeUnitPrice(appendTransactionMessageInstructions(swap.fees, empty)) ?? 0n;
  const message = pipe(
    setTransactionMessageFeePayer(wallet.address, empty),
    (each) => setTransactionMessageLifetimeUsingBlockhash(lifetime, each),
    (each) => setTransactionMessageComputeUnitLimit(units, each),
    (each) => setTransactionMessageComputeUnitPrice(price < mostMicroLamports ? price : mostMicroLamports, each),
    (each) => appendTransactionMessageInstructions([...swap.instructions, noted], each),
    (each) => compressTransactionMessageUsingAddressLookupTables(each, tables),
  );
  const signed = await signTransaction([wallet.keyPair], compileTransaction(message));
  const writable = named.filter(({ role }) => isWritableRole(role)).map((each) => each.address);
  return {
    wire: getBase64EncodedWireTransaction(signed),
    signature: getSignatureFromTransaction(signed),
    writable: [...new Set([wallet.address, ...writable])],
    lastValidBlockHeight: lifetime.lastValidBlockHeight,
  };
}
