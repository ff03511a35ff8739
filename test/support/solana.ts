import { onTestFinished } from "vitest";
import { type ChainOptions, type SolanaChain, startChain } from "../../infra/embedded/solana/index.ts";

/** A new chain with mint, merchant and fee payer. It ends with the running test. */
export async function testChain(options?: ChainOptions): Promise<SolanaChain> {
  const chain = await startChain(options);
  onTestFinished(chain.close);
  return chain;
}
