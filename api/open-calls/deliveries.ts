import type { PaidCall } from "#jobs";
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { oneAtATime } from "#platform/one-at-a-time";

/** At most this often: what is delivered between the last note and a crash is free. */
const noteMs = 250;
/** Without a note for several times as long, the instance may be taken for dead. */
const renewMs = 5_000;
/** A call can be decided for a while after its deadline. */
const marginMs = 120_000;

/**
 * Notes which JSON answers this instance has not delivered, so that a call whose answer dies with it is refunded. An answer is
 * delivered once the kernel has all of it. Calls with an `Idempotency-Key` and payments are not noted: their answers are stored.
 */
export function createDeliveries(deps: {
  instance: string;
  money: Money;
  callTimeoutMs: number;
  clock: Clock;
  log: Logger;
}) {
  const { instance, money, callTimeoutMs, clock, log } = deps;
  const accounts = new Map<string, string>();
  let next = 0;
  let isChanged = false;
  let notedAt = Number.NEGATIVE_INFINITY;

  async function note(): Promise<void> {
    isChanged = false;
    notedAt = clock.now();
    const open = [...accounts].map(([_id, account]) => ({ _id, account }));
    const endsAt = clock.now() + callTimeoutMs + marginMs;
    await money.noteDeliveries({ instance, next, open, endsAt }).catch((error: unknown) => {
      isChanged = true;
      throw error;
    });
  }

  const noteOnce = oneAtATime(log, "noting deliveries", note);
  const stopNoting = clock.every(noteMs, () => {
    if (isChanged || clock.now() - notedAt >= renewMs) void noteOnce();
  });

  return {
    /** Call it before the instance takes calls. */
    note,
    /** Numbers a call before its job is added. Undefined: its cost does not depend on the delivery. */
    begin({ requestId, account, stream, idempotencyKeyId, held }: Omit<PaidCall, "body">): number | undefined {
      if (stream || idempotencyKeyId !== undefined || held === "0") return undefined;
      accounts.set(requestId, account);
      return next++;
    },
    /** Its answer is delivered, or its caller disconnected. Without a decision the call stays noted. */
    end(requestId: string, costNanoUsd: bigint | undefined): void {
      if (costNanoUsd !== undefined && accounts.delete(requestId)) isChanged = true;
    },
    /** What is not delivered by now is refunded once this instance is gone. */
    async stop(): Promise<void> {
      stopNoting();
      await (accounts.size > 0 ? note() : money.endDeliveries(instance));
    },
  };
}

export type Deliveries = ReturnType<typeof createDeliveries>;
