import { onTestFinished } from "vitest";
import {
  type ChainOptions,
  HttpFault,
  RpcError,
  startChain,
  type TransactionError,
} from "../../infra/embedded/solana/index.ts";

/** What goes wrong with one call. */
type Fault =
  /** The connection is closed, before the call takes effect or before its answer is sent. */
  | { readonly lose: "request" | "answer" }
  /** This result, without running the call. */
  | { readonly answer: unknown }
  /** This HTTP status (429, 503), without running the call. */
  | { readonly status: number }
  /** This JSON-RPC error, without running the call. */
  | { readonly code: number; readonly message: string }
  /** The call runs at once; its answer is sent when this settles. */
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

/** A new chain with mint, merchant and fee payer. It ends with the running test. */
export async function testChain(options?: ChainOptions) {
  const faults = new Map<string, Fault[]>();
  const calls: Record<string, number> = {};
  const chain = await startChain({
    ...options,
    intercept(method, run) {
      calls[method] = (calls[method] ?? 0) + 1;
      return withFault(faults.get(method)?.shift(), run);
    },
  });
  onTestFinished(chain.close);
  return {
    ...chain,
    /** How often each method was called. */
    calls: calls as Readonly<Record<string, number>>,
    faults: {
      /** The next calls of this method meet this fault, after those planned before. */
      next: (method: string, fault: Fault, times = 1): void =>
        void faults.set(method, [...(faults.get(method) ?? []), ...Array<Fault>(times).fill(fault)]),
      clear: (): void => faults.clear(),
    },
  };
}
