import { noCapacity } from "#errors";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config";
import type { Logger } from "#platform/logger";
import { createChain } from "./chain.ts";
import type { X402 } from "./config.ts";
import { createFacilitator, type Facilitator } from "./facilitator.ts";
import { createQuote } from "./quote.ts";
import type { Quotes } from "./quotes.ts";
import { createResolve } from "./resolve.ts";
import { connectRpc } from "./rpc.ts";
import { createSettle } from "./settle.ts";

/** Payments on one network, switched on. */
export function createX402(deps: { x402: X402; quotes: Quotes; money: Money; clock: Clock; log: Logger }) {
  const { x402, quotes, money, clock, log } = deps;
  const rpc = connectRpc(x402.rpcUrl);
  const chain = createChain(rpc, x402);
  let checking: Promise<Facilitator> | undefined;

  async function check(): Promise<Facilitator> {
    const found = await createFacilitator(x402, rpc);
    const misfit = await chain.misfit();
    if (misfit !== undefined) throw new ConfigError(`The configuration is not complete.\n  ${misfit}`);
    return found;
  }

  /** Once it is known that payments can arrive. 503 until then. */
  function facilitator(): Promise<Facilitator> {
    checking ??= check().catch((error: unknown) => {
      checking = undefined;
      if (error instanceof ConfigError) throw error;
      throw noCapacity("Payments cannot be taken right now.", 5, error);
    });
    return checking;
  }

  /** Rejects for what only the operator can mend. A network that is away comes back. */
  async function start(): Promise<void> {
    await facilitator().catch((error: unknown) => {
      if (error instanceof ConfigError) throw error;
      log.warn({ err: error }, "payments cannot be taken yet");
    });
  }

  const { settled, resolve, reconcile } = createResolve({ quotes, chain, money, log });
  return {
    start,
    quote: createQuote({ x402, quotes, facilitator }),
    settle: createSettle({ network: x402.network, quotes, facilitator, settled, resolve, clock, log }),
    reconcile,
  };
}
