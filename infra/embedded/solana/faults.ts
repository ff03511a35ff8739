import type { TransactionError } from "./failures.ts";

/** What may go wrong with one call. */
export type Fault =
  /** The connection is cut, before the call takes effect or before it is answered. */
  | { readonly lose: "request" | "answer" }
  /** Nothing is done and this is answered. */
  | { readonly answer: unknown }
  /** Nothing is done and the HTTP answer has this status: 429, 503. */
  | { readonly status: number }
  /** Nothing is done and this JSON-RPC error is answered. */
  | { readonly code: number; readonly message: string }
  /** It is done at once, and answered when this settles. */
  | { readonly after: Promise<unknown> };

/** Faults for the calls of one method, used up in their order. */
export function createFaults() {
  const planned = new Map<string, { readonly fault: Fault; left: number }[]>();
  return {
    /** The next calls of this method meet this fault, one unless told otherwise. */
    next(method: string, fault: Fault, times = 1): void {
      planned.set(method, [...(planned.get(method) ?? []), { fault, left: times }]);
    },
    clear: (): void => planned.clear(),
    take(method: string): Fault | undefined {
      const queue = planned.get(method) ?? [];
      const first = queue[0];
      if (!first) return undefined;
      first.left -= 1;
      if (first.left <= 0) queue.shift();
      return first.fault;
    },
  };
}

/** A simulation that fails for this reason. */
export const failedSimulation = (err: TransactionError): Fault => ({
  answer: {
    context: { apiVersion: "3.0.0", slot: 0 },
    value: { err, logs: [], unitsConsumed: 0, accounts: null, returnData: null, innerInstructions: null },
  },
});
