import type { Address } from "@solana/kit";
import { onTestFinished } from "vitest";
import { decodeTokenAccount, putMint, putTokenAccount } from "../../infra/embedded/solana/accounts.ts";
import {
  type ChainOptions,
  HttpFault,
  newSecret,
  openWallet,
  RpcError,
  startChain,
  type TransactionError,
  tokenAccountOf,
} from "../../infra/embedded/solana/index.ts";

/** The fault of one call. */
type Fault =
  /** Closes the connection, before the call takes effect or before its response is sent. */
  | { readonly lose: "request" | "answer" }
  /** Returns this result, without running the call. */
  | { readonly answer: unknown }
  /** Returns this HTTP status (429, 503), without running the call. */
  | { readonly status: number }
  /** Returns this JSON-RPC error, without running the call. */
  | { readonly code: number; readonly message: string }
  /** Runs the call at once, and delays its response until this settles. */
  | { readonly after: Promise<unknown> };

/** The fault for a simulation that fails with this error. */
export const failedSimulation = (err: TransactionError): Fault => ({
  answer: {
    context: { apiVersion: "3.0.0", slot: 0 },
    value: { err, logs: [], unitsConsumed: 0, accounts: null, returnData: null, innerInstructions: null },
  },
});

async function withFault(fault: Fault | undefined, run: () => Promise<unknown>): Promise<unknown> {
  if (!fault) return run();
  if ("answer" in fault) return fault.answer;
  if ("status" in fault) throw new HttpFault(fault.status);
  if ("code" in fault) throw new RpcError(fault.code, fault.message);
  if ("after" in fault) {
    const result = await run();
    await fault.after;
    return result;
  }
  if (fault.lose === "answer") await run().catch(() => {});
  throw new HttpFault();
}

export type SolanaChain = Awaited<ReturnType<typeof testChain>>;

/** A new chain with mint, merchant and fee payer. It ends with the running test. */
export async function testChain(options?: ChainOptions) {
  const faults = new Map<string, Fault[]>();
  const calls: Record<string, number> = {};
  let waiting: (() => void)[] | undefined;
  const chain = await startChain({
    ...options,
    deliver(land) {
      if (waiting) waiting.push(land);
      else land();
    },
    intercept(method, run) {
      calls[method] = (calls[method] ?? 0) + 1;
      return withFault(faults.get(method)?.shift(), run);
    },
  });
  onTestFinished(chain.close);
  const { svm, blocks, mint, merchant } = chain;
  return {
    ...chain,
    payTo: merchant.address,
    /** Null without a token account. */
    async balance(owner: Address, token: Address = mint): Promise<bigint | null> {
      return decodeTokenAccount(svm.getAccount(await tokenAccountOf(token, owner)))?.amount ?? null;
    },
    /** Sets an owner's balance of a token, and creates the token account if it does not exist. */
    setBalance: (owner: Address, amount: bigint, token: Address = mint) => putTokenAccount(svm, token, owner, amount),
    async createMint(decimals = 6): Promise<Address> {
      const { address: token } = await openWallet(newSecret());
      putMint(svm, token, decimals);
      return token;
    },
    tokenAccountOf: (owner: Address, token: Address = mint) => tokenAccountOf(token, owner),
    lamports: (owner: Address): bigint => svm.getBalance(owner) ?? 0n,
    /** Makes empty blocks: after 151, every earlier blockhash has expired. */
    advance(count: number): void {
      for (let n = 0; n < count; n++) chain.nextBlock();
    },
    holdAt: blocks.holdAt,
    mempool: {
      /** Transactions sent from now on wait. */
      hold(): void {
        waiting ??= [];
      },
      /** Waiting transactions land if they still may. */
      release(): void {
        const released = waiting ?? [];
        waiting = undefined;
        for (const land of released) land();
      },
      /** Waiting transactions never land. */
      drop(): void {
        waiting = undefined;
      },
    },
    /** The number of calls of each method. */
    calls: calls as Readonly<Record<string, number>>,
    faults: {
      /** Applies this fault to the next calls of this method, after those planned before. */
      next: (method: string, fault: Fault, times = 1): void =>
        void faults.set(method, [...(faults.get(method) ?? []), ...Array<Fault>(times).fill(fault)]),
      clear: (): void => faults.clear(),
    },
  };
}
