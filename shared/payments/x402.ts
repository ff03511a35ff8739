import { noCapacity } from "#errors";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import { ConfigError, configError } from "#platform/config";
import type { Logger } from "#platform/logger";
import { createChain } from "./chain.ts";
import type { X402 } from "./config.ts";
import type { Facilitator } from "./facilitator.ts";
import { ownFacilitator } from "./own-facilitator.ts";
import { createQuote } from "./quote.ts";
import type { Quotes } from "./quotes.ts";
import { remoteFacilitator } from "./remote-facilitator.ts";
import { createResolve } from "./resolve.ts";
import { connectRpc } from "./rpc.ts";
import { createSettle } from "./settle.ts";

/** Keys are changed, accounts closed, and SOL runs out. */
const checkedAgainMs = 600_000;

/** Payments on one network, switched on. */
export function createX402(deps: { x402: X402; quotes: Quotes; money: Money; clock: Clock; log: Logger }) {
  const { x402, quotes, money, clock, log } = deps;
  const rpc = connectRpc(x402.rpcUrl);
  const chain = createChain(rpc, x402);
  let checked: { readonly facilitator: Promise<Facilitator>; readonly until: number } | undefined;

  function connect(): Promise<Facilitator> {
    const { facilitator } = x402;
    if (facilitator?.kind === "own") return ownFacilitator(x402, facilitator.feePayerKey, rpc, log);
    if (facilitator?.kind === "remote") return remoteFacilitator(x402, facilitator.url, facilitator.token);
    throw configError("X402_FEE_PAYER_KEY or X402_FACILITATOR_URL is missing: one of them settles payments");
  }

  async function check(): Promise<Facilitator> {
    const found = await connect();
    const misfit = await chain.misfit();
    if (misfit !== undefined) throw configError(misfit);
    return found;
  }

  /** Once it is known that payments can arrive. 503 until then. */
  function facilitator(): Promise<Facilitator> {
    if (checked && clock.now() < checked.until) return checked.facilitator;
    const asked = check().catch((cause: unknown) => {
      checked = undefined;
      throw noCapacity("Payments cannot be taken right now.", 5, cause);
    });
    checked = { facilitator: asked, until: clock.now() + checkedAgainMs };
    return asked;
  }

  /** Rejects for what only the operator can mend. A network that is away comes back. */
  async function start(): Promise<void> {
    await facilitator().catch((error: Error) => {
      if (error.cause instanceof ConfigError) throw error.cause;
      log.warn({ err: error }, "payments cannot be taken yet");
    });
  }

  const { settled, resolve, reconcile } = createResolve({ quotes, chain, money, log });
  return {
    start,
    quote: createQuote({ x402, quotes, facilitator }),
    settle: createSettle({ x402, quotes, chain, facilitator, settled, resolve, clock, log }),
    reconcile,
  };
}
