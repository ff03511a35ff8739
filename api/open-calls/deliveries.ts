import type { PaidCall } from "#jobs";
import type { Money } from "#money";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import type { Uses } from "#platform/uses";

/** Minimum interval between two records. Answers delivered between the last record and a crash are free. */
const noteMs = 250;
/** An instance that writes no record for several times this long may be taken for dead. */
const renewMs = 5_000;
/** The cost of a call may be captured for a while after its deadline. */
const marginMs = 120_000;

/**
 * Records which JSON answers this instance has not delivered, so that a call whose answer dies with it is refunded. An
 * answer is delivered once the kernel has all of it. Calls with an `Idempotency-Key`, jobs and payments are not recorded:
 * their answers are stored.
 */
export function createDeliveries(
  deps: Uses<"clock" | "log"> & { instance: string; money: Money; callTimeoutMs: number },
) {
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

  const noteOnce = oneAtATime(log, "deliveries could not be recorded", note);
  const stopNoting = clock.every(noteMs, () => {
    if (isChanged || clock.now() - notedAt >= renewMs) void noteOnce();
  });

  return {
    /** Must be called before the instance takes calls. */
    note,
    /** Numbers a call before its job is added. Returns undefined if its cost does not depend on the delivery. */
    begin(call: Omit<PaidCall, "body">): number | undefined {
      const { requestId, account, stream, idempotencyKeyId, detached, held } = call;
      if (stream || idempotencyKeyId !== undefined || detached || held === "0") return undefined;
      accounts.set(requestId, account);
      return next++;
    },
    /** Called once the answer is delivered or the caller has disconnected. A call whose cost is unknown stays recorded. */
    end(requestId: string, costNanoUsd: bigint | undefined): void {
      if (costNanoUsd !== undefined && accounts.delete(requestId)) isChanged = true;
    },
    /** Answers that are not delivered by now are refunded once this instance is gone. */
    async stop(): Promise<void> {
      stopNoting();
      await (accounts.size > 0 ? note() : money.endDeliveries(instance));
    },
  };
}

export type Deliveries = ReturnType<typeof createDeliveries>;
