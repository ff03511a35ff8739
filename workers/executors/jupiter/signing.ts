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
  /** The accounts that it may change. */
  readonly writable: readonly Address[];
  readonly lastValidBlockHeight: bigint;
}

const memoProgram = address("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
/** The network's limit for one transaction. */
const maxComputeUnits = 1_400_000;
/** Bounds the priority fee to 0.001 SOL. */
const maxMicroLamports = 10n ** 12n / BigInt(maxComputeUnits);

interface Signing {
  readonly wallet: KeyPairSigner;
  readonly memo: string;
  readonly programs: ReadonlySet<string>;
  readonly rpc: Rpc;
  readonly signal: AbortSignal;
}

/**
 * Makes and signs a transaction of the instructions that Jupiter proposes. It allows only the programs that a swap needs,
 * because every program in it can use the wallet's signature, and no other signer. The blockhash and the lookup tables are
 * read from the chain. The memo makes the transaction unique: two identical swaps would land as one.
 */
export async function signSwap(swap: Swap, { wallet, memo, programs, rpc, signal }: Signing): Promise<Signed> {
  for (const { programAddress } of swap.instructions)
    if (programAddress !== ASSOCIATED_TOKEN_PROGRAM_ADDRESS && !programs.has(programAddress))
      throw new Error(`The swap runs ${programAddress}, which is not in JUPITER_PROGRAMS`);
  const accounts = swap.instructions.flatMap(({ accounts = [] }) => accounts);
  if (accounts.some((each) => isSignerRole(each.role) && each.address !== wallet.address))
    throw new Error("The swap needs another signature");

  const config = { abortSignal: signal };
  const tables = await fetchAddressesForLookupTables([...swap.tables], rpc, config);
  const { value: lifetime } = await rpc.getLatestBlockhash({ commitment: "confirmed" }).send(config);
  const note = { programAddress: memoProgram, data: Buffer.from(memo) };
  const empty = createTransactionMessage({ version: 0 });
  const price = getTransactionMessageComputeUnitPrice(appendTransactionMessageInstructions(swap.fees, empty)) ?? 0n;
  const message = pipe(
    setTransactionMessageFeePayer(wallet.address, empty),
    (each) => setTransactionMessageLifetimeUsingBlockhash(lifetime, each),
    (each) => setTransactionMessageComputeUnitLimit(maxComputeUnits, each),
    (each) => setTransactionMessageComputeUnitPrice(price < maxMicroLamports ? price : maxMicroLamports, each),
    (each) => appendTransactionMessageInstructions([...swap.instructions, note], each),
    (each) => compressTransactionMessageUsingAddressLookupTables(each, tables),
  );
  const signed = await signTransaction([wallet.keyPair], compileTransaction(message));
  const writable = accounts.filter(({ role }) => isWritableRole(role)).map((each) => each.address);
  return {
    wire: getBase64EncodedWireTransaction(signed),
    signature: getSignatureFromTransaction(signed),
    writable: [...new Set([wallet.address, ...writable])],
    lastValidBlockHeight: lifetime.lastValidBlockHeight,
  };
}
