import type { Address } from "@solana/kit";
import { type Clock, systemClock } from "#platform/clock";
import { createChain } from "./chain.ts";
import { openJournal } from "./journal.ts";
import { networks } from "./networks.ts";
import { openFace } from "./rpc-server.ts";
import { putMint, putTokenAccount, readTokenAccount, tokenAccountOf } from "./tokens.ts";
import { giveSol, microUsd, newSecret, openWallet, type Wallet } from "./wallets.ts";

/**
 * A Solana chain in this process: LiteSVM (the real runtime and token program) behind a small JSON-RPC face on 127.0.0.1,
 * for tests and for the demo of `npm start`. Amounts of tokens are in their smallest unit: micro-USDC.
 *
 * What is like a validator: blockhashes live 150 blocks; a transaction that is there answers `AlreadyProcessed`; a
 * signature older than 300 blocks is found only with `searchTransactionHistory`; `sendTransaction` with `skipPreflight`
 * takes anything well-formed and says nothing of what becomes of it; a transaction whose instructions fail is in a block
 * with its error; `requestAirdrop` gives SOL. What is not: accounts are always read as of the newest block; there is no
 * block without a cause (see `advance`); a durable nonce is no blockhash; address lookup tables are not shown in
 * `getTransaction`; there is no WebSocket, so a client asks for statuses until its transaction is confirmed.
 */
export { failedSimulation } from "./faults.ts";
export type { Wallet } from "./wallets.ts";

export interface ChainOptions {
  readonly network?: keyof typeof networks;
  readonly clock?: Clock;
  readonly port?: number;
  /** A block comes each so many milliseconds, as on the real networks each 400. Without it each transaction has its own. */
  readonly slotMs?: number;
  /** To go on from what was before. Without it everything is new, and ends with the process. */
  readonly kept?: StoredChain;
}

export interface StoredChain {
  /** The file that keeps what happened. */
  readonly journal: string;
  /** Secret keys, made by `newSecret`. */
  readonly feePayer: string;
  readonly merchant: string;
  /** A wallet that has this much USDC to begin with. */
  readonly payer: { readonly secret: string; readonly usd: string };
}

interface Funds {
  readonly secret?: string | undefined;
  readonly sol?: bigint;
}

export type SolanaChain = Awaited<ReturnType<typeof startChain>>;

export async function startChain(options: ChainOptions = {}) {
  const { network, genesis, usdc: mint } = networks[options.network ?? "devnet"];
  const { clock = systemClock, slotMs, kept } = options;
  const chain = createChain({ clock, genesis, slotMs, journal: kept && openJournal(kept.journal) });
  const { svm, blocks } = chain;
  putMint(svm, mint, 6);

  /** A wallet with a token account that holds this much USDC; without an amount it has no token account. */
  async function wallet(usd?: string, { secret = newSecret(), sol = 0n }: Funds = {}): Promise<Wallet> {
    const made = await openWallet(secret);
    if (usd !== undefined) await putTokenAccount(svm, mint, made.address, microUsd(usd));
    if (sol > 0n) giveSol(svm, made.address, sol);
    return made;
  }

  const feePayer = await wallet(undefined, { secret: kept?.feePayer, sol: 10n });
  const merchant = await wallet("0", { secret: kept?.merchant });
  // Some SOL too, for who wants to send more than payments.
  if (kept) await wallet(kept.payer.usd, { secret: kept.payer.secret, sol: 1n });
  chain.restore();
  const face = await openFace(chain, options.port);

  return {
    rpcUrl: face.url,
    network,
    mint,
    /** Who pays the network's fees: has SOL. */
    feePayer,
    /** Who is paid: has an empty token account. */
    merchant,
    payTo: merchant.address,
    wallet,
    /** Of USDC unless told otherwise; null without a token account. */
    async balance(owner: Address, token: Address = mint): Promise<bigint | null> {
      return readTokenAccount(svm, await tokenAccountOf(token, owner))?.amount ?? null;
    },
    /** Sets what an owner has of a token, and makes the token account where there is none. */
    setBalance: (owner: Address, amount: bigint, token: Address = mint) => putTokenAccount(svm, token, owner, amount),
    /** Another token. */
    async createMint(decimals = 6): Promise<Address> {
      const { address: token } = await openWallet(newSecret());
      putMint(svm, token, decimals);
      return token;
    },
    tokenAccountOf: (owner: Address, token: Address = mint) => tokenAccountOf(token, owner),
    lamports: (owner: Address): bigint => svm.getBalance(owner) ?? 0n,
    /** Makes empty blocks: after 151 every blockhash that was known has expired. */
    advance(count: number): void {
      for (let n = 0; n < count; n++) chain.nextBlock();
    },
    /** How sure new blocks become by themselves; "finalized", as at first, also lets go what was held back. */
    holdAt: blocks.holdAt,
    /** Transactions that are taken but in no block yet: `hold()` them, then let them `release()` or `drop()`. */
    mempool: { hold: chain.hold, release: chain.release, drop: chain.drop, size: () => chain.waiting },
    faults: face.faults,
    calls: face.calls,
    close: async (): Promise<void> => {
      chain.stop();
      await face.close();
    },
  };
}
