import type { Decided, ReleaseReason } from "#money";
import { lastFrameAt, type OpenCall, type OpenCallDeps, poolOf } from "./open-call.ts";

/** Settles the call at zero. Resolves with the entry that stands, which may be an earlier one with a cost. */
export const releaseHold = (
  { money, clock }: OpenCallDeps,
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
  { reader, clock }: OpenCallDeps,
  notice: "cancelled" | "disconnected",
  call: OpenCall,
): Promise<void> => reader.notify(notice, call.payload.requestId, lastFrameAt(call) - clock.now());

/**
 * The caller disconnected. True: the job was still waiting, and its call is settled. False: a worker has it, is notified,
 * and decides the call.
 */
export async function withdraw(deps: OpenCallDeps, call: OpenCall): Promise<boolean> {
  if (await deps.queues.remove(poolOf(call), call.payload.requestId)) {
    // The job may also have just ended: then its cost stands.
    await releaseHold(deps, call, { status: "cancelled" });
    return true;
  }
  await notifyWorkers(deps, "disconnected", call);
  return false;
}
