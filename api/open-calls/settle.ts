import { type Queues, type ReplyReader } from "#jobs";
import type { Decided, Money } from "#money";
import type { Clock } from "#platform/clock";
import { lastFrameAt, type OpenCall, poolOf } from "./open-call.ts";

interface Deps {
  readonly reader: ReplyReader;
  readonly queues: Queues;
  readonly money: Money;
  readonly clock: Clock;
}

/** Decides that the call costs nothing. Resolves with the entry that stands, which may be an earlier one. */
export const settleAtZero = (
  { money, clock }: Pick<Deps, "money" | "clock">,
  { payload }: OpenCall,
  end: { readonly status: "failed" | "cancelled"; readonly error?: string; readonly signal?: AbortSignal | undefined },
): Promise<Decided> =>
  money.settle({
    account: payload.account,
    requestId: payload.requestId,
    key: payload.keyId,
    endpoint: payload.endpoint,
    model: payload.model,
    heldNanoUsd: BigInt(payload.held),
    costNanoUsd: 0n,
    attempts: 0,
    usage: {},
    estimated: false,
    totalMs: clock.now() - payload.acceptedAt,
    signal: undefined,
    ...end,
  });

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
    await settleAtZero(deps, call, { status: "cancelled" });
    return true;
  }
  await notifyWorkers(deps, "disconnected", call);
  return false;
}
