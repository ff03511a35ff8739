import { sleep } from "#platform/clock";
import { retry } from "#platform/concurrency/retry";
import type { Uses } from "#platform/uses";

type Write = () => Promise<void>;

const maxPending = 10_000;
const retryDelayMs = 1_000;
/** A replica that takes over in a failover may lack the writes of the last seconds. */
const losableMs = 5_000;

/**
 * Idempotent writes that must be made, but not at once. Failed ones are retried every second, in any order, so that an
 * outage of Redis does not keep the slots of finished calls taken until they expire.
 */
export function createPendingWrites({ clock, log }: Uses<"clock" | "log">) {
  /** Ordered by time. Those before `first` are too old. */
  let recent: { readonly write: Write; readonly madeAt: number }[] = [];
  let first = 0;
  let pending = 0;

  async function repeat(write: Write): Promise<void> {
    if (pending === maxPending) return;
    pending++;
    await sleep(clock, retryDelayMs);
    await retry({ clock, backoff: { firstMs: retryDelayMs, maxMs: retryDelayMs } }, write);
    pending--;
  }

  function remember(write: Write): void {
    const now = clock.now();
    recent.push({ write, madeAt: now });
    while (now - (recent[first]?.madeAt ?? now) > losableMs) first++;
    // Compact rarely, so that the cost of a write does not depend on how many are remembered.
    if (first * 2 < recent.length) return;
    recent = recent.slice(first);
    first = 0;
  }

  function defer(write: Write): void {
    if (pending === 0) log.warn("redis is unavailable; the limits of finished calls are updated when it is back");
    void repeat(write);
  }

  return {
    defer,
    /** Repeats what a failover may have lost. Must be called after a reconnect. */
    repeatRecent(): void {
      for (const { write } of recent.slice(first)) void repeat(write);
      recent = [];
      first = 0;
    },
    /** Makes the write now, or later. Never rejects. */
    async run(write: Write): Promise<void> {
      try {
        await write();
      } catch {
        return defer(write);
      }
      remember(write);
    },
  };
}
