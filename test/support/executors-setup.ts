import { onTestFinished } from "vitest";
import type { DueBatch, Execution, SentTransaction } from "../../shared/payments/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createExecutor } from "../../workers/executors/index.ts";
import { createManualClock } from "./manual-clock.ts";
import { startMockJupiter } from "./mock-jupiter.ts";
import { testChain } from "./solana.ts";

/**
 * A wallet with 50 USDC and some SOL, a token that costs a third of a micro-USDC per unit, and a mock of Jupiter that
 * sells it.
 */
export async function market(usd = "50.00") {
  const chain = await testChain();
  const token = await chain.createMint();
  const wallet = await chain.wallet(usd, { sol: 1n });
  const jupiter = await startMockJupiter(chain, token, wallet.address);
  const before = chain.calls.sendTransaction ?? 0;
  const config = loadConfig({
    REDIS_URL: "redis://unused",
    MONGODB_URI: "mongodb://unused",
    S3_ENDPOINT: "http://unused",
    S3_ACCESS_KEY_ID: "unused",
    S3_SECRET_ACCESS_KEY: "unused",
    BUYBACK_EXECUTOR: "jupiter",
    BUYBACK_WALLET_KEY: wallet.secret,
    JUPITER_BASE_URL: jupiter.baseUrl,
    JUPITER_API_KEY: "key-of-jupiter",
    JUPITER_PROGRAMS: jupiter.program,
    SOLANA_RPC_URL: chain.rpcUrl,
    X402_NETWORK: chain.network,
  });
  const batch = (id: string, sent?: SentTransaction): DueBatch => ({
    id,
    token,
    nanoUsd: 12_000_000_999n,
    ...(sent && { sent }),
  });

  /** Simulates a restart: only the recorded data is known. */
  async function execute(
    sent?: SentTransaction,
    recordSent: (sent: SentTransaction) => Promise<void> = () => Promise.resolve(),
    signal: AbortSignal = new AbortController().signal,
    id = "batch1",
  ): Promise<{ readonly execution: Execution; readonly sent: SentTransaction | undefined }> {
    const clock = createManualClock();
    // Time passes only while the executor sleeps.
    const timer = setInterval(() => clock.pending() > 0 && clock.advance(1_000), 10);
    const executor = await createExecutor({ config, clock });
    let last = sent;
    try {
      const store = async (made: SentTransaction) => {
        await recordSent(made);
        last = made;
      };
      return { execution: await executor.execute(batch(id, sent), store, signal), sent: last };
    } finally {
      clearInterval(timer);
      await executor.close();
    }
  }

  /** The wallet's balances: micro-USDC, and units of the token. */
  const has = async () => ({
    usdc: await chain.balance(wallet.address),
    token: await chain.balance(wallet.address, token),
  });
  const swaps = () => jupiter.requests.filter(({ path }) => path === "/swap/v2/build").length;
  const countSent = () => (chain.calls.sendTransaction ?? 0) - before;
  onTestFinished(() => chain.faults.clear());
  return { chain, token, wallet, jupiter, execute, has, swaps, countSent, config };
}

/** The spent part of 12.000000999 USD: amounts below a micro-USD remain. */
export const spent = 12_000_000n;
export const received = 36_000_000n;
export const untouched = { usdc: 50_000_000n, token: null };
export const bought = { usdc: 38_000_000n, token: received };
