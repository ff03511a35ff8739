import type { ServiceError } from "#errors";
import { jobCatalog, type Queues, type ReplyReader } from "#jobs";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Answering } from "./answering.ts";
import { isKept, isOver, type OpenCall } from "./open-call.ts";

/** The worker ends a call at its deadline, a stream after it has read on for its usage; the API only if nothing was heard by then. */
export const deadlineGraceMs = ({ payload }: OpenCall): number => (payload.stream ? 40_000 : 2_000);

interface Deps {
  readonly reader: ReplyReader;
  readonly queues: Queues;
  readonly money: Money;
  readonly clock: Clock;
  readonly answering: Pick<Answering, "fail">;
  readonly end: (call: OpenCall, status: number) => void;
  readonly background: (what: string, call: OpenCall, work: Promise<unknown>) => void;
}

/** The ends of a call that no frame brings: each is a decision before it is an answer. */
export function createEnding({ reader, queues, money, clock, answering, end, background }: Deps) {
  /** Tries until it is done. */
  const refund = async (call: OpenCall) => {
    if (!isKept(call)) await money.refund(call.payload.account, call.payload.requestId);
  };

  /** From here on no frame is taken: what is refunded is not delivered as well. */
  async function refundAndFail(call: OpenCall, error: ServiceError): Promise<void> {
    call.stopExpecting();
    // Who left a stream has had what was written, and pays for it.
    if (!(call.left && call.payload.stream)) await refund(call);
    answering.fail(call, error);
  }

  const settleNothing = (call: OpenCall, status: "failed" | "cancelled", error?: string, signal?: AbortSignal) =>
    money.release(
      {
        account: call.payload.account,
        requestId: call.payload.requestId,
        key: call.payload.keyId,
        endpoint: call.payload.endpoint,
        model: call.payload.model,
        heldNanoUsd: BigInt(call.payload.held),
        totalMs: clock.now() - call.payload.acceptedAt,
        signal,
      },
      { status, error },
    );

  /**
   * An error is a decision too: it is answered once nothing was charged for good. If a cost stands already the answer
   * is on its way: with `mayWait` it gets until the deadline, else it is refunded.
   */
  async function giveUp(call: OpenCall, error: ServiceError, how: { mayWait: boolean; signal?: AbortSignal }) {
    if (isOver(call) || call.givingUp) return;
    call.givingUp = true;
    const { entry } = await settleNothing(call, "failed", error.code, how.signal);
    if (isOver(call)) return;
    if (entry.costNanoUsd > 0n && how.mayWait) {
      call.givingUp = false;
      return;
    }
    if (call.enqueued) background("cancel", call, notify("cancelled", call));
    if (entry.costNanoUsd > 0n) await refundAndFail(call, error);
    else answering.fail(call, error);
  }

  const notify = (notice: "cancelled" | "disconnected", call: OpenCall) =>
    reader.notify(notice, call.payload.requestId, call.payload.deadlineAt + deadlineGraceMs(call) - clock.now());

  /** The caller is gone. A job that waits is taken back; one that runs is decided by its worker. */
  async function leave(call: OpenCall): Promise<void> {
    if (call.leaving) return;
    call.leaving = true;
    const { requestId } = call.payload;
    try {
      const removed = await queues.remove(jobCatalog[call.job].pool, requestId);
      if (!removed) return await notify("disconnected", call);
    } catch (error) {
      // Redis did not take it: the next pulse asks again.
      call.leaving = false;
      throw error;
    }
    // What was taken back may also be a job that had just ended: then its cost stands.
    await settleNothing(call, "cancelled");
    end(call, 499);
  }

  return { refundAndFail, settleNothing, giveUp, leave };
}
