import { type Address, address, type Base64EncodedWireTransaction, type Signature } from "@solana/kit";
import { findAssociatedTokenPda } from "@solana-program/token";
import { unitNanoUsd } from "#money";
import {
  type BuybackExecutor,
  buybackConfig,
  connectRpc,
  type DueBatch,
  type Execution,
  networkOf,
  type SentTransaction,
  walletOf,
} from "#payments";
import { type Clock, sleep } from "#platform/clock";
import type { Config } from "#platform/config";
import { configError } from "#platform/config-error";
import { connectJupiter } from "./api.ts";
import { checkEffects, signSwap, tokenPrograms } from "./transaction.ts";

type Status = "succeeded" | "failed" | "expired" | "pending";

/** Tolerates RPC nodes that lag behind the one that gave the blockhash. */
const slackBlocks = 50n;
/** Maximum time that an execution waits for the chain. It must be shorter than the lease of a batch. */
const waitMs = 60_000;
const pollMs = 2_000;
const maxLamports = 10_000_000n;

const invalid = (fault: string) => configError(`${fault}, but BUYBACK_EXECUTOR is jupiter`);

async function readConfig(config: Config) {
  const { BUYBACK_WALLET_KEY: key, SOLANA_RPC_URL: rpcUrl, BUYBACK_SLIPPAGE_BPS: slippageBps } = config;
  if (key === undefined) throw invalid("BUYBACK_WALLET_KEY is missing");
  if (rpcUrl === undefined) throw invalid("SOLANA_RPC_URL is missing");
  // A batch of less than one unit of USDC could never be bought.
  if (buybackConfig(config).minimumNanoUsd < unitNanoUsd) throw invalid("BUYBACK_MINIMUM_USD is less than 0.000001");
  const usdc = config.X402_ASSET ?? networkOf(config.X402_NETWORK).usdc;
  if (usdc === undefined) throw invalid("X402_ASSET is missing");
  const programs = new Set(config.JUPITER_PROGRAMS.split(",").map((each) => each.trim()));
  const wallet = await walletOf(key, "BUYBACK_WALLET_KEY");
  return { rpcUrl, slippageBps, usdc: address(usdc), programs, wallet };
}

/**
 * Buys through Jupiter. A swap is made, checked, signed and recorded before it is sent. The outcome of a recorded swap is
 * read from the chain, and another swap is made only when the recorded one can no longer land.
 */
export async function createJupiter(
  config: Config,
  clock: Clock,
): Promise<BuybackExecutor & { close(): Promise<void> }> {
  const { rpcUrl, slippageBps, usdc, programs, wallet } = await readConfig(config);
  const api = connectJupiter(config.JUPITER_BASE_URL, config.JUPITER_API_KEY, clock);
  const rpc = connectRpc(rpcUrl);

  /** The wallet's associated account of a token. Rejects if the mint is not a token. */
  async function tokenAccount(mint: Address, signal: AbortSignal): Promise<Address> {
    const { value } = await rpc.getAccountInfo(mint, { encoding: "base64" }).send({ abortSignal: signal });
    if (!value || !tokenPrograms.includes(value.owner)) throw new Error(`${mint} is no token`);
    const [account] = await findAssociatedTokenPda({ mint, owner: wallet.address, tokenProgram: value.owner });
    return account;
  }

  async function makeSwap({ id, token, nanoUsd }: DueBatch, signal: AbortSignal): Promise<SentTransaction> {
    const amount = nanoUsd / unitNanoUsd;
    const to = address(token);
    const swap = await api.build({ wallet: wallet.address, from: usdc, to, amount, slippageBps }, signal);
    const signed = await signSwap(swap, rpc, { wallet, memo: id, programs, signal });
    const limits = {
      wallet: wallet.address,
      from: { account: await tokenAccount(usdc, signal), maxSpent: amount },
      to: { account: await tokenAccount(to, signal), minReceived: swap.minReceived },
      maxLamports,
    };
    await checkEffects(rpc, signed, limits, signal);
    const { signature, wire: transaction, lastValidBlockHeight } = signed;
    return { signature, transaction, lastValidBlockHeight: lastValidBlockHeight + slackBlocks };
  }

  /**
   * Only a finalized status is final. The height is read first: a transaction that is not found after its last valid block
   * can no longer land.
   */
  async function statusOf(sent: SentTransaction, signal: AbortSignal): Promise<Status> {
    const height = await rpc.getBlockHeight({ commitment: "finalized" }).send({ abortSignal: signal });
    const request = rpc.getSignatureStatuses([sent.signature as Signature], { searchTransactionHistory: true });
    const [status] = (await request.send({ abortSignal: signal })).value;
    if (!status) return height > sent.lastValidBlockHeight ? "expired" : "pending";
    if (status.confirmationStatus !== "finalized") return "pending";
    return status.err === null ? "succeeded" : "failed";
  }

  /** Sends a transaction repeatedly until its status is final or time is up. It has one signature, so it lands once. */
  async function send(sent: SentTransaction, signal: AbortSignal): Promise<Status> {
    const until = clock.now() + waitMs;
    for (;;) {
      const status = await statusOf(sent, signal);
      if (status !== "pending" || clock.now() >= until) return status;
      // The RPC client would send the request even if the signal has aborted.
      signal.throwIfAborted();
      const config = { encoding: "base64", skipPreflight: true, maxRetries: 0n } as const;
      const request = rpc.sendTransaction(sent.transaction as Base64EncodedWireTransaction, config);
      // The next status tells whether it was accepted.
      await request.send({ abortSignal: signal }).catch(() => {});
      await sleep(clock, pollMs, signal);
    }
  }

  /** Returns undefined if the swap failed or expired. */
  async function execute(sent: SentTransaction, token: Address, signal: AbortSignal): Promise<Execution | undefined> {
    const status = await send(sent, signal);
    if (status === "succeeded") return readResult(sent.signature as Signature, token, signal);
    return status === "pending" ? { kind: "pending" } : undefined;
  }

  /** Reads the wallet from the transaction: the key may have been changed since. */
  async function readResult(signature: Signature, token: Address, signal: AbortSignal): Promise<Execution> {
    const config = { commitment: "finalized", encoding: "json", maxSupportedTransactionVersion: 0 } as const;
    const found = await rpc.getTransaction(signature, config).send({ abortSignal: signal });
    if (!found?.meta) throw new Error("The RPC node has no transaction for a swap that it has finalized");
    const { preTokenBalances = [], postTokenBalances = [] } = found.meta;
    const [payer] = found.transaction.message.accountKeys;
    const sum = (balances: typeof preTokenBalances, mint: Address) =>
      balances
        .filter((each) => each.owner === payer && each.mint === mint)
        .reduce((total, each) => total + BigInt(each.uiTokenAmount.amount), 0n);
    const gain = (mint: Address) => sum(postTokenBalances, mint) - sum(preTokenBalances, mint);
    return { kind: "bought", signature, spent: -gain(usdc), received: gain(token) };
  }

  return {
    name: "jupiter",
    async execute(batch, recordSent, signal) {
      if (batch.token === usdc) return { kind: "recorded" };
      const token = address(batch.token);
      const earlier = batch.sent && (await execute(batch.sent, token, signal));
      if (earlier) return earlier;
      const swap = await makeSwap(batch, signal);
      await recordSent(swap);
      const execution = await execute(swap, token, signal);
      if (!execution) throw new Error("The swap did not go through; another one will be made");
      return execution;
    },
    close: api.close,
  };
}
