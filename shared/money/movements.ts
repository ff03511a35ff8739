import { conflict, invalidValue, notFound, ServiceError } from "#errors";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { EntryKind, Ledger, LedgerEntry } from "./ledger.ts";
import type { createMove, Moved } from "./move.ts";
import { untilDone } from "./retry.ts";
import { maxNanoUsd } from "./usd.ts";

export interface Credit {
  /** Negative takes back. */
  readonly amountNanoUsd: bigint;
  /** 1 to 255 characters. The same key again changes nothing. */
  readonly idempotencyKey: string;
  readonly reason?: string | undefined;
}

const refundable: ReadonlySet<EntryKind> = new Set(["usage", "storage"]);

/** The rare movements of any account. */
export function createMovements(deps: {
  move: ReturnType<typeof createMove>["move"];
  common: ReturnType<typeof createMove>["common"];
  ledger: Ledger;
  clock: Clock;
  log: Logger;
}) {
  const { move, common, ledger, clock, log } = deps;

  async function credit(account: string, { amountNanoUsd, idempotencyKey, reason }: Credit): Promise<Moved> {
    if (idempotencyKey.length < 1 || idempotencyKey.length > 255)
      throw invalidValue("idempotency_key", "idempotency_key must have 1 to 255 characters.");
    if (amountNanoUsd === 0n || amountNanoUsd > maxNanoUsd || amountNanoUsd < -maxNanoUsd)
      throw invalidValue("amount_usd", "amount_usd is zero or out of range.");
    const moved = await move({
      _id: `credit:${account}:${idempotencyKey}`,
      kind: amountNanoUsd > 0n ? "credit" : "adjustment",
      ...common(account, amountNanoUsd),
      idempotencyKey,
      ...(reason !== undefined && { reason }),
    });
    if (moved.entry.amountNanoUsd !== amountNanoUsd)
      throw conflict("This idempotency_key was used with another amount.");
    return moved;
  }

  /** Gives the whole cost of a call back, once. Tries until it is done: nobody asks for it a second time. */
  async function refund(account: string, requestId: string): Promise<LedgerEntry> {
    const refunded = await untilDone(clock, undefined, () => refundOnce(account, requestId).catch(orRefusal));
    if (refunded instanceof ServiceError) throw refunded;
    return refunded;

    function orRefusal(error: unknown): ServiceError {
      if (error instanceof ServiceError && error.status === 404) return error;
      log.warn({ err: error, account, requestId }, "a call is not refunded yet");
      throw error;
    }
  }

  async function refundOnce(account: string, requestId: string): Promise<LedgerEntry> {
    const call = (await ledger.standing([requestId])).get(requestId);
    if (!call || !refundable.has(call.kind) || call.account !== account) throw notFound("request");
    const { entry } = await move({
      _id: `refund:${requestId}`,
      kind: "refund",
      ...common(account, -call.amount),
      // What it accrued goes with it, whichever batch has that by now.
      ...(call.buyback && { buyback: { token: call.buyback.token, nanoUsd: -call.buyback.nanoUsd, batch: null } }),
    });
    return entry;
  }

  return { credit, refund };
}
