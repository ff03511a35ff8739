import { generateKeyPairSync } from "node:crypto";
import {
  type Address,
  createKeyPairSignerFromBytes,
  type EncodedAccount,
  getBase58Decoder,
  getBase58Encoder,
  lamports,
  type MaybeEncodedAccount,
  type ReadonlyUint8Array,
} from "@solana/kit";
import {
  AccountState,
  findAssociatedTokenPda,
  getMintDecoder,
  getMintEncoder,
  getMintSize,
  getTokenDecoder,
  getTokenEncoder,
  getTokenSize,
  TOKEN_PROGRAM_ADDRESS,
} from "@solana-program/token";
import type { LiteSVM } from "litesvm";

export type Wallet = Awaited<ReturnType<typeof openWallet>>;

/** The networks whose identifier, genesis hash and USDC mint a chain can use. */
export const networks = {
  mainnet: {
    network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    genesis: "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
    usdc: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" as Address,
  },
  devnet: {
    network: "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
    genesis: "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
    usdc: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU" as Address,
  },
} as const;

export const base58 = (bytes: ReadonlyUint8Array): string => getBase58Decoder().decode(bytes);

/** Returns the seed and the public key, 64 bytes in base58, in the format that wallets export. */
export function newSecret(): string {
  const { d: seed = "", x: publicKey = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  return base58(Buffer.concat([Buffer.from(seed, "base64url"), Buffer.from(publicKey, "base64url")]));
}

export async function openWallet(secret: string) {
  const signer = await createKeyPairSignerFromBytes(new Uint8Array(getBase58Encoder().encode(secret)));
  return { address: signer.address, secret, signer };
}

const mintSupply = 10n ** 15n;

function putTokenProgramAccount(svm: LiteSVM, address: Address, bytes: ArrayLike<number>): void {
  const data = new Uint8Array(bytes);
  const space = BigInt(data.length);
  const rent = lamports(svm.minimumBalanceForRentExemption(space));
  svm.setAccount({ address, data, space, executable: false, lamports: rent, programAddress: TOKEN_PROGRAM_ADDRESS });
}

export function putMint(svm: LiteSVM, address: Address, decimals: number): void {
  const mint = { mintAuthority: null, supply: mintSupply, decimals, isInitialized: true, freezeAuthority: null };
  putTokenProgramAccount(svm, address, getMintEncoder().encode(mint));
}

/** Creates or overwrites the owner's associated account for the token. */
export async function putTokenAccount(svm: LiteSVM, mint: Address, owner: Address, amount: bigint): Promise<Address> {
  const address = await tokenAccountOf(mint, owner);
  const none = { delegate: null, isNative: null, delegatedAmount: 0n, closeAuthority: null };
  const token = { mint, owner, amount, state: AccountState.Initialized, ...none };
  putTokenProgramAccount(svm, address, getTokenEncoder().encode(token));
  return address;
}

export async function tokenAccountOf(mint: Address, owner: Address): Promise<Address> {
  const [address] = await findAssociatedTokenPda({ mint, owner, tokenProgram: TOKEN_PROGRAM_ADDRESS });
  return address;
}

type MaybeAccount = MaybeEncodedAccount | EncodedAccount;

const isOfTokenProgram = (account: MaybeAccount, size: number): account is EncodedAccount =>
  "data" in account && account.programAddress === TOKEN_PROGRAM_ADDRESS && account.data.length === size;

export const decodeTokenAccount = (account: MaybeAccount) =>
  isOfTokenProgram(account, getTokenSize()) ? getTokenDecoder().decode(account.data) : undefined;

export const decodeMint = (account: MaybeAccount) =>
  isOfTokenProgram(account, getMintSize()) ? getMintDecoder().decode(account.data) : undefined;

function tokenAmount(amount: bigint, decimals: number) {
  const uiAmount = Number(amount) / 10 ** decimals;
  return { amount: String(amount), decimals, uiAmount, uiAmountString: String(uiAmount) };
}

export const amountOfMint = (svm: LiteSVM, mint: Address, amount: bigint) =>
  tokenAmount(amount, decodeMint(svm.getAccount(mint))?.decimals ?? 0);

export const tokenBalances = (svm: LiteSVM, addresses: readonly Address[]) =>
  addresses.flatMap((address, accountIndex) => {
    const token = decodeTokenAccount(svm.getAccount(address));
    if (!token) return [];
    const { mint, owner, amount } = token;
    const uiTokenAmount = amountOfMint(svm, mint, amount);
    return { accountIndex, mint, owner, programId: TOKEN_PROGRAM_ADDRESS, uiTokenAmount };
  });

export function accountJson({ data, executable, lamports, programAddress: owner, space }: EncodedAccount) {
  return { data: [Buffer.from(data).toString("base64"), "base64"], executable, lamports, owner, rentEpoch: 0, space };
}
