import { type Address, address, type KeyPairSigner, type Signature } from "@solana/kit";
import { unitNanoUsd } from "#money";
import { connectRpc, type DueBatch, type Execution, type Rpc, type SentTransaction } from "#payments";
import type { Clock } from "#platform/clock";
import type { Executor } from "../executor.ts";
import { connectJupiter, type JupiterApi } from "./api.ts";
import { seeThrough } from "./landing.ts";
import { checkEffects } from "./limits.ts";
import { signFor } from "./signing.ts";
import { accountOf } from "./token-accounts.ts";

export interface JupiterOptions {
  /** With the version: `https://api.jup.ag/swap/v2`. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  /** Those that its swaps run. */
  readonly programs: readonly string[];
  readonly rpcUrl: string;
  /** Spends, and pays the fees. */
  readonly wallet: KeyPairSigner;
  /** The mint that is spent. */
  readonly usdc: string;
  readonly slippageBps: number;
}

interface Jupiter {
  readonly api: JupiterApi;
  readonly rpc: Rpc;
  readonly wallet: KeyPairSigner;
  readonly programs: ReadonlySet<string>;
  readonly usdc: Address;
  readonly slippageBps: number;
}

/** For nodes that are behind the one that gave the blockhash. */
const slackBlocks = 50n;
/** How long one call waits for the chain before it says "pending": less than the lease of a batch. */
const patienceMs = 60_000;
const mostLamports = 10_000_000n;

/**
 * Buys by way of Jupiter. A swap is made, checked, signed, remembered, and only then sent; whatever happened to a call
 * before, the chain says whether a remembered one landed, and a new one is made only when the old one never can.
 */
export function createJupiter(options: JupiterOptions, clock: Clock): Executor {
  const api = connectJupiter(options.baseUrl, options.apiKey, clock);
  const rpc = connectRpc(options.rpcUrl);
  const { wallet, slippageBps } = options;
  const programs = new Set(options.programs);
  const jupiter = { api, rpc, wallet, programs, usdc: address(options.usdc), slippageBps };

  async function follow(sent: SentTransaction, batch: DueBatch, signal: AbortSignal): Promise<Execution | undefined> {
    const fate = await seeThrough(rpc, sent, { clock, patienceMs, signal });
    if (fate === "landed") return bought(jupiter, sent.signature as Signature, address(batch.token), signal);
    return fate === "open" ? { kind: "pending" } : undefined;
  }

  return {
    name: "jupiter",
    async execute(batch, remember, signal) {
      if (batch.token === jupiter.usdc) return { kind: "recorded" };
      const before = batch.sent && (await follow(batch.sent, batch, signal));
      if (before) return before;
      const swap = await makeSwap(jupiter, batch, signal);
      await remember(swap);
      const execution = await follow(swap, batch, signal);
      if (!execution) throw new Error("The swap did not go through; another one will be made");
      return execution;
    },
    close: () => api.close(),
  };
}

async function makeSwap(
  jupiter: Jupiter,
  { id, token, nanoUsd }: DueBatch,
  signal: AbortSignal,
): Promise<SentTransaction> {
  const { api, rpc, wallet, programs, usdc, slippageBps } = jupiter;
  const amount = nanoUsd / unitNanoUsd;
  const to = address(token);
  const swap = await api.build({ wallet: wallet.address, from: usdc, to, amount, slippageBps }, signal);
  const signed = await signFor(wallet, swap, id, programs, rpc, signal);
  const limits = {
    wallet: wallet.address,
    from: { account: await accountOf(rpc, usdc, wallet.address, signal), most: amount },
    to: { account: await accountOf(rpc, to, wallet.address, signal), least: swap.least },
    mostLamports,
  };
  await checkEffects(rpc, signed, limits, signal);
  const { signature, wire: transaction, lastValidBlockHeight } = signed;
  return { signature, transaction, lastValidBlockHeight: lastValidBlockHeight + slackBlocks };
}

/** What a finalized swap did to the wallet that paid for it: another one, if the key was changed meanwhile. */
async function bought(
  { rpc, usdc }: Jupiter,
  signature: Signature,
  token: Address,
  signal: AbortSignal,
): Promise<Execution> {
  const config = { commitment: "finalized", encoding: "json", maxSupportedTransactionVersion: 0 } as const;
  const found = await rpc.getTransaction(signature, config).send({ abortSignal: signal });
  if (!found?.meta) throw new Error("The node does not show the swap that it has finalized");
  const { preTokenBalances = [], postTokenBalances = [] } = found.meta;
  const [wallet] = found.transaction.message.accountKeys;
  const sum = (balances: typeof preTokenBalances, mint: Address) =>
    balances
      .filter((each) => each.owner === wallet && each.mint === mint)
      .reduce((total, each) => total + BigInt(each.uiTokenAmount.amount), 0n);
  const gain = (mint: Address) => sum(postTokenBalances, mint) - sum(preTokenBalances, mint);
  return { kind: "bought", signature, spent: -gain(usdc), received: gain(token) };
}
