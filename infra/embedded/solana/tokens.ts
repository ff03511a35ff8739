import { type Address, getBase58Decoder, lamports } from "@solana/kit";
import {
  AccountState,
  findAssociatedTokenPda,
  getMintDecoder,
  getMintEncoder,
  getTokenDecoder,
  getTokenEncoder,
  TOKEN_PROGRAM_ADDRESS,
} from "@solana-program/token";
import type { LiteSVM } from "litesvm";

/** As `getTransaction` shows it. Amounts are in the token's smallest unit. */
export interface TokenBalance {
  readonly accountIndex: number;
  readonly mint: string;
  readonly owner: string;
  readonly programId: string;
  readonly uiTokenAmount: UiAmount;
}

export interface UiAmount {
  readonly amount: string;
  readonly decimals: number;
  readonly uiAmount: number;
  readonly uiAmountString: string;
}

const supply = 10n ** 15n;

function put(svm: LiteSVM, address: Address, bytes: ArrayLike<number>): void {
  const data = new Uint8Array(bytes);
  const space = BigInt(data.length);
  svm.setAccount({
    address,
    data,
    space,
    executable: false,
    lamports: lamports(svm.minimumBalanceForRentExemption(space)),
    programAddress: TOKEN_PROGRAM_ADDRESS,
  });
}

export function putMint(svm: LiteSVM, address: Address, decimals: number): void {
  const mint = { mintAuthority: null, supply, decimals, isInitialized: true, freezeAuthority: null };
  put(svm, address, getMintEncoder().encode(mint));
}

/** The owner's associated account for the token, with exactly this balance. */
export async function putTokenAccount(svm: LiteSVM, mint: Address, owner: Address, amount: bigint): Promise<Address> {
  const address = await tokenAccountOf(mint, owner);
  const rest = { delegate: null, isNative: null, delegatedAmount: 0n, closeAuthority: null };
  put(svm, address, getTokenEncoder().encode({ mint, owner, amount, state: AccountState.Initialized, ...rest }));
  return address;
}

export async function tokenAccountOf(mint: Address, owner: Address): Promise<Address> {
  const [address] = await findAssociatedTokenPda({ mint, owner, tokenProgram: TOKEN_PROGRAM_ADDRESS });
  return address;
}

export function readTokenAccount(svm: LiteSVM, address: Address) {
  const account = svm.getAccount(address);
  if (!account.exists || account.programAddress !== TOKEN_PROGRAM_ADDRESS || account.data.length !== 165) return null;
  return getTokenDecoder().decode(account.data);
}

export function uiAmount(svm: LiteSVM, mint: Address, amount: bigint): UiAmount {
  const account = svm.getAccount(mint);
  return uiAmountOf(amount, account.exists ? getMintDecoder().decode(account.data).decimals : 0);
}

export function uiAmountOf(amount: bigint, decimals: number): UiAmount {
  const value = Number(amount) / 10 ** decimals;
  return { amount: String(amount), decimals, uiAmount: value, uiAmountString: String(value) };
}

export const tokenBalances = (svm: LiteSVM, addresses: readonly Address[]): TokenBalance[] =>
  addresses.flatMap((address, accountIndex) => {
    const token = readTokenAccount(svm, address);
    if (!token) return [];
    const { mint, owner, amount } = token;
    return { accountIndex, mint, owner, programId: TOKEN_PROGRAM_ADDRESS, uiTokenAmount: uiAmount(svm, mint, amount) };
  });

/** A base58 text as the secret keys of wallets are written: the seed, then the public key. */
export const base58 = (bytes: Uint8Array): string => getBase58Decoder().decode(bytes);
