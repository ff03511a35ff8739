import {
  type Address,
  address,
  appendTransactionMessageInstructions,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  fetchAddressesForLookupTables,
  getBase64Codec,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  getTransactionMessageComputeUnitPrice,
  isSignerRole,
  isWritableRole,
  type KeyPairSigner,
  pipe,
  setTransactionMessageComputeUnitLimit,
  setTransactionMessageComputeUnitPrice,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransaction,
} from "@solana/kit";
import {
  ASSOCIATED_TOKEN_PROGRAM_ADDRESS,
  getTokenDecoder,
  TOKEN_PROGRAM_ADDRESS,
  type Token,
} from "@solana-program/token";
import type { Rpc } from "#payments";
import type { Swap } from "./api.ts";

export type Signed = Awaited<ReturnType<typeof signSwap>>;

const memoProgram = address("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
/** The network's limit for one transaction. */
const maxComputeUnits = 1_400_000;
/** Bounds the priority fee to 0.001 SOL. */
const maxMicroLamports = 10n ** 12n / BigInt(maxComputeUnits);

/**
 * Makes and signs a transaction of the instructions that Jupiter proposes. It allows only the programs that a swap needs,
 * because every program in it can use the wallet's signature, and no other signer. The blockhash and the lookup tables are
 * read from the chain. The memo makes the transaction unique: two identical swaps would land as one.
 */
export async function signSwap(
  swap: Swap,
  rpc: Rpc,
  options: { wallet: KeyPairSigner; memo: string; programs: ReadonlySet<string>; signal: AbortSignal },
) {
  const { wallet, memo, programs, signal } = options;
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
    /** The accounts that it may change. */
    writable: [...new Set([wallet.address, ...writable])],
    lastValidBlockHeight: lifetime.lastValidBlockHeight,
  };
}

export interface Limits {
  readonly wallet: Address;
  /** The wallet's account of the token that is spent. */
  readonly from: { readonly account: Address; readonly maxSpent: bigint };
  /** The wallet's account of the token that is bought. */
  readonly to: { readonly account: Address; readonly minReceived: bigint };
  /** Covers fees and the rent of a new token account. */
  readonly maxLamports: bigint;
}

/** The token program and Token-2022. */
export const tokenPrograms: readonly string[] = [TOKEN_PROGRAM_ADDRESS, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"];
const tokenBytes = 165;

/** An account as the RPC node reports it: `data` is base64 and the name of that encoding. */
type Account = { readonly lamports: bigint; readonly owner: string; readonly data: unknown } | null | undefined;

/**
 * Simulates a signed swap. Rejects unless the swap only spends from one of the wallet's accounts and adds to another, and
 * transfers no right over any of them. A program could behave differently outside a simulation, which is why `signSwap`
 * allows only Jupiter's.
 */
export async function checkEffects(rpc: Rpc, signed: Signed, limits: Limits, signal: AbortSignal): Promise<void> {
  const { writable } = signed;
  const encoding = "base64" as const;
  const earlier = rpc.getMultipleAccounts([...writable], { encoding, commitment: "confirmed" });
  const { value: before, context } = await earlier.send({ abortSignal: signal });
  const simulation = rpc.simulateTransaction(signed.wire, {
    encoding,
    commitment: "processed",
    sigVerify: true,
    // The simulation is at least as recent as the balances above: spending by another swap in between may fail this one, but
    // cannot hide its cost.
    minContextSlot: context.slot,
    accounts: { encoding, addresses: [...writable] },
  });
  const { value: run } = await simulation.send({ abortSignal: signal });
  if (run.err !== null) throw new Error(`The swap fails in simulation: ${JSON.stringify(run.err, asText)}`);
  if (!run.accounts) throw new Error("The RPC node does not report the effects of the swap");
  for (const [n, address] of writable.entries()) checkAccount(address, before[n], run.accounts[n], limits);
  if (!writable.includes(limits.to.account) || !writable.includes(limits.from.account))
    throw new Error("The swap buys for another wallet");
}

function checkAccount(address: Address, before: Account, after: Account, limits: Limits): void {
  const { wallet, from, to, maxLamports } = limits;
  if (address === wallet) {
    const lost = (before?.lamports ?? 0n) - (after?.lamports ?? 0n);
    if (lost > maxLamports) throw new Error(`The swap costs ${lost} lamports`);
    if (after && after.owner !== before?.owner) throw new Error("The swap changes the owner of the wallet");
    return;
  }
  const had = tokenOf(before);
  const has = tokenOf(after);
  if (address === to.account) {
    if (has?.owner !== wallet || isDelegated(has)) throw new Error("The swap buys for another wallet");
    const bought = has.amount - (had?.amount ?? 0n);
    if (bought < to.minReceived) throw new Error(`The swap buys ${bought}, less than ${to.minReceived}`);
    return;
  }
  if (had?.owner !== wallet) return;
  if (has?.owner !== wallet || (isDelegated(has) && !isDelegated(had)))
    throw new Error("The swap transfers rights over an account");
  const spent = had.amount - has.amount;
  if (spent > (address === from.account ? from.maxSpent : 0n))
    throw new Error(`The swap spends ${spent} of ${address}`);
}

const isDelegated = ({ delegate, closeAuthority }: Token): boolean =>
  delegate.__option === "Some" || closeAuthority.__option === "Some";

/** Accounts of Token-2022 begin with the same bytes. */
function tokenOf(account: Account): Token | undefined {
  if (!account || !Array.isArray(account.data) || !tokenPrograms.includes(account.owner)) return undefined;
  const data = getBase64Codec().encode(String(account.data[0]));
  return data.length < tokenBytes ? undefined : getTokenDecoder().decode(data.slice(0, tokenBytes));
}

const asText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
