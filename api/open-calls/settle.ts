import type { Queues, ReplyReader } from "#jobs";
import type { Decided, Money, ReleaseReason } from "#money";
import type { Clock } from "#platform/clock";
import { lastFrameAt, type OpenCall, poolOf } from "./open-call.ts";

interface Deps {
  readonly reader: ReplyReader;
  readonly queues: Queues;
  readonly money: Money;
  readonly clock: Clock;
}

/** Settles the call at zero. Resolves with the entry that stands, which may be an earlier one with a cost. */
export const releaseHold = (
  { money, clock }: Pick<Deps, "money" | "clock">,
  { payload: { account, requestId, keyId: key, endpoint, model, held, acceptedAt } }: OpenCall,
  reason: ReleaseReason,
  signal?: AbortSignal,
): Promise<Decided> => {
  const totalMs = clock.now() - acceptedAt;
  return money.release(
    { account, requestId, key, endpoint, model, heldNanoUsd: BigInt(held), totalMs, signal },
    reason,
  );
};

export const notifyWorkers = (
  { reader, clock }: Pick<Deps, "reader" | "clock">,
  notice: "cancelled" | "disconnected",
  call: OpenCall,
): Promise<void> => reader.notify(notice, call.payload.requestId, lastFrameAt(call) - clock.now());

/**
 * The caller disconnected. True: the job was still waiting, and its call is settled. False: a worker has it, is notified,
 * and decides the call.
 */
export async function withdraw(deps: Deps, call: OpenCall): Promise<boolean> {
  if (await deps.queues.remove(poolOf(call), call.payload.requestId)) {
    // The job may also have just ended: then its cost stands.
    await releaseHold(deps, call, { status: "cancelled" });
    return true;
  }
  await notifyWorkers(deps, "disconnected", call);
  return false;
}
