import { lamports } from "@solana/kit";
import { type Clock, systemClock } from "#platform/clock";
import { networks, newSecret, openWallet, putMint, putTokenAccount, type Wallet } from "./accounts.ts";
import { type ChainDeps, createChain } from "./chain.ts";
import { type Intercept, startRpcServer } from "./rpc-server.ts";

/**
 * A Solana chain for tests and for the demo of `npm start`: LiteSVM (the real runtime and token program) behind a
 * JSON-RPC server on 127.0.0.1. Token amounts are in the smallest unit: micro-USDC.
 *
 * It behaves like a validator: blockhashes live for 150 blocks; resending a landed transaction returns
 * `AlreadyProcessed`; a signature older than 300 blocks is found only with `searchTransactionHistory`;
 * `sendTransaction` with `skipPreflight` accepts anything well-formed and does not report its outcome; a transaction
 * whose instructions fail is in a block with its error. It differs from a validator in that
 * accounts are always read as of the newest block; without `slotMs` only a transaction or `nextBlock` makes a block;
 * durable nonces are not supported; address lookup tables are not in `getTransaction`; there is no WebSocket, so
 * clients poll `getSignatureStatuses`.
 */
export { networks, newSecret, openWallet, tokenAccountOf, type Wallet } from "./accounts.ts";
export { RpcError } from "./rpc-methods.ts";
export { HttpFault, type Intercept } from "./rpc-server.ts";
export type { TransactionError } from "./transactions.ts";

export interface ChainOptions extends Pick<ChainDeps, "slotMs" | "deliver"> {
  readonly network?: keyof typeof networks;
  readonly clock?: Clock;
  readonly port?: number;
  /** The files and keys from which the chain is restored. When undefined, a new chain ends with the process. */
  readonly stored?: StoredChain;
  /** Intercepts every JSON-RPC call in tests. */
  readonly intercept?: Intercept;
}

export interface StoredChain {
  /** File of the landed transactions. */
  readonly journal: string;
  /** Secret keys, created by `newSecret`. */
  readonly feePayer: string;
  readonly merchant: string;
  /** A wallet that has this USDC balance in a new chain. */
  readonly payer: { readonly secret: string; readonly usd: string };
}

const lamportsPerSol = 1_000_000_000n;

export async function startChain(options: ChainOptions = {}) {
  const { network, genesis, usdc: mint } = networks[options.network ?? "devnet"];
  const { clock = systemClock, stored } = options;
  const chain = createChain({ ...options, clock, genesis, journalFile: stored?.journal });
  const { svm } = chain;
  putMint(svm, mint, 6);

  /** The wallet gets a token account only if `usd` is given. */
  async function wallet(usd?: string, { secret = newSecret(), sol = 0n } = {}): Promise<Wallet> {
    const opened = await openWallet(secret);
    if (usd !== undefined) await putTokenAccount(svm, mint, opened.address, microUsd(usd));
    if (sol > 0n) svm.airdrop(opened.address, lamports(sol * lamportsPerSol));
    return opened;
  }

  const feePayer = await wallet(undefined, { secret: stored?.feePayer, sol: 10n });
  const merchant = await wallet("0", { secret: stored?.merchant });
  if (stored) await wallet(stored.payer.usd, { secret: stored.payer.secret, sol: 1n });
  chain.restore();
  const server = await startRpcServer(chain, options.port, options.intercept);

  return {
    svm,
    blocks: chain.blocks,
    nextBlock: chain.nextBlock,
    rpcUrl: server.url,
    network,
    mint,
    /** Has SOL for the network's fees. */
    feePayer,
    /** The payee, with an empty token account. */
    merchant,
    wallet,
    close: async (): Promise<void> => {
      chain.stop();
      await server.close();
    },
  };
}

/** Converts "1.25" to 1_250_000n. */
function microUsd(usd: string): bigint {
  const [, whole, fraction = ""] = /^(\d+)(?:[.](\d{1,6}))?$/.exec(usd) ?? [];
  if (whole === undefined) throw new Error(`${usd} is not an amount of USDC.`);
  return BigInt(whole + fraction.padEnd(6, "0"));
}
