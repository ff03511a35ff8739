import { onTestFinished } from "vitest";
import { type ChainOptions, type SolanaChain, startChain } from "../../infra/embedded/solana/index.ts";

/** A chain of its own for the running test, with mint, merchant and fee payer; it ends with the test. */
export async function testChain(options?: ChainOptions): Promise<SolanaChain> {
  const chain = await startChain(options);
  onTestFinished(chain.close);
  return chain;
}
