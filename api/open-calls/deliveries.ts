import { createDelivered, type PaidCall } from "#jobs";
import type { Money } from "#money";
import { dayMs } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { retry } from "#platform/concurrency/retry";
import type { RedisClient } from "#platform/redis";
import type { Uses } from "#platform/uses";

/** Minimum interval between two notes in MongoDB. */
const noteMs = 250;
/** An instance that writes no note for several times this long may be taken for dead. */
const renewMs = 5_000;
/** The cost of a call may be captured for a while after its deadline. */
const marginMs = 120_000;
const backoff = { firstMs: 100, maxMs: 1_000 };

/**
 * Records which JSON answers this instance has not delivered, so that a call whose answer dies with it is refunded
 * (docs/adr/0027). An answer is delivered once the kernel has all of it. Calls with an `Idempotency-Key`, jobs and payments
 * are not recorded: their answers are stored.
 */
export function createDeliveries(
  deps: Uses<"clock" | "log"> & { instance: string; money: Money; redis: RedisClient; callTimeoutMs: number },
) {
  const { instance, money, redis, callTimeoutMs, clock, log } = deps;
  const accounts = new Map<string, string>();
  let note = money.deliveryNote(instance);
  let delivered = openDelivered();
  let next = note.firstNumber;
  let isChanged = false;
  let notedAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<unknown> = Promise.resolve();
  let onDeath = () => {};
  const stopped = new AbortController();

  function openDelivered() {
    // Workers that were all down for hours still find what a dead instance had delivered.
    return createDelivered({ redis, note: note.id, lifetimeMs: dayMs });
  }

  async function writeNow(isDurable: boolean): Promise<void> {
    isChanged = false;
    notedAt = clock.now();
    const known = delivered.count();
    const open = [...accounts].map(([_id, account]) => ({ _id, account }));
    const endsAt = clock.now() + callTimeoutMs + marginMs;
    const isAlive = await money.noteDeliveries({ note, next, open, endsAt }, isDurable).catch((error: unknown) => {
      isChanged = true;
      throw error;
    });
    if (isAlive) return delivered.keep(known);
    log.error({ instance }, "this instance was silent for so long that it counted as dead: its open calls end");
    note = money.deliveryNote(instance, note);
    delivered = openDelivered();
    next = note.firstNumber;
    onDeath();
    await writeNow(true);
  }

  /** Writes one note after the other, so that no older one replaces a newer one. */
  function write(isDurable = false): Promise<void> {
    const written = writing.then(() => writeNow(isDurable));
    writing = written.catch(() => {});
    return written;
  }

  const writeOnce = oneAtATime(log, "deliveries could not be recorded", () => write());
  const stopNoting = clock.every(noteMs, () => {
    if (isChanged || clock.now() - notedAt >= renewMs) void writeOnce();
  });

  return {
    /** Must be called before the instance takes calls. */
    note: () => write(),
    /**
     * Resolves once MongoDB has a note of this instance, after which it does not count as dead for a while. If it does
     * already, `onDeath` has been called by then.
     */
    confirm: (): Promise<void> => retry({ clock, backoff, signal: stopped.signal }, () => write(true)),
    /** Registers a callback for when this instance has counted as dead, so that its open calls are being refunded. */
    onDeath(listener: () => void): void {
      onDeath = listener;
    },
    /** Numbers a call before its job is added. Returns undefined if its cost does not depend on the delivery. */
    begin(call: Omit<PaidCall, "body">): number | undefined {
      const { requestId, account, stream, idempotencyKeyId, detached, held } = call;
      if (stream || idempotencyKeyId !== undefined || detached || held === "0") return undefined;
      accounts.set(requestId, account);
      return next++;
    },
    /** True for a call that would be refunded if this instance died now. */
    isOpen: (requestId: string): boolean => accounts.has(requestId),
    /** Called once the answer is delivered or the caller has disconnected. A call whose cost is unknown stays recorded. */
    end(requestId: string, costNanoUsd: bigint | undefined): void {
      if (costNanoUsd === undefined || !accounts.delete(requestId)) return;
      isChanged = true;
      // MongoDB learns of it later: by a timer, which other work may delay.
      if (costNanoUsd > 0n) delivered.add(requestId);
    },
    /** Answers that are not delivered by now are refunded once this instance is gone. */
    async stop(): Promise<void> {
      stopNoting();
      stopped.abort();
      if (accounts.size > 0) return write();
      await writing;
      await money.endDeliveries(note);
      await delivered.end();
    },
  };
}

export type Deliveries = ReturnType<typeof createDeliveries>;
